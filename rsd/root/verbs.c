/* verbs.c - what the network half may ask for: one table. Everything in a message is checked here as if a stranger had
 * sent it, because the network half may have been taken over. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libelmer/base/clock.h"
#include "libelmer/base/log.h"
#include "rsd/root/cpus.h"
#include "rsd/root/internal.h"
#include "rsd/root/scope.h"

static void tell_ordered(struct root *root, uint64_t id)
{
    struct wire_message message = {.type = WIRE_ordered, .id = id};
    message.u.ordered.generation = root->order.generation;
    tell(root, &message);
}

static void verb_order(struct root *root, const struct wire_message *message)
{
    int64_t begin = mono_ms(mono_now());
    if (order_replace(&root->order, &message->u.order) > 0) {
        ranks_apply_all(root);
        log_debug("order %" PRIu64 " of %zu jobs is applied in %" PRId64 " ms", root->order.generation,
                  root->order.count, mono_ms(mono_now()) - begin);
    }
    tell_ordered(root, message->id);
    for (size_t i = 0; i < root->job_count; i++)
        job_try_opened(root, root->jobs[i]);
}

/* Of the host's CPUs, and at least one. */
static bool cpus_are_ours(const struct root *root, const struct wire_uints *list, cpu_set_t *cpus)
{
    return list->count > 0 && cpus_from_list(list->items, list->count, cpus) && cpus_within(cpus, &root->cpus);
}

static bool open_is_fine(const struct root *root, const struct wire_open *open, cpu_set_t *cpus, struct err *err)
{
    if (open->uid < root->config->minimum_uid)
        err_set(err, -1,
                "uid %" PRIu64 " (%s) may not run jobs on %s, where minimum_uid is %" PRIu32
                "; its administrator can change that in rsd.conf",
                open->uid, open->user, root->config->name, root->config->minimum_uid);
    else if (open->uid >= UINT32_MAX || !open->user[0] || open->job == 0)
        err_set(err, -1, "the job has no user or no number: this is a fault of elmer");
    else if (!cpus_are_ours(root, &open->cpus, cpus))
        err_set(err, -1, "the job's processors are not processors of %s: elmer.conf and the host disagree",
                root->config->name);
    else if (job_count_live(root) >= MAX_JOBS)
        err_set(err, -1, "%s has %d jobs already", root->config->name, MAX_JOBS);
    else
        return true;
    return false;
}

/* The scope may have been stopped, or its keeper killed: then its directory is gone. */
static int make_group(struct root *root, struct job *job, struct err *err)
{
    struct err again = ERR_INIT;
    int fd, result = group_open(root->groups_fd, job->name, true, &job->group, err);
    if (result == 0)
        return 0;
    fd = scope_open(root->config, root->groups, sizeof root->groups, &again);
    if (fd < 0)
        return result;
    close(root->groups_fd);
    root->groups_fd = fd;
    err_clear(err);
    return group_open(root->groups_fd, job->name, true, &job->group, err);
}

static void open_new(struct root *root, const struct wire_message *message, const cpu_set_t *cpus)
{
    const struct wire_open *open = &message->u.open;
    struct err err = ERR_INIT;
    struct job *job = job_add(root, open->job, (uint32_t)open->attempt);
    if (!job) {
        tell_open_failed(root, open->job, (uint32_t)open->attempt, message->id, "out of memory");
        return;
    }
    job->uid = (uid_t)open->uid;
    job->pvm = open->pvm;
    job->cpus = *cpus;
    job->ncpus = open->cpus.count;
    job->open_asked = true;
    job->open_id = message->id;
    job->open_generation = open->generation;
    job->remover = 0;
    if (make_group(root, job, &err) < 0 || supervisor_start(root, job, open->user, &err) < 0) {
        tell_open_failed(root, job->id, job->attempt, message->id, err.text);
        job->open_asked = false;
        job->discard = true;
        job->supervisor_gone = !job->connected;
        ending_begin(root, job, 0);
        return;
    }
    group_confine(&job->group, open->cpus.items, open->cpus.count);
    job->deadline_ms = mono_ms(mono_now()) + OPEN_MS;
    ranks_apply(root, job);
    if (job->pvm)
        ranks_boost(root, job, PVM_BOOST_MS);
}

static void verb_open(struct root *root, const struct wire_message *message)
{
    const struct wire_open *open = &message->u.open;
    struct job *job = job_find(root, open->job, (uint32_t)open->attempt);
    struct err err = ERR_INIT;
    cpu_set_t cpus;
    if (!job) {
        if (open_is_fine(root, open, &cpus, &err))
            open_new(root, message, &cpus);
        else
            tell_open_failed(root, open->job, (uint32_t)open->attempt, message->id, err.text);
        return;
    }
    if (job->state > JOB_OPEN) {
        tell_open_failed(root, job->id, job->attempt, message->id,
                         job->state == JOB_EMPTY ? "the job has ended here" : "the job is ending here");
        return;
    }
    if (job->uid != open->uid && job->state == JOB_OPEN) {
        tell_open_failed(root, job->id, job->attempt, message->id,
                         "this job is open here for another user: this is a fault of elmer");
        return;
    }
    if (cpus_are_ours(root, &open->cpus, &cpus)) { /* an adopted job has none yet */
        job->cpus = cpus;
        job->ncpus = open->cpus.count;
    }
    job->open_asked = true;
    job->open_id = message->id;
    job->open_generation = open->generation;
    job_try_opened(root, job);
}

