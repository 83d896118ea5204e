/* notice.c - what a notice may ask for, which is little: it runs beside the queue, so it costs nobody a turn, and must
 * not become a way around that. It runs on the host where it was submitted, for a short time, and there are at most two
 * of a job, which stands in the queue as all do: so who wants many must submit as many jobs, and waits with them.
 *
 * One that names a host has output read there (libelmer/client_output.c): what a job that has ended left behind is read
 * by the supervisor of this one, as its user. Nothing bounds how many of these come one after the other, so it can do
 * no work: its command is to sleep, without an environment. What is done above the jobs to begin it is paid as of any
 * job (rsd/root/starts.c), and reading has its own budget there. */
#include "config.h"

#include "elmer/requests/internal.h"

#include <inttypes.h>
#include <string.h>

#include "lib/job/output.h"

bool notice_reads(const struct wire_submit *submit)
{
    return submit->notice && submit->hosts.count;
}

static bool only_sleeps(const struct wire_submit *submit)
{
    const struct wire_strs *command = &submit->command;
    return command->count == 2 && strcmp(command->items[0], OUTPUT_HOLDER) == 0 &&
           strcmp(command->items[1], OUTPUT_HOLDER_SECONDS) == 0 && !submit->environment.count;
}

int notice_check(const struct wire_submit *submit, struct err *err)
{
    if (!submit->notice)
        return 0;
    if (submit->nprocs != 1 || launcher_of(submit) != LAUNCHER_PLAIN || submit->mesh_rows || *submit->tasks ||
        submit->memory_bytes || submit->per_host)
        return err_set(err, -1, "a notice is one process, and no array");
    if (notice_reads(submit) && (submit->hosts.count > 1 || submit->after.count || !only_sleeps(submit)))
        return err_set(
            err, -1,
            "a notice runs on the host where it was submitted: leave the hosts out; only one that has output "
            "read names one, and its command is " OUTPUT_HOLDER " " OUTPUT_HOLDER_SECONDS ", without an environment");
    if (!notice_reads(submit) && submit->after.count != 1)
        return err_set(err, -1, "a notice tells about one job, and waits for it");
    if (submit->limit_requeue)
        return err_set(err, -1, "a notice that has used up its time is not run again: leave --requeue=limit out");
    if (!submit->time_limit_ms || submit->time_limit_ms > NOTICE_MAX_MS)
        return err_set(err, -1, "a notice has a time limit, of at most %d s", NOTICE_MAX_MS / 1000);
    return 0;
}

/* One that waited there for its host would be in no list, and might outlive who wants to read. */
static bool reads_now(struct request *request)
{
    const struct core *core = engine_core(request->requests->room.engine);
    const char *name = request->message.u.submit.hosts.items[0];
    int host = core_member_by_name(core, name);
    if (host < 0 || core_host_up(core_host(core, host)))
        return true; /* no host: find_hosts() says so */
    request_error(request, WIRE_CODE_UNAVAILABLE, "%s, where the output is, has no link now: try again", name);
    return false;
}

static bool has_its_job(struct request *request)
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

bool notice_may_come(struct request *request)
{
    return notice_reads(&request->message.u.submit) ? reads_now(request) : has_its_job(request);
}

struct wire_strs notice_hosts(const struct wire_submit *submit, const char **here)
{
    *here = submit->submit_host;
    return submit->notice && !notice_reads(submit) ? (struct wire_strs){.items = here, .count = 1} : submit->hosts;
}
