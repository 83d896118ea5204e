/* ticket_bed.h - the root half with tickets, and a network half that says what it likes. */
#ifndef TESTS_ROOT_TICKET_BED_H
#define TESTS_ROOT_TICKET_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lib/ticket/keys.h"
#include "rsd/tickets/desk.h"
#include "tests/root/bed.h"

enum { WAIT_MS = 5000 };

extern char work[100];                 /* directory of the jobs */
extern char text[TICKET_TEXT_MAX + 1]; /* the last ticket */
extern struct ticket_keys keys;        /* of this host */
extern struct ticket_counter counter;
extern const char *command[3], *given[2]; /* of submission() */

#define STRS(array) ((struct wire_strs){array, sizeof(array) / sizeof((array)[0])})

int up(void **state);
int up_accepting(void **state);
int down(void **state);
struct wire_submit submission(void);
const char *sign(const struct wire_submit *submit);
struct wire_message open_of(uint64_t job, uint32_t attempt, const char *ticket);
void expect_refusal(const struct wire_message *open, enum ticket_refusal why);
void refused(uint64_t job, uint32_t attempt, const char *ticket, enum ticket_refusal why);
void opened(uint64_t job, uint32_t attempt, const char *ticket);
struct wire_message start_of(uint64_t job, uint32_t attempt);
void not_started(const struct wire_message *start, enum ticket_refusal why);
void runs_as(uint64_t job, uint32_t attempt, uint32_t process);
void runs(uint64_t job, uint32_t attempt);
void ended(uint64_t job, uint32_t attempt);
size_t lines_of(const char *name);
void give_to_program(void);

#endif
