/* array_steps.h - what the tests of arrays in a whole elmer do again and again, as alice and as the host ws1. */
#ifndef TESTS_DAEMON_ARRAY_STEPS_H
#define TESTS_DAEMON_ARRAY_STEPS_H

#include "tests/daemon/elmer_lab.h"
#include "tests/daemon/elmer_steps.h"

/* What elmer reads of a ticket: that ws1 has signed it. */
#define ARRAY_TICKET "656c6d6572207469636b657420310a0003777331"

/* The id of an array of echo {}; state: that it must have, NULL: any. */
uint64_t array_submit(struct fake *host, const char *token, const char *tasks, const char *state);
/* A task opens and starts as it should, with this index; number: from 1 on. */
void array_run_task(struct fake *host, uint64_t array, unsigned number, const char *index);
void array_end_task(struct fake *host, uint64_t task, int status);
void array_expect(struct fake *host, uint64_t array, const char *state, const char *waiting, unsigned ok,
                  unsigned failed);
void array_expect_task(struct fake *host, uint64_t array, unsigned number, const char *state, int index);
/* A verb about tasks; code: of its refusal, NULL: it is done. */
void array_verb(struct fake *host, enum wire_type type, uint64_t array, const char *tasks, const char *code);

#endif
