/* erun_plan.h - what erun is asked for, from its command line and the job that it is in. Pure but for ELMER_HOSTFILE.
 */
#ifndef CLIENT_ERUN_PLAN_H
#define CLIENT_ERUN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/options/options.h"
#include "lib/run/pack.h"

/* The job, as its environment says. */
struct erun_job {
    uint64_t id;
    size_t nprocs;
    char **hosts; /* [nprocs] by rank */
    char *text;
};
/* False: it has said why. */
bool erun_job_read(struct erun_job *job);
void erun_job_fini(struct erun_job *job);

/* Processes on one host. */
struct erun_part {
    const char *host;
    struct run_rank *ranks;
    size_t nranks;
};
struct erun_plan {
    bool like_ssh;   /* the command is a line for a shell */
    bool bare;       /* nothing says where: its first word might have been meant as a host */
    bool pty, input; /* input: standard input is read */
    bool mpi;        /* ranks of MPICH, which ask us for what they need of each other */
    bool help, version;
    char **argv; /* of the command; like_ssh: [1], the line, or [0] */
    size_t argc;
    uint32_t total; /* of processes; 0: one, which is no rank */
    struct erun_part *parts;
    size_t nparts;
    char *line; /* like_ssh: owned */
};
extern const struct option_row erun_options[];
/* Whether a terminal is asked for by itself, like_ssh without a command, is for the caller to say: terminal. -1: it is
 * planned; else an exit status, and it has said why. */
int erun_plan_read(struct erun_plan *plan, const struct erun_job *job, int argc, char **argv, bool terminal);
void erun_plan_fini(struct erun_plan *plan);

#endif
