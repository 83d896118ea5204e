/* after.c - what a submission waits for, from its texts to what the core wants to know.
 *
 * Jobs in memory the core knows. Of others, which have ended long ago, the store is asked how; while it is, one more
 * may leave the memory, so it is asked again until nothing is missing. Of a job that is not in the store either nobody
 * knows how it has ended. A number that no job has had yet is a mistake: who waited for it would begin to wait for
 * whoever gets it. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "elmer/requests/internal.h"
#include "elmer/store/store.h"

int after_check(const struct wire_strs *items, struct err *err)
{
    char why[AFTER_WHY];
    struct after after;
    for (size_t i = 0; i < items->count; i++)
        if (after_parse(items->items[i], &after, why))
            return err_set(err, -1, "--after: %s", why);
    return 0;
}

static void on_ends(struct record **records, size_t count, const char *error, void *data)
{
    struct request *request = data;
    request->holder = HOLDER_NONE;
    for (size_t i = 0; i < request->nafter; i++)
        request->after[i].read |= request->after[i].asked;
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < request->nafter; i++)
            if (request->after[i].what.job == records[k]->id)
                request->after[i].what.end = record_end_of(records[k]);
        record_destroy(records[k]);
    }
    if (!request->client)
        request_end(request);
    else if (error)
        request_error(request, WIRE_CODE_REFUSED, "elmer cannot read its store: %s; try again with the same token",
                      error);
    else
        submit_again(request);
}

/* false: the request has ended. */
static bool parse(struct request *request)
{
    const struct wire_strs *items = &request->message.u.submit.after;
    uint64_t next = core_next_id(engine_core(request->requests->room.engine));
    char why[AFTER_WHY];
    if (request->after || !items->count)
        return true;
    request->after = mem_array(items->count, sizeof(*request->after));
    request->nafter = items->count;
    for (size_t i = 0; i < items->count; i++) {
        struct after after = {.kind = AFTER_OK};
        after_parse(items->items[i], &after, why); /* it has been checked */
        request->after[i].what = (struct core_after){.job = after.job, .kind = after.kind};
        if (after.job >= next) {
            request_error(request, WIRE_CODE_REFUSED,
                          "--after %s: there is no job %" PRIu64 "; a job can wait for those that have been submitted",
                          items->items[i], after.job);
            return false;
        }
    }
    return true;
}

bool after_find(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    uint64_t missing[AFTER_MAX];
    size_t count = 0;
    if (!parse(request))
        return false;
    for (size_t i = 0; i < request->nafter; i++) {
        request->after[i].asked = !request->after[i].read && !engine_job(engine, request->after[i].what.job);
        if (request->after[i].asked)
            missing[count++] = request->after[i].what.job;
    }
    if (!count)
        return true;
    request->holder = HOLDER_STORE;
    store_read(engine_store(engine), missing, count, on_ends, request);
    return false;
}

void after_fill(const struct request *request, struct event *event, struct core_after after[AFTER_MAX])
{
    for (size_t i = 0; i < request->nafter; i++)
        after[i] = request->after[i].what;
    event->u.submit.after = after;
    event->u.submit.nafter = (int)request->nafter;
}
