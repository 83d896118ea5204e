/* submit.c - a submission, from its checks to its answer.
 *
 * Normal: checks -> a token that is not known -> the core's EVENT_SUBMIT, the job's row goes to the store -> committed
 * -> answer. The token of a job in memory: the answer of that job, when it is on disk. The token of a job that is in
 * the store only: its row is read first. Refused by a check or by the core: nothing has happened, the error says what
 * and why. The store cannot be written: refused, and what the core has begun is undone (engine/commit.c). */
#include "config.h"

#include "elmer/requests/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/launch/launch.h"
#include "elmer/requests/view.h"
#include "elmer/store/store.h"
#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/job/tasks.h"

enum { USERS_WORTH = 4, REHEARSAL_SHARE = 10, NOTED = 8, READERS = 16 };

/* ---- checks: who asks, and whether there is room ---- */

static bool check_user(struct request *request)
{
    const struct client *client = request->client;
    int64_t minimum = request->requests->settings->minimum_uid;
    if (!*client->user)
        request_error(request, WIRE_CODE_NOT_PERMITTED,
                      "uid %" PRIu32 " has no name on this host: a job belongs to a user with a name", client->uid);
    else if (client->uid == 0 && minimum > 0)
        request_error(request, WIRE_CODE_NOT_PERMITTED,
                      "root runs no jobs: submit as an ordinary user (only minimum_uid = 0 in elmer.conf, and in "
                      "rsd.conf of each host, would allow it)");
    else if (client->uid < (uint64_t)minimum)
        request_error(request, WIRE_CODE_NOT_PERMITTED,
                      "user %s (uid %" PRIu32 ") runs no jobs: they are for uids from %" PRId64 " on (minimum_uid)",
                      client->user, client->uid, minimum);
    else
        return true;
    return false;
}

/* Of what he has already. Administrators may submit whatever others have left. What has output read takes no place in
 * the queue: some may come beyond its limit. */
static bool check_room(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    const struct requests_settings *s = request->requests->settings;
    uint32_t queued = core_user(engine_core(engine), request->uid).queued;
    int64_t most = s->user_queued + (notice_reads(&request->message.u.submit) ? READERS : 0);
    size_t bytes = jobs_bytes(engine_jobs(engine), request->uid), all = jobs_bytes_of_all(engine_jobs(engine));
    if (request->admin)
        return true;
    if (queued >= (uint64_t)most)
        request_error(request, WIRE_CODE_REFUSED,
                      "user %s has %" PRIu32 " job%s in the queue, and may have %" PRId64
                      " (user_queued in elmer.conf): wait "
                      "until some have started, or cancel some",
                      request->client->user, queued, queued == 1 ? "" : "s", s->user_queued);
    else if (bytes + request->message.bytes > (size_t)s->user_memory << 20)
        request_error(request, WIRE_CODE_REFUSED,
                      "the commands and environments of user %s's jobs take %zu MiB of elmer's memory, and may take "
                      "%" PRId64
                      " (user_memory in elmer.conf): wait until some have ended, or put environments into files",
                      request->client->user, bytes >> 20, s->user_memory);
    else if (all + request->message.bytes > (size_t)s->user_memory * USERS_WORTH << 20)
        request_error(request, WIRE_CODE_REFUSED,
                      "the commands and environments of all users' jobs take %zu MiB of elmer's memory, and may take "
                      "%" PRId64 " (%d times user_memory in elmer.conf): try again when some have ended",
                      all >> 20, s->user_memory * USERS_WORTH, USERS_WORTH);
    else
        return true;
    return false;
}

/* The part after the last '/', cut to a name that is allowed. */
static void default_name(struct wire_submit *submit, char *name, size_t size)
{
    const char *command = submit->command.items[0], *slash = strrchr(command, '/');
    str_printable(name, size, slash && slash[1] ? slash + 1 : command, strlen(slash && slash[1] ? slash + 1 : command));
    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '_';
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        *name = '_';
    submit->name = name;
}

/* ---- answers ---- */

static const char *shown_reason(const struct record *record, char *text, size_t size)
{
    return record->reason == REASON_WAITING && !record->refused ? "" /* behind others: `ahead` says all */
                                                                : view_reason(record, text, size);
}

