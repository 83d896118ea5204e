/* hosts.h - equery --hosts: the hosts, how busy they are, and which jobs have which level there. */
#ifndef CLIENT_HOSTS_H
#define CLIENT_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

/* list: names separated by commas, or patterns; NULL: all. width: of the terminal, 0: there is none. Returns the exit
 * code. */
int hosts_show(const char *list, bool json, size_t width);

#endif
