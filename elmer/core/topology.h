/* topology.h - the hosts as nodes of a hypercube, where the configuration says so: node i is the host of index i, with
 * one processor. */
#ifndef ELMER_CORE_TOPOLOGY_H
#define ELMER_CORE_TOPOLOGY_H

#include "elmer/core/cube/cube.h"
#include "elmer/core/internal.h"

void topology_destroy(struct topology *topology);
struct topology *topology_copy(const struct topology *topology); /* NULL: there is none */
/* A host has been added. */
void topology_add_host(struct core *core);
/* Hosts have come or gone: what was found out about them is not known any more. */
void topology_changed_supply(struct core *core);
struct cube *topology_cube(const struct core *core); /* NULL: there is none */

/* The rows of a job without a shape are decided here; false: no mesh has so many. */
bool topology_rows(const struct core *core, uint32_t nprocs, uint32_t *rows);
/* A job has its processors, or has them no more. */
void topology_enter(struct core *core, struct job *job);
void topology_leave(struct core *core, struct job *job);

/* All hosts that count as supply, or of these the job's, have a cube for it. True without a topology. */
bool topology_has_supply(const struct core *core, const struct job *job);
/* These hosts (NULL: all) would have one, if they were up. True without a topology. */
bool topology_has_room(const struct core *core, uint32_t nprocs, uint32_t rows, const struct core_demand *demand,
                       const int *hosts, int nhosts);

/* ---- topology_check.c, for core_check(): the same by brute force ---- */
bool check_topology_supply(const struct core *core, const struct job *job);
bool check_topology_fits(const struct core *core, const struct job *job);
const char *check_topology(const struct core *core); /* NULL, or what is wrong */

/* ---- check.c, for topology_check.c ---- */
bool check_allows(const struct job *job, int host); /* its owner does */

/* ---- room_check.c: the same in a plain way ---- */
uint64_t check_room_supply(const struct job *job, const struct host *host,
                           uint64_t cpus); /* of what counts as supply */
uint64_t check_room_now(const struct core *core, const struct job *job, const struct host *host, uint64_t cpus);
const char *check_rooms(const struct core *core); /* NULL, or what is wrong */

#endif