static void answer_record(struct request *request, const struct record *record)
{
    struct arena memory = {0};
    char text[VIEW_TEXT];
    struct wire_message message = {.type = WIRE_submitted, .id = request->id};
    message.u.submitted.job = record->id;
    message.u.submitted.state = view_state(record->state);
    message.u.submitted.level = record->level;
    message.u.submitted.hosts = record_cluster_hosts(record, &memory);
    message.u.submitted.ahead = record->ahead;
    message.u.submitted.reason = shown_reason(record, text, sizeof(text));
    request_send(request, &message);
    arena_fini(&memory);
    request_end(request);
}

void submit_answer(struct request *request, uint64_t id)
{
    struct engine *engine = request->requests->room.engine;
    const struct engine_job *job = engine_job(engine, id);
    assert(request->type == WIRE_submit);
    if (!job) { /* it has ended, and a thousand others since */
        struct wire_message message = {
            .type = WIRE_submitted,
            .id = request->id,
            .u.submitted = {.job = id, .state = job_state_name(JOB_DONE), .level = CORE_NO_LEVEL}};
        request_send(request, &message);
        request_end(request);
        return;
    }
    struct record *record = engine_record(engine, job);
    answer_record(request, record);
    record_destroy(record);
}

/* ---- hosts ---- */

/* Those that are named, in *hosts; NULL: all. */
static int find_hosts(const struct core *core, const struct wire_strs *names, int **hosts, struct err *err)
{
    *hosts = names->count ? mem_array(names->count, sizeof(**hosts)) : NULL;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        char printable[260];
        (*hosts)[i] = core_member_by_name(core, name);
        if ((*hosts)[i] < 0)
            return err_set(err, -1, "there is no host \"%s\" in the cluster",
                           str_printable(printable, sizeof(printable), name, strlen(name)));
    }
    return 0;
}

/* A mesh that no cube here has room for: then the number of processors is not what is wrong. */
static bool refuse_mesh(struct request *request, uint64_t nprocs, const struct event *event, uint64_t cpus)
{
    uint32_t nodes =
        core_cube_for(engine_core(request->requests->room.engine), (uint32_t)nprocs, event->u.submit.mesh_rows);
    bool named = event->u.submit.hosts;
    if (!nodes || nprocs > cpus)
        return false;
    request_error(request, WIRE_CODE_REFUSED,
                  "the mesh of the job needs a cube of %" PRIu32 " hosts, and there is none among %s: ask for another "
                  "shape%s",
                  nodes, named ? "those of --hosts" : "the hosts of the cluster", named ? ", or name more hosts" : "");
    return true;
}

/* Hosts that were never up may have as many as any. */
static uint64_t reach_most(const struct core_reach *reach, uint32_t per_host)
{
    return reach->cpus +
           (uint64_t)reach->unknown * (per_host && per_host < CORE_MAX_CPUS ? per_host : (uint32_t)CORE_MAX_CPUS);
}

/* There would be enough processors, but not with so much memory, or not with so few of one host. */
static bool refuse_demand(struct request *request, uint64_t nprocs, const struct event *event,
                          const struct core_reach *reach)
{
    struct engine *engine = request->requests->room.engine;
    uint64_t memory_bytes = event->u.submit.memory_bytes, most = reach->cpus;
    const char *whose = event->u.submit.hosts ? "the hosts of --hosts" : "the cluster";
    char asked[BYTES_TEXT], has[BYTES_TEXT];
    if (nprocs > reach->cpus_there + (uint64_t)reach->unknown * CORE_MAX_CPUS || reach->most_memory_host < 0 ||
        nprocs <= reach_most(reach, event->u.submit.per_host)) /* it has another reason: its shape */
        return false;
    bytes_text(asked, memory_bytes);
    bytes_text(has, reach->most_memory_bytes);
    if (memory_bytes > reach->most_memory_bytes && !reach->unknown)
        request_error(request, WIRE_CODE_REFUSED,
                      "%s of memory %s asked for each processor, and no host of %s can hold that: %s has most of it "
                      "for jobs, %s: ask for less",
                      asked, memory_bytes == 1 ? "is" : "are", event->u.submit.hosts ? "--hosts" : "the cluster",
                      engine_host_name(engine, reach->most_memory_host), has);
    else if (memory_bytes)
        request_error(request, WIRE_CODE_REFUSED,
                      "%" PRIu64 " processor%s with %s of memory each%s are asked for, and %s can hold %" PRIu64
                      " at a time (%s has most memory for jobs, %s): ask for fewer, or for less memory",
                      nprocs, nprocs > 1 ? "s" : "", asked,
                      event->u.submit.per_host ? ", as many of one host as --per-host says," : "", whose, most,
                      engine_host_name(engine, reach->most_memory_host), has);
    else
        request_error(request, WIRE_CODE_REFUSED,
                      "%" PRIu64 " processors are asked for, at most %" PRIu32
                      " of each host, and of %s that is %" PRIu64 ": ask for fewer, or for more of each host",
                      nprocs, event->u.submit.per_host, whose, most);
    return true;
}

