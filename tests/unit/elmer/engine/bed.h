/* bed.h - an engine with the real core, a fake store, and rooms above it that write down what they are told. */
#ifndef TESTS_UNIT_ELMER_ENGINE_BED_H
#define TESTS_UNIT_ELMER_ENGINE_BED_H

#include "elmer/engine/engine.h"

enum { BED_HOSTS = 3 };
extern struct bed {
    struct deadlines deadlines;
    struct engine *engine;
    const char *names[BED_HOSTS + 1]; /* of the hosts: ws1 ws2 ws3; may be changed before bed_create() */
    struct engine_settings settings;
    struct err err;
    char log[4096]; /* what the rooms above were told */
    char damage[100];
    /* Called with each line of the log, when it is written. */
    void (*on_note)(const char *line);
    bool submission;           /* what failed() returns */
    struct wire_submit limits; /* of what bed_submit() submits */
} bed;

/* A new store, and time from its beginning; nothing is made yet. */
int bed_setup(void **state);
int bed_teardown(void **state); /* closes and destroys what there is */
/* The engine, and its rooms above. What engine_create() returned. */
int bed_create(void);
void bed_destroy(void);
/* bed_create() with one host ws1 that has ncpus CPUs and is up; the log is empty. */
void bed_begin(int ncpus);

/* What was told since the last time, each in a word or two: "order ws1", "open ws1 1.1", "end ws1 1.1",
 * "ack ws1 1.1 rank 0", "signal ws1 1.1 10", "launch 1", "stop 1", "answer 5 ok 1", "failed 5", "failed 5 accepted",
 * "ended 1". */
void bed_expect(const char *log);
void bed_forget_log(void);
#define bed_told(words) (strstr(bed.log, (words)) != NULL)

void bed_up(int host, int ncpus, const struct core_holding *holdings, int nholdings);
/* Request number, of user 5; job ids count from 1. Each has a token "t" and its number, and
 * PASSWORD=sesame as its environment, f00d as its ticket. */
const struct engine_job *bed_submit(uint64_t number, uint32_t nprocs, bool requeue);
void bed_event(enum event_type type, uint64_t number, uint64_t job, uint32_t attempt, int host);
void bed_exited(uint64_t job, int status);
/* Submitted, opened and launched on ws1, and on disk; the log is empty. */
const struct engine_job *bed_running(uint64_t number);
enum job_state bed_state(uint64_t job);

#endif
