/* top.h - the order of one's own jobs: what a move may change for others, which is nothing. */
#ifndef TESTS_SIM_TOP_H
#define TESTS_SIM_TOP_H

#include "elmer/core/core.h"

struct top_fault {
    const char *text; /* NULL: none */
    uint64_t job;
};
/* core_step(), and after an EVENT_TOP that was done a look at who is before whom. */
int top_step(struct core *core, const struct event *event, struct actions *actions, struct top_fault *fault);

#endif
