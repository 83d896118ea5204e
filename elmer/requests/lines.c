/* lines.c - jobs as lines of a list: for tables that people read, of queues that may be long. A queued job is looked at
 * without a copy of all that is known of it. */
#include "config.h"

#include <stdlib.h>

#include "elmer/requests/internal.h"
#include "elmer/requests/view.h"

/* A page that grows. */
struct page {
    struct request *request;
    struct wire_running_line running[QUERY_SLICE];
    struct queued_lines queued;
    size_t nrunning, cost;
    struct record *records[QUERY_SLICE]; /* what the running lines point into */
    struct arena memory;
};

static void send_page(struct page *page, bool more)
{
    struct wire_message message = {.type = WIRE_lines, .id = page->request->id};
    message.u.lines.running.items = page->running;
    message.u.lines.running.count = page->nrunning;
    queued_lines_put(&page->queued, &message.u.lines);
    message.u.lines.more = more;
    request_send(page->request, &message);
    for (size_t i = 0; i < page->nrunning; i++)
        record_destroy(page->records[i]);
    page->nrunning = page->cost = 0;
    queued_lines_clear(&page->queued);
}

/* A line that does not fit opens a page of its own. */
static void make_room(struct page *page, size_t cost)
{
    if (page->cost && page->cost + cost > VIEW_PAGE_COST)
        send_page(page, true);
    page->cost += cost;
}

static void add_queued(struct page *page, const struct engine_job *job, const struct core_job *state)
{
    struct record record;
    struct queued_line line;
    job_glance(engine_core(page->request->requests->room.engine), job, state, &record);
    if (state->nlost)
        job_name_lost(engine_core(page->request->requests->room.engine), state, &page->memory, &record);
    view_queued(&record, request_sees(page->request, job->uid), &page->memory, &line);
    make_room(page, view_cost_queued(&line));
    queued_lines_add(&page->queued, &line);
}

static void add_running(struct page *page, const struct engine_job *job)
{
    struct record *record = engine_record(page->request->requests->room.engine, job);
    struct wire_running_line line;
    view_running(record, request_sees(page->request, job->uid), &page->memory, &line);
    make_room(page, view_cost_running(&line));
    page->records[page->nrunning] = record;
    page->running[page->nrunning++] = line;
}

void lines_send(struct request *request, const struct engine_job *const *jobs, size_t count, bool more)
{
    struct page *page = mem_zalloc(sizeof(*page));
    page->request = request;
    for (size_t i = 0; i < count; i++) {
        const struct core_job *state = core_job(engine_core(request->requests->room.engine), jobs[i]->id);
        if (state->state == JOB_QUEUED || state->state == JOB_HELD)
            add_queued(page, jobs[i], state);
        else
            add_running(page, jobs[i]);
    }
    send_page(page, more);
    arena_fini(&page->memory);
    free(page);
}
