/* notice.c - what a notice may ask for, which is little: it runs beside the queue, so it costs nobody a turn, and must
 * not become a way around that. It runs on the host where it was submitted, for a short time, and there are at most two
 * of a job, which stands in the queue as all do: so who wants many must submit as many jobs, and waits with them. */
#include "config.h"

#include "elmer/requests/internal.h"

#include <inttypes.h>

int notice_check(const struct wire_submit *submit, struct err *err)
{
    if (!submit->notice)
        return 0;
    if (submit->nprocs != 1 || launcher_of(submit) != LAUNCHER_PLAIN || submit->mesh_rows || *submit->tasks ||
        submit->memory_bytes || submit->per_host)
        return err_set(err, -1, "a notice is one process, and no array");
    if (submit->hosts.count)
        return err_set(err, -1, "a notice runs on the host where it was submitted: leave the hosts out");
    if (submit->after.count != 1)
        return err_set(err, -1, "a notice tells about one job, and waits for it");
    if (submit->limit_requeue)
        return err_set(err, -1, "a notice that has used up its time is not run again: leave --requeue=limit out");
    if (!submit->time_limit_ms || submit->time_limit_ms > NOTICE_MAX_MS)
        return err_set(err, -1, "a notice has a time limit, of at most %d s", NOTICE_MAX_MS / 1000);
    return 0;
}

bool notice_has_its_job(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    const struct core_after *what = &request->after[0].what;
    const struct engine_job *job = engine_job(engine, what->job);
    const struct core_job *state = job ? core_job(engine_core(engine), what->job) : NULL;
    if (!state || job->uid != request->client->uid || state->notice)
        request_error(request, WIRE_CODE_REFUSED,
                      "a notice tells about a job of its user, from its submission on, and job %" PRIu64 " is none, or "
                      "has ended long ago",
                      what->job);
    else if (what->kind == AFTER_START ? job->begin_notice : job->end_notice)
        request_error(request, WIRE_CODE_REFUSED, "the %s of job %" PRIu64 " is told already, by job %" PRIu64,
                      what->kind == AFTER_START ? "begin" : "end", what->job,
                      what->kind == AFTER_START ? job->begin_notice : job->end_notice);
    else
        return true;
    return false;
}

struct wire_strs notice_hosts(const struct wire_submit *submit, const char **here)
{
    *here = submit->submit_host;
    return submit->notice ? (struct wire_strs){.items = here, .count = 1} : submit->hosts;
}
