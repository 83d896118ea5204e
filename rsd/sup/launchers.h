/* launchers.h - what the launchers of MPI read, so that they find the job's hosts, and start processes there by erun.
 */
#ifndef RSD_SUP_LAUNCHERS_H
#define RSD_SUP_LAUNCHERS_H

#include <netinet/in.h>
#include <stddef.h>

#include "lib/wire/wire.h"
#include "rsd/sup/environment.h"
#include "rsd/sup/sup.h"

enum {
    LAUNCHERS_SETTINGS = 25,
    LAUNCHERS_NAME = 16, /* of an interface, with its NUL */
    LAUNCHERS_BITS = 30  /* a longer mask has no room for more than two hosts */
};
/* The interface of this host that has an address: its name, and what Open MPI gets for it, ADDRESS/BITS or the name. */
struct launchers_network {
    char name[LAUNCHERS_NAME], open_mpi[32];
};
void launchers_network_of(struct launchers_network *network, const char *name, in_addr_t address, in_addr_t mask);
/* False: it has none with that IPv4 address. */
bool launchers_find_network(const char *address, struct launchers_network *network);

struct launchers {
    char slots[160], colons[160]; /* files with the hosts, see child.c */
    struct launchers_network network;
    struct setting settings[LAUNCHERS_SETTINGS];
    size_t count;
};
/* For the command of a job. What the user has set is left alone, and so is what only makes sense with it. */
void launchers_set(struct launchers *launchers, const struct sup *sup, const struct wire_strs *given);

/* Beside the file with the hosts by rank: each host once, with the number of the job's processors there. */
#define LAUNCHERS_SLOTS  "hosts.slots" /* HOST slots=N, as Open MPI has it */
#define LAUNCHERS_COLONS "hosts.count" /* HOST:N, as hydra has it */

#endif
