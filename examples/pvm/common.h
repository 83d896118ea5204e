/* What the example programs share: enrolling in PVM, spawning themselves, reading options, the clock.
 * The functions end the program with a sentence on stderr and exit status 1 when PVM refuses (2 for a bad option). */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stdint.h>

/* argv[1] of a spawned task: tells it that it is no master. */
#define EXAMPLE_TASK      "--task"
#define EXAMPLE_TASKS_MAX 1024

/* Tag of the notice that a task has ended; the programs' own tags are smaller. */
#define EXAMPLE_TAG_GONE 99

/* Seconds on the monotonic clock. */
double example_now(void);

/* CPU seconds (user and system) that this process has used. */
double example_cpu_seconds(void);

/* Name the program for its messages; first of all. */
void example_name(const char *program);

/* Enrol in the virtual machine. */
void example_enrol(void);

/* Spawn n copies of this program wherever PVM likes, with EXAMPLE_TASK as only argument; fills tids[n], and asks for
 * a message EXAMPLE_TAG_GONE when one of them ends. If PVM starts fewer, those started are killed and the program ends.
 */
void example_spawn(int n, int *tids);

/* Spawn one on this host of the virtual machine; returns its id. */
int example_spawn_on(char *host);

/* Block until a message comes, from anyone. Returns its tag; fills the sender and the length. The end of a peer
 * that was to be told of (EXAMPLE_TAG_GONE) is a message like others, with the peer's id packed in it. */
int example_receive(int *from, int *bytes);

/* As example_receive(), but a message of any other tag than this one and EXAMPLE_TAG_GONE waits until it is asked for:
 * between two senders there is no order, and PVM sends a lost packet again a second later. */
int example_receive_tag(int tag, int *from, int *bytes);

/* End this program because of a peer or PVM; printf-like, exit status 1. Tasks named by example_spawn are killed. */
void example_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Check the result of a PVM call: ends the program when it is negative, returns it otherwise. */
int example_check(int result, const char *call);

/* Parse an option's value, a number in [min, max]; ends the program with status 2 otherwise. */
long example_integer(char option, const char *text, long min, long max);
double example_real(char option, const char *text, double min, double max);

/* The tasks are about to end on request: their ends are no failure any more and nobody is killed. */
void example_release(void);

#endif
