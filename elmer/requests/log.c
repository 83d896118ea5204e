/* log.c - what persons have decided, for administrators: a page from the store for each question. */
#include "config.h"

#include <string.h>

#include "elmer/requests/admin.h"
#include "elmer/store/store.h"

enum { PAGE = 256 };

static void on_decisions(const struct decision *decisions, size_t count, const char *error, void *data)
{
    struct request *request = data;
    struct wire_decision_view views[PAGE];
    struct wire_message message = {.type = WIRE_log, .id = request->id};
    if (!request->client) {
        request_end(request);
        return;
    }
    if (error) {
        request_error(request, WIRE_CODE_UNAVAILABLE, "the log cannot be read: %s", error);
        return;
    }
    for (size_t i = 0; i < count && i < PAGE; i++) {
        const struct decision *d = &decisions[i];
        views[i] = (struct wire_decision_view){.id = (uint64_t)d->id,
                                               .at_ms = d->at_ms,
                                               .what = d->what,
                                               .job = d->job,
                                               .user = d->user,
                                               .host = d->host,
                                               .by = d->by,
                                               .uid = d->uid,
                                               .from = d->from,
                                               .admin = d->admin,
                                               .text = d->text};
    }
    message.u.log.decisions.items = views;
    message.u.log.decisions.count = count;
    message.u.log.more = count == PAGE;
    request_send(request, &message);
    request_end(request);
}

void log_query(struct request *request)
{
    const struct wire_query_log *query = &request->message.u.query_log;
    if (!request->admin && !request->reads_all) {
        request_not_admin(request, "read what others have decided");
        return;
    }
    request->holder = HOLDER_STORE;
    store_read_decisions(engine_store(request->requests->room.engine), query->since_ms, (int64_t)query->after, PAGE,
                         on_decisions, request);
}
