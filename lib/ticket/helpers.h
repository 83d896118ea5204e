/* helpers.h - what a launcher with helpers may start beside the command, and add to the environment: PVM's, which is
 * the only one. */
#ifndef LIB_TICKET_HELPERS_H
#define LIB_TICKET_HELPERS_H

#include "lib/ticket/ticket.h"

bool helpers_daemon_fits(struct ticket_list argv);
bool helpers_agent_fits(struct ticket_list argv, const char *dir);
/* Elmer sets it, or leaves it out of what the user gave. */
bool helpers_variable(const char *entry);
/* False: one of these with a value that Elmer never gives it. tmpdir: of the job, on this host. */
bool helpers_value_fits(const char *entry, const char *dir, const char *tmpdir);
/* They are there, each once, as Elmer sets them: without them PVM has values of its own, such as /tmp for the place of
 * its sockets, and a remote shell. */
bool helpers_variables_are_there(struct ticket_list environment, enum ticket_role role);

#endif
