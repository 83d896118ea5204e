/* work.c - what the lists of a user take of elmer's CPU time, and whose turn it is when it is used up.
 *
 * Lists that have to wait stand in a line of their user's, whichever programs and hosts they come from. The first one
 * waits until a slice may be made, leaves the line, and comes to its end again with what is left of it. So each list
 * goes on, a slice in turn, as the time comes back: with n of them a page comes after n slices of the others at the
 * latest, which is how long a command waits for the next page (ANSWER_MS of client/common.h). That is why no list comes
 * behind PUT_OFF_MAX others: who asks for lists faster than they can be made is told so. Only lists that have begun do,
 * of which there are more where a user with time left begins them at once; their commands may give up. */
#include "config.h"

#include "elmer/requests/internal.h"
#include "lib/base/thread_time.h"

enum { PUT_OFF_MAX = 32 }; /* with slices of 10 ms a page of each in 6 s; 47 ms would be 30 s */

struct work work_begin(const struct request *request)
{
    return (struct work){request->client ? request->client->quota : NULL, thread_time_ns()};
}

void work_end(const struct work *work)
{
    if (work->quota)
        quota_worked(work->quota, engine_now_ms(), (double)(thread_time_ns() - work->begin_ns) / 1e6);
}

static bool has_begun(const struct request *request)
{
    return request->cursor || request->next_id;
}

/* Into the line. False: the request has ended. */
static bool put_off(struct request *request, struct quota *quota)
{
    struct request *last = quota->put_off;
    int count = 0;
    for (struct request *other = last; other; other = other->next_put_off, count++)
        last = other;
    if (count >= PUT_OFF_MAX && !has_begun(request)) {
        request_error(request, WIRE_CODE_REFUSED,
                      "too many lists: elmer gives the lists of a user %d s of its time at once and %d ms in each "
                      "second, and %d of yours wait for that; ask less often, or for less (equery -r, an id), and try "
                      "again when they have come",
                      QUOTA_WORK_MS / 1000, QUOTA_WORK_RATE_MS, count);
        return false;
    }
    request->put_off_of = quota;
    request->next_put_off = NULL;
    if (last)
        last->next_put_off = request;
    else
        quota->put_off = request;
    return true;
}

bool work_must_wait(struct request *request)
{
    struct quota *quota = request->client->quota;
    if (!quota)
        return false;
    bool first = !quota->put_off || quota->put_off == request;
    int64_t wait_ms = quota_work_wait(quota, engine_now_ms());
    if (first && wait_ms <= 0) {
        work_leave(request);
        return false;
    }
    if ((request->put_off_of || put_off(request, quota)) && first)
        query_go_on(request, wait_ms);
    return true;
}

void work_leave(struct request *request)
{
    struct quota *quota = request->put_off_of;
    struct request *before = NULL, *at;
    if (!quota)
        return;
    for (at = quota->put_off; at != request; at = at->next_put_off)
        before = at;
    request->put_off_of = NULL;
    if (before) {
        before->next_put_off = request->next_put_off;
        return;
    }
    quota->put_off = request->next_put_off;
    if (quota->put_off) /* when what is done in this turn of the loop has been counted */
        query_go_on(quota->put_off, 0);
}