/* The core has refused it. */
static void explain_size(struct request *request, uint64_t nprocs, const struct event *event, const char *needs)
{
    const struct core_demand demand = {.memory_bytes = event->u.submit.memory_bytes,
                                       .per_host = event->u.submit.per_host};
    struct core_reach reach;
    bool named = event->u.submit.hosts;
    uint64_t most;
    core_reach(engine_core(request->requests->room.engine), event->u.submit.hosts, event->u.submit.nhosts,
               event->u.submit.needs, &demand, &reach);
    if ((demand.memory_bytes || demand.per_host) && refuse_demand(request, nprocs, event, &reach))
        return;
    most = reach_most(&reach, demand.per_host);
    if (refuse_mesh(request, nprocs, event, most))
        return;
    if (reach.lacking && !most)
        request_error(request, WIRE_CODE_REFUSED,
                      "no host of %s has %s, which the job needs: %shave it installed there",
                      named ? "--hosts" : "the cluster", needs, named ? "name other hosts, or " : "");
    else
        request_error(request, WIRE_CODE_REFUSED,
                      "%" PRIu64 " processor%s asked for, and %s%s%s%s only %" PRIu64 ": ask for fewer%s", nprocs,
                      nprocs == 1 ? " is" : "s are", named ? "the hosts of --hosts have" : "the cluster has",
                      reach.lacking ? ", with " : "", reach.lacking ? needs : "", reach.lacking ? "," : "", most,
                      named ? ", or name more hosts" : "");
}

static const char *needs_of(const struct wire_submit *submit, enum launcher_kind launcher)
{
    const char *needs = launcher_needs(launcher);
    return submit_is_machine(submit) ? "an rsd that knows virtual machines without a command (1.10)"
           : needs                   ? needs
           : submit->memory_bytes    ? "an rsd that says what memory it has (1.10)"
           : *submit->terminal       ? "an rsd that knows terminals (1.10)"
           : *submit->lines          ? "an rsd that knows lines of tasks (1.9)"
           : *submit->tasks          ? "an rsd that knows arrays (1.8)"
                                     : "";
}

/* ---- a submission that is only tried ---- */

/* Where a job would run, or did: hosts that do not hold it to its memory. */
static const char *memory_note(const struct request *request, const struct record *record, struct arena *memory)
{
    struct requests *requests = request->requests;
    char *text = NULL;
    size_t size, count = 0;
    const char *last = "";
    if (!record->submit->memory_bytes)
        return "";
    FILE *out = mem_stream(&text, &size);
    for (uint32_t i = 0; i < record->nprocessors; i++) {
        const char *name = record->processors[i].host;
        int host = core_host_by_name(engine_core(requests->room.engine), name);
        if (strcmp(name, last) == 0 || host < 0 || hosts_facts(requests->hosts, host).limits_memory)
            continue;
        if (count++ < NOTED)
            fprintf(out, "%s%s", count > 1 ? ", " : "", name);
        last = name;
    }
    if (count > NOTED)
        fprintf(out, " and %zu more", count - NOTED);
    if (count)
        fprintf(out, ": without the controller memory nothing holds the job to its memory there: it counts for what "
                     "other jobs get");
    mem_stream_end(out);
    const char *kept = arena_strdup(memory, count ? text : "");
    free(text);
    return kept;
}