static void verb_start(struct root *root, const struct wire_message *message)
{
    const struct wire_start *start = &message->u.start;
    struct job *job = job_find(root, start->job, (uint32_t)start->attempt);
    struct job_process *process;
    enum job_role role;
    cpu_set_t cpus;
    if (!job || job->state != JOB_OPEN) {
        tell_start_failed(root, message,
                          job ? "the job is not open on this host (any more)"
                              : "the job is not known on this host: rsd or its supervisor was killed");
    } else if (!role_by_name(start->role, &role) || start->argv.count == 0) {
        tell_start_failed(root, message, "no such role, or no command: this is a fault of elmer");
    } else if (!cpus_are_ours(root, &start->cpus, &cpus) || (job->ncpus > 0 && !cpus_within(&cpus, &job->cpus))) {
        tell_start_failed(root, message,
                          "the process's processors are not processors of its job: this is a fault of elmer");
    } else if (!(process = job_process(job, (uint32_t)start->process, true))) {
        tell_start_failed(root, message, "the job has started too many processes on this host");
    } else {
        if (process->pid == 0 && !process->exited)
            process->role = role;
        tell_supervisor(job, message);
    }
}

static void verb_taken(struct root *root, const struct wire_message *message)
{
    struct job *job = job_find(root, message->u.taken.job, (uint32_t)message->u.taken.attempt);
    struct job_process *process = job ? job_process(job, (uint32_t)message->u.taken.process, false) : NULL;
    if (!process || !process->exited)
        return;
    process->taken = true;
    tell_supervisor(job, message);
}

static void verb_end(struct root *root, const struct wire_message *message)
{
    const struct wire_end *end = &message->u.end;
    struct job *job = job_find(root, end->job, (uint32_t)end->attempt);
    int64_t now = mono_ms(mono_now());
    if (!job) {
        tell_empty(root, end->job, (uint32_t)end->attempt, message->id, -1, -1);
        return;
    }
    job->end_asked = true;
    job->open_asked = false;
    if (job->state == JOB_EMPTY)
        tell_empty(root, job->id, job->attempt, message->id, job->cpu_seconds, job->memory_peak_bytes);
    else if (job->state == JOB_TERMINATING && now + (int64_t)end->grace_ms < job->deadline_ms)
        job->deadline_ms = now + (int64_t)end->grace_ms;
    else
        ending_begin(root, job, (int64_t)end->grace_ms);
}

static void verb_forget(struct root *root, const struct wire_message *message)
{
    struct job *job = job_find(root, message->u.forget.job, (uint32_t)message->u.forget.attempt);
    if (job && job->state == JOB_EMPTY)
        job_drop(root, job);
}

static void verb_pvm(struct root *root, const struct wire_message *message)
{
    bool finish = message->type == WIRE_pvm_finish;
    uint64_t id = finish ? message->u.pvm_finish.job : message->u.pvm_spawned.job;
    uint64_t attempt = finish ? message->u.pvm_finish.attempt : message->u.pvm_spawned.attempt;
    struct job *job = job_find(root, id, (uint32_t)attempt);
    if (!job || (job->state != JOB_OPEN && job->state != JOB_TERMINATING))
        return;
    if (finish)
        ranks_boost(root, job, PVM_BOOST_MS);
    tell_supervisor(job, message);
}

static void verb_resync(struct root *root, const struct wire_message *message)
{
    tell_state(root, message->id);
    for (size_t i = 0; i < root->job_count; i++) {
        const struct job *job = root->jobs[i];
        for (size_t k = 0; k < job->process_count; k++) {
            if (job->processes[k].exited && !job->processes[k].taken)
                tell_exited(root, job, &job->processes[k]);
        }
        if (job->lost[0] && !job->end_asked)
            tell_lost(root, job);
        if (job->state == JOB_EMPTY && job->end_asked)
            tell_empty(root, job->id, job->attempt, 0, job->cpu_seconds, job->memory_peak_bytes);
    }
}

static void verb_ping(struct root *root, const struct wire_message *message)
{
    struct wire_message pong = {.type = WIRE_pong, .id = message->id};
    tell(root, &pong);
}

static const struct verb {
    enum wire_type type;
    void (*run)(struct root *root, const struct wire_message *message);
} verbs[] = {
    {WIRE_order, verb_order},    {WIRE_open, verb_open},     {WIRE_start, verb_start},   {WIRE_taken, verb_taken},
    {WIRE_end, verb_end},        {WIRE_forget, verb_forget}, {WIRE_resync, verb_resync}, {WIRE_pvm_spawned, verb_pvm},
    {WIRE_pvm_finish, verb_pvm}, {WIRE_ping, verb_ping},
};

void verbs_run(struct root *root, const struct wire_message *message)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (verbs[i].type == message->type) {
            verbs[i].run(root, message);
            return;
        }
    }
    log_error("the network half asked for %s, which is no verb: stopping", wire_type_name(message->type));
    root->stop = true;
    root->status = 1;
}
