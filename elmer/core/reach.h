/* reach.h - what a submission may hope for, and what a user has. */
#ifndef ELMER_CORE_REACH_H
#define ELMER_CORE_REACH_H

#include <stdint.h>

struct core;

/* What a submission may hope for: it is refused if more is asked for than can ever be there. */
struct core_reach {
    uint64_t cpus; /* of its hosts, as far as their number is known */
    int unknown;   /* hosts that may have any number, up to CORE_MAX_CPUS */
    int lacking;   /* hosts left out, as they lack what is needed */
};
/* hosts, needs: as in a submission; each host counts once. */
void core_reach(const struct core *core, const int *hosts, int nhosts, uint32_t needs, struct core_reach *reach);

/* How many hosts a job needs as a cube: those of the smallest one around its mesh. 0: the hosts have no topology, or it
 * is no mesh. */
uint32_t core_cube_for(const struct core *core, uint32_t nprocs, uint32_t mesh_rows);

struct core_user {    /* jobs of one user */
    uint32_t queued;  /* queued and held */
    uint32_t running; /* with a cluster: starting, running, ending */
};
struct core_user core_user(const struct core *core, uint32_t uid);

#endif
