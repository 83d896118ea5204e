/* program.h - a program into which libelmer-yield.so is loaded: the test itself, executed again with a word that says
 * what it does. */
#ifndef TESTS_UNIT_YIELD_PROGRAM_H
#define TESTS_UNIT_YIELD_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum { YIELD_SLEPT = 20, YIELD_ROUNDS_MS = 100, YIELD_WAITING = 20 };

/* Words of those who wait for YIELD_ROUNDS_MS of CPU time; they print how often they slept. */
extern const char *const yield_waiting[YIELD_WAITING];

/* polls.c: a poll for what is there now, by its name (NULL: there is none): what it says of the descriptor, 0: nothing,
 * -1: errno. */
typedef int yield_poll(void);
yield_poll *yield_poll_of(const char *name, int of);
void yield_polls(const int ends[2]); /* all of them, in all ways; prints the same with the library and without */

/* Setup and teardown of a test in which reading the clock is slow (clock.c). */
extern bool yield_clock_is_slow;
int yield_slow_clock(void **state);
int yield_own_clock(void **state);

int yield_program(const char *what); /* its exit status */
int yield_find(void);                /* where everything is; 0, or -1 */
/* With the library or without, and with a variable (NULL: none). Its output in text; its status as waitpid() has it. */
int yield_run(const char *what, bool with, const char *variable, const char *value, char *text, size_t size);
long yield_number_of(const char *what, bool with, const char *variable, const char *value);

#endif
