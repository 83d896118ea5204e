/* config_show.h - eadmin config show: every key with its value and where that comes from. */
#ifndef CLIENT_CONFIG_SHOW_H
#define CLIENT_CONFIG_SHOW_H

#include <stdbool.h>

/* On the standard output, in the form of the file itself. defaults: what holds without files, which are not read. They
 * return the exit code. */
int config_show_elmer(const char *path, bool required, bool defaults);
int config_show_rsd(const char *path, bool required, bool defaults);

#endif