static void answer_rehearsal(struct request *request, const struct engine_rehearsal *rehearsal)
{
    const struct record *record = rehearsal->record;
    struct arena memory = {0};
    char text[VIEW_TEXT], of_first[VIEW_TEXT];
    struct wire_message message = {.type = WIRE_rehearsed, .id = request->id};
    struct wire_rehearsed *r = &message.u.rehearsed;
    r->state = view_state(record->state);
    r->level = record->level;
    r->hosts.items = arena_array(&memory, record->nprocessors, sizeof(*r->hosts.items));
    for (uint32_t i = 0; i < record->nprocessors; i++)
        r->hosts.items[r->hosts.count++] = record->processors[i].host;
    r->above = (struct wire_uints){(uint64_t *)(uintptr_t)rehearsal->above, rehearsal->nabove};
    r->ahead = record->ahead;
    r->note = memory_note(request, record, &memory);
    r->reason = shown_reason(record, text, sizeof(text));
    if (rehearsal->first) {
        r->first = rehearsal->first->id;
        r->first_reason = shown_reason(rehearsal->first, of_first, sizeof(of_first));
    }
    request_send(request, &message);
    arena_fini(&memory);
    request_end(request);
}

/* Copying the core takes as long as the queue is, and meanwhile nobody is served: a tenth of the time at most. Who had
 * the last one has half of that, so that he locks out nobody else. */
static bool rehearsal_is_due(struct request *request)
{
    const struct requests *requests = request->requests;
    bool again = requests->rehearse_uid == request->uid;
    if (engine_now_ms() >= (again ? requests->rehearse_again_ms : requests->rehearse_ms))
        return true;
    request_error(request, WIRE_CODE_UNAVAILABLE, "elmer has tried another submission a moment ago: try again");
    return false;
}

static void rehearse(struct request *request, struct event *event)
{
    struct requests *requests = request->requests;
    struct engine_rehearsal rehearsal;
    int64_t begin_ms = engine_now_ms();
    if (!rehearsal_is_due(request))
        return;
    requests->rehearse_uid = request->uid;
    if (engine_rehearse(requests->room.engine, event, request->client->user, &request->message, &rehearsal))
        answer_rehearsal(request, &rehearsal);
    else
        explain_size(request, event->u.submit.nprocs, event,
                     needs_of(&request->message.u.submit, launcher_of(&request->message.u.submit)));
    int64_t end_ms = engine_now_ms(), took_ms = end_ms - begin_ms;
    requests->rehearse_ms = end_ms + (REHEARSAL_SHARE - 1) * took_ms;
    requests->rehearse_again_ms = end_ms + (2 * REHEARSAL_SHARE - 1) * took_ms;
    engine_rehearsal_fini(&rehearsal);
}

/* ---- the way of a submission ---- */

static void fill_tasks(const struct wire_submit *submit, struct event *event)
{
    struct tasks tasks;
    char why[TASKS_WHY];
    if (!*submit->tasks || tasks_parse(submit->tasks, true, &tasks, why))
        return;
    event->u.submit.ntasks = tasks.count;
    event->u.submit.task_limit = tasks.limit;
    event->u.submit.needs |= *submit->lines ? OFFERS_ARRAYS | OFFERS_LINES : OFFERS_ARRAYS;
}

