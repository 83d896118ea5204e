/* terminal_elmer.h - what elmer says to commands about the job of terminal_lab.h. */
#ifndef TESTS_DAEMON_TERMINAL_ELMER_H
#define TESTS_DAEMON_TERMINAL_ELMER_H

#include "tests/daemon/commands_lab.h"

struct wire_job_view terminal_view(const char *state, const char *terminal);
void terminal_answer_query(struct world *w, struct wire_job_view shown);
void terminal_refuse_reach(struct world *w, const char *code);

#endif
