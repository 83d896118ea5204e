/* fake_work.h - in place of libuv's worker threads (--wrap=uv_queue_work): work is done when a test says so. */
#ifndef TESTS_UNIT_ELMER_FAKES_FAKE_WORK_H
#define TESTS_UNIT_ELMER_FAKES_FAKE_WORK_H

#include <stddef.h>

void fake_work_begin(void);
size_t fake_work_count(void); /* that was asked for and is not done */
/* All of it, with what it leads to. */
void fake_work_run(void);

#endif
