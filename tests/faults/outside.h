/* outside.h - what the tests of faults from outside share. */
#ifndef TESTS_FAULTS_OUTSIDE_H
#define TESTS_FAULTS_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/faults/world.h"

enum { WAIT_MS = 15000, UNAVAILABLE = 6, UNREACHABLE = 4, OUT = 4000 };

/* What the last command printed. */
extern char out[OUT];

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("# line %d: %s\n# ", __LINE__, #condition);                                                         \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

struct seen {
    char state[16], reason[32];
    int exit_status;
    int64_t started_ms, ended_ms;
    double usage; /* CPU seconds */
};

/* esubmit, with a variable NAME=VALUE for the job; its exit status. */
int outside_submit_with(struct world *world, const char *variable, const char *script);
int outside_submit(struct world *world, const char *script);
uint64_t outside_submitted(void); /* the id that it printed, perhaps behind "waiting for ..." */
bool outside_query(uint64_t id, struct seen *seen);
bool outside_await_state(struct world *world, uint64_t id, const char *state);
bool outside_await_file(struct world *world, const char *path);
void outside_touch(const char *path);
/* Start all, and two jobs: one that goes on for long, and one that ends with status 7 when the file `end` appears.
 * Returns 0, or 1 with the reason printed; as does the next. */
int outside_begin(struct world *world);
/* The fault has gone: a submission is taken within 10 s and runs, the first job has never stopped, the second has its
 * status, elmer and rsd are the processes that they were. */
int outside_goes_on(struct world *world);

/* ---- outside_disk.c ---- */
enum damage { DAMAGE_HEADER, DAMAGE_MIDDLE, DAMAGE_TRUNCATED, DAMAGE_EMPTY, DAMAGE_NEWER, DAMAGE_COUNT };
int outside_disk_full(struct world *world, void *data);
int outside_small_disk(struct world *world, void *data);
int outside_disk_full_at_start(struct world *world, void *data);
int outside_read_only(struct world *world, void *data);
int outside_read_only_at_start(struct world *world, void *data);
/* Who is ended when jobs have ended that the store does not know of. */
enum way { WAY_HOSTS_FIRST, WAY_ELMER_FIRST, WAY_HOSTS_TWICE, WAY_ORDERLY, WAY_COUNT };
int outside_result_kept(struct world *world, void *data); /* data: an enum way */
int outside_damaged(struct world *world, void *data);     /* data: an enum damage */
int outside_directory(struct world *world, void *data);
enum log_damage { LOG_CUT, LOG_OVERWRITTEN, LOG_GONE };
int outside_damaged_log(struct world *world, void *data); /* data: an enum log_damage */

/* ---- outside_name.c ---- */
int outside_late_name(struct world *world, void *data);

/* ---- outside_long.c ---- */
int outside_many_jobs(struct world *world, void *data);

#endif