static void submit_new(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    struct err err = ERR_INIT;
    struct wire_submit *submit = &request->message.u.submit;
    enum launcher_kind launcher = launcher_of(submit);
    struct core_after after[AFTER_MAX];
    int *hosts;
    if (!check_room(request) || !after_find(request) || (submit->notice && !notice_may_come(request)))
        return;
    if (submit->mesh_rows &&
        !core_cube_for(engine_core(engine), (uint32_t)submit->nprocs, (uint32_t)submit->mesh_rows)) {
        request_error(request, WIRE_CODE_REFUSED, "a mesh is asked for, and %s",
                      submit->nprocs % submit->mesh_rows ? "its rows do not divide the number of processors"
                                                         : "the hosts have no shape (topology = cube in elmer.conf)");
        return;
    }
    const char *here;
    const struct wire_strs names = notice_hosts(submit, &here);
    if (find_hosts(engine_core(engine), &names, &hosts, &err)) {
        free(hosts);
        request_error(request, WIRE_CODE_REFUSED, "%s%s",
                      submit->notice && !notice_reads(submit) ? "nobody can be told from here: " : "", err.text);
        return;
    }
    struct event event = {.type = EVENT_SUBMIT, .request = request->number};
    event.u.submit.uid = request->client->uid;
#define EVENT_ASKED(name, type, core, ...) JOB_IF(EVENT, core, event.u.submit.name = JOB_CAST(core, submit->name);)
    JOB_FIELDS(EVENT_ASKED, JOB_NONE, JOB_NONE)
    event.u.submit.hosts = hosts;
    event.u.submit.nhosts = (int)names.count;
    after_fill(request, &event, after);
    event.u.submit.needs = launcher_needs(launcher) ? 1u << launcher : 0;
    if (*submit->terminal)
        event.u.submit.needs |= OFFERS_TERMINALS;
    fill_tasks(submit, &event);
    if (submit->memory_bytes)
        event.u.submit.needs |= OFFERS_MEMORY;
    if (submit_is_machine(submit))
        event.u.submit.needs |= OFFERS_MACHINES;
    if (request->type == WIRE_rehearse) {
        rehearse(request, &event);
        free(hosts);
        return;
    }
    uint64_t number = request->number, nprocs = submit->nprocs;
    const char *needs = needs_of(submit, launcher); /* engine_submit() takes the message */
    request->job = core_next_id(engine_core(engine));
    request->holder = HOLDER_CORE;
    if (!engine_submit(engine, &event, request->client->user, &request->message)) {
        assert(request->number == number);
        explain_size(request, nprocs, &event, needs);
    } /* else the request may be gone already */
    free(hosts);
}

/* Its first submission is on disk. */
static void on_accepted(const struct engine_wait *wait)
{
    struct request *request = requests_find(wait->owner, wait->number);
    if (request)
        submit_answer(request, wait->job);
}

/* A retry of a submission whose job is in memory. */
static bool answer_repeated(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    const struct engine_job *job =
        jobs_by_token(engine_jobs(engine), request->client->uid, request->message.u.submit.token);
    if (!job)
        return false;
    request->job = job->id;
    if (engine_job_accepted(engine, job)) {
        submit_answer(request, job->id);
        return true;
    }
    request->holder = HOLDER_CORE;
    struct engine_wait wait = {.run = on_accepted,
                               .owner = request->requests,
                               .urgency = ENGINE_ANSWER,
                               .number = request->number,
                               .job = job->id,
                               .host = -1};
    engine_after_commit(engine, &wait);
    return true;
}

void submit_again(struct request *request)
{
    if (request->type == WIRE_rehearse || !answer_repeated(request)) /* it may have come twice meanwhile */
        submit_new(request);
}

static void on_found(struct record **records, size_t count, const char *error, void *data)
{
    struct request *request = data;
    request->holder = HOLDER_NONE;
    if (!request->client)
        request_end(request);
    else if (error)
        request_error(request, WIRE_CODE_REFUSED, "elmer cannot read its store: %s; try again with the same token",
                      error);
    else if (count)
        answer_record(request, records[0]);
    else
        submit_again(request);
    for (size_t i = 0; i < count; i++)
        record_destroy(records[i]);
}

void submit_begin(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    struct wire_submit *submit = &request->message.u.submit; /* of a rehearsal too: its fields are the same */
    struct err err = ERR_INIT;
    static_assert(sizeof(struct wire_submit) == sizeof(struct wire_rehearse), "both have JOB_SUBMIT_FIELDS");
    if (!check_user(request))
        return;
    if (submit_check(request->requests->settings, submit, &err)) {
        request_error(request, WIRE_CODE_REFUSED, "%s", err.text);
        return;
    }
    if (!*submit->name)
        default_name(submit, request->name, sizeof(request->name));
    submit->submit_host = client_host_name(request->client);
    if (submit_check_ticket(request, &err)) {
        request_error(request, WIRE_CODE_REFUSED, "%s", err.text);
        return;
    }
    if (request->type == WIRE_submit && answer_repeated(request))
        return;
    if (engine_store_failure(engine)) {
        request_error(request, WIRE_CODE_UNAVAILABLE, "the job is not accepted: %s", engine_store_failure(engine));
        return;
    }
    if (request->type == WIRE_rehearse) {
        submit_new(request);
        return;
    }
    request->holder = HOLDER_STORE;
    store_find(engine_store(engine), request->client->uid, submit->token, on_found, request);
}
