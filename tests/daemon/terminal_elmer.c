#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/daemon/terminal_elmer.h"
#include "tests/daemon/terminal_lab.h"
#include "tests/unit/peer.h"

struct wire_job_view terminal_view(const char *state, const char *terminal)
{
    struct wire_job_view view = view_of(LAB_JOB, "bash", state);
    view.terminal = terminal;
    return view;
}

void terminal_answer_query(struct world *w, struct wire_job_view shown)
{
    struct wire_message query = peer_expect(&w->elmer, WIRE_query);
    answer_jobs(w, query.id, &shown, 1, false);
    wire_message_fini(&query);
}

void terminal_refuse_reach(struct world *w, const char *code)
{
    struct wire_message reach = peer_expect(&w->elmer, WIRE_reach);
    struct wire_message error = {.type = WIRE_error, .id = reach.id, .u.error = {.code = code, .text = "not so"}};
    peer_send(&w->elmer, &error);
    wire_message_fini(&reach);
}
