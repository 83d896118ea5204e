/* reach.h - what a submission may hope for, and what a user has. */
#ifndef ELMER_CORE_REACH_H
#define ELMER_CORE_REACH_H

#include <stdint.h>

struct core;

/* What a job asks for beside a number of processors: of these on a host. */
struct core_demand {
    uint64_t memory_bytes; /* for each; 0: none */
    uint32_t per_host;     /* at most so many; 0: any number */
};

/* What a submission may hope for: it is refused if more is asked for than can ever be there. */
struct core_reach {
    uint64_t cpus;              /* that it may have on its hosts, as far as these are known */
    int unknown;                /* hosts that may have any number, up to CORE_MAX_CPUS */
    int lacking;                /* hosts left out, as they lack what is needed */
    uint64_t cpus_there;        /* as cpus, without a look at what is demanded */
    uint64_t most_memory_bytes; /* of one of them that is known */
    int most_memory_host;       /* that one; -1: none */
};
/* hosts, needs: as in a submission; each host counts once. */
void core_reach(const struct core *core, const int *hosts, int nhosts, uint32_t needs, const struct core_demand *demand,
                struct core_reach *reach);

/* Memory of a host that jobs may ask for (0: it is not known), and what those have asked for that have processors
 * there; this may be more, if the host has come back with less. */
void core_memory(const struct core *core, int host, uint64_t *memory_bytes, uint64_t *promised_bytes);

/* How many hosts a job needs as a cube: those of the smallest one around its mesh. 0: the hosts have no topology, or it
 * is no mesh. */
uint32_t core_cube_for(const struct core *core, uint32_t nprocs, uint32_t mesh_rows);

struct core_user {    /* jobs of one user */
    uint32_t queued;  /* queued and held */
    uint32_t running; /* with a cluster: starting, running, ending */
};
struct core_user core_user(const struct core *core, uint32_t uid);

#endif
