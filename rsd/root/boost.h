/* boost.h - helpers above all jobs, for as much CPU time as boost.c says. */
#ifndef RSD_BOOST_H
#define RSD_BOOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rsd/root/budget.h"

struct root;
struct root_job;

/* Of a job. */
struct boost {
    struct cpu_budget left; /* of all its boosts */
    bool on, starved;       /* starved: for one that got nothing, not for a machine that starts or ends */
    int64_t allowed_ns;     /* what this boost may still use */
    int64_t end_ms;         /* by the clock, if it is not used up before */
    int64_t check_ms;       /* when to read again what was used */
};

void boost_init(struct root *root, int64_t now_ms);
void boost_init_job(struct root_job *job); /* it has all that it may have at once */
/* The virtual machine of a new job starts. */
void boost_new(struct root *root, struct root_job *job);
/* It ends: with what the start has left. */
void boost_finish(struct root *root, struct root_job *job);
void boost_stop(struct root *root, struct root_job *job);
/* Ends what is used up or over, and boosts who has starved. To be called when boost_next() says. */
void boost_check(struct root *root, int64_t now);
int64_t boost_next(const struct root *root);

#endif
