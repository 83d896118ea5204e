/* fake_time.h - the clocks stand still unless a test moves them (linked with --wrap=mono_now,wall_now,boot_ms). */
#ifndef TESTS_UNIT_ELMER_FAKES_FAKE_TIME_H
#define TESTS_UNIT_ELMER_FAKES_FAKE_TIME_H

#include <stdint.h>

/* Where they begin, so that they cannot be taken for each other. */
#define FAKE_MONO_MS INT64_C(1000000)
#define FAKE_BOOT_MS INT64_C(5000000)
#define FAKE_WALL_MS INT64_C(1700000000000)

struct fake_time {
    int64_t passed_ms;
    int64_t wall_ms; /* the wall clock is set by so much */
};
extern struct fake_time fake_time;

void fake_time_begin(void);
int64_t fake_now_ms(void); /* monotonic */
/* Time goes by, and nothing runs meanwhile. */
void fake_time_skip(int64_t ms);

/* ---- fake_deadlines.c, in place of deadline.h ---- */

/* Time goes by, and each deadline fires when it is due, in the order of time. */
void fake_time_pass(int64_t ms);
/* Those that are due now. */
void fake_time_fire(void);
/* Of those that are armed, when the first is due; -1: none is. */
int64_t fake_time_next(void);

#endif
