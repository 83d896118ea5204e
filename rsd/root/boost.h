/* boost.h - helpers above all jobs, for as much CPU time as boost.c says. */
#ifndef RSD_BOOST_H
#define RSD_BOOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct root;
struct root_job;

/* CPU time that may still be used; fills with time. */
struct boost_bucket {
    int64_t left_ns, filled_ms;
};

/* Of a job. */
struct boost {
    struct boost_bucket bucket;
    bool on, starved;   /* starved: for one that got nothing, not for a machine that starts or ends */
    int64_t allowed_ns; /* what this boost may still use */
    int64_t end_ms;     /* by the clock, if it is not used up before */
    int64_t check_ms;   /* when to read again what was used */
};

/* The virtual machine of a new job starts: fills its bucket, once in its life, and boosts. */
void boost_new(struct root *root, struct root_job *job);
/* It ends: with what the start has left. */
void boost_finish(struct root *root, struct root_job *job);
void boost_stop(struct root *root, struct root_job *job);
/* Ends what is used up or over, and boosts who has starved. To be called when boost_next() says. */
void boost_look(struct root *root, int64_t now);
int64_t boost_next(const struct root *root);
/* What the process has used so far; 0 if it is gone. */
int64_t boost_cpu_ns(pid_t pid);

#endif
