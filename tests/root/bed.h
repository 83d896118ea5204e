/* bed.h - what the tests of a root half begin with and ask again and again: one rig, made anew for each test. */
#ifndef TESTS_ROOT_BED_H
#define TESTS_ROOT_BED_H

#include "tests/root/rig.h"

extern struct rig rig;
extern char helper_path[100]; /* DIR/helper, which is this binary */

/* For cmocka: before and after a test. */
int bed_up(void **state);
int bed_down(void **state);

/* Of a program that may spin: so long at once in real time, and so long in all. */
void bed_bound_self(unsigned rt_seconds, unsigned seconds);

void expect_exit(uint32_t process, int status, int signal);
void acknowledge(uint64_t job, uint32_t process);
void resync(struct wire_message *state);   /* the caller frees it */
void expect_holdings(size_t count);        /* of jobs, after a resync */
void read_output(char *text, size_t size); /* of DIR/work/out */
double bed_process_ms(void);               /* CPU time that it takes to make a process like this one, and to end it */

#endif
