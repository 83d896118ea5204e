/* elmer_steps.h - steps that tests of the queue daemon share: a job through its order, its opening and its end. */
#ifndef TESTS_DAEMON_ELMER_STEPS_H
#define TESTS_DAEMON_ELMER_STEPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/daemon/elmer_lab.h"

#define LOCAL "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 3s\nsettle = 0\nallocator = v1\n"

const struct wire_job_view *only(const struct wire_message *jobs);

/* Through order and open; the start that comes is the caller's. */
void open_job(struct fake *host, uint64_t job, uint32_t attempt, struct wire_message *start);
/* And on: its first process is started, and asker sees that it runs. */
void run_job(struct fake *host, struct fake *asker, uint64_t job, uint32_t attempt);
void end_job(struct fake *host, uint64_t job, uint32_t attempt, double cpu_seconds);
/* All of its first attempt, seen by its host; status: how its command exits. */
void finish_job(struct fake *host, uint64_t job, int status);
/* elmer is killed and begins again, and ws1 with it. */
void kill_and_begin(struct lab *lab, struct fake *host, const struct host_options *options);
void query_as(struct fake *host, uint32_t uid, const char *user, uint64_t job, struct wire_message *answer);
void refused(struct fake *host, uint32_t uid, struct wire_message *submission, const char *code, const char *words);

#endif
