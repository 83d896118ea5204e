/* program.h - a program into which libelmer-yield.so is loaded: the test itself, executed again with a word that says
 * what it does. */
#ifndef TESTS_UNIT_YIELD_PROGRAM_H
#define TESTS_UNIT_YIELD_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum { YIELD_SLEPT = 20, YIELD_ROUNDS_MS = 100, YIELD_WAITING = 7 };

/* Words of those who wait for YIELD_ROUNDS_MS of CPU time; they print how often they slept. */
extern const char *const yield_waiting[YIELD_WAITING];

int yield_program(const char *what); /* its exit status */
int yield_find(void);                /* where everything is; 0, or -1 */
/* With the library or without, and with a variable (NULL: none). Its output in text; its status as waitpid() has it. */
int yield_run(const char *what, bool with, const char *variable, const char *value, char *text, size_t size);
long yield_number_of(const char *what, bool with, const char *variable, const char *value);

#endif
