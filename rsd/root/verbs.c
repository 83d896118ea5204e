/* verbs.c - what the network half may ask for: one table, at the end.
 *
 * The network half may have been taken over, so everything in a message is judged here as if a stranger had sent it.
 * The decoder has held it to its types and limits (lib/wire/messages.def: numbers, lengths, UTF-8 without NUL) and
 * takes only messages that elmer may send. Then, by the table: is the job that it names in a state in which the verb
 * acts, are its arguments good. A verb that is refused says why, where it has an answer for that; else it does nothing.
 * A job is only what this half has opened or adopted; no message names a group, a pid, a socket or a directory of ours.
 * The paths of a `start` are passed on unread: only the process that has become the user opens them.
 */
#include "config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "rsd/root/cpus.h"
#include "rsd/root/internal.h"
#include "rsd/root/order_file.h"

/* ---- arguments ---- */

/* Of the host's CPUs, and at least one. */
static bool cpus_are_ours(const struct root *root, const struct wire_uints *list, cpu_set_t *cpus)
{
    return list->count > 0 && cpus_from_list(list->items, list->count, cpus) && cpus_within(cpus, &root->cpus);
}

/* Goes to the name service and into the log. */
static bool is_user_name(const char *name)
{
    if (!name[0] || name[0] == '-')
        return false;
    for (; *name; name++) {
        if (iscntrl((unsigned char)*name) || *name == ':' || *name == '/')
            return false;
    }
    return true;
}

/* CPUs that are not ours, or are more than its ticket is for, are left out when it is applied (ranks.c): they may have
 * been ours when the job came. */
static bool check_order(const struct root *root, const struct root_job *job, const struct wire_message *message,
                        struct err *err)
{
    (void)root;
    (void)job;
    if (message->u.order.entries.count <= MAX_ORDER)
        return true;
    err_set(err, -1, "an order of %zu jobs, for a host that has at most %d", message->u.order.entries.count, MAX_JOBS);
    return false;
}

/* By PAM, not long ago: why; NULL: not that it were known. */
static const char *account_refused(const struct root *root, const struct wire_open *open)
{
    const char *said = admission_recall(&root->admission, open->user, (uid_t)open->uid, mono_ms(mono_now())).account;
    return said && said[0] ? said : NULL;
}

static bool check_open(const struct root *root, const struct root_job *job, const struct wire_message *message,
                       struct err *err)
{
    const struct wire_open *open = &message->u.open;
    cpu_set_t cpus;
    if (open->uid >= UINT32_MAX || open->job == 0 || !is_user_name(open->user))
        err_set(err, -1, "the job has no user or no number: this is a fault of elmer");
    else if (open->uid < root->config->minimum_uid)
        err_set(err, -1,
                "uid %" PRIu64 " (%s) may not run jobs on %s, where minimum_uid is %" PRIu32
                "; its administrator can change that in rsd.conf",
                open->uid, open->user, root->config->name, root->config->minimum_uid);
    else if (job && job->uid != open->uid)
        err_set(err, -1, "this job is open here for another user: this is a fault of elmer");
    else if (!cpus_are_ours(root, &open->cpus, &cpus))
        err_set(err, -1, "the job's processors are not processors of %s: elmer.conf and the host disagree",
                root->config->name);
    else if (!job && account_refused(root, open))
        err_set(err, -1, "%s", account_refused(root, open));
    else if (!job && root->job_count - job_count_live(root) >= MAX_TOMBSTONES)
        err_set(err, -1,
                "%s keeps the results of %d jobs that elmer has not on its disk yet: see why its store cannot be "
                "written",
                root->config->name, MAX_TOMBSTONES);
    else if (!job && job_count_live(root) >= MAX_JOBS)
        err_set(err, -1, "%s has %d jobs already", root->config->name, MAX_JOBS);
    else
        return job ? tickets_let_open_again(root, job, open->cpus.count, err) : tickets_let_open(root, open, err);
    return false;
}

static bool check_start(const struct root *root, const struct root_job *job, const struct wire_message *message,
                        struct err *err)
{
    const struct wire_start *start = &message->u.start;
    enum job_role role;
    cpu_set_t cpus;
    if (!role_by_name(start->role, &role) || start->argv.count == 0)
        err_set(err, -1, "no such role, or no command: this is a fault of elmer");
    else if (!cpus_are_ours(root, &start->cpus, &cpus) || (job->ncpus > 0 && !cpus_within(&cpus, &job->cpus)))
        err_set(err, -1, "the process's processors are not processors of its job: this is a fault of elmer");
    else
        return tickets_let_start(root, job, start, err);
    return false;
}

/* ---- what they do ---- */

static void do_order(struct root *root, struct root_job *job, const struct wire_message *message)
{
    (void)job;
    if (root->order_asked)
        tell_ordered(root, root->order_id); /* the one before is still being applied, or has been overtaken */
    root->order_asked = true;
    root->order_id = message->id;
    if (order_replace(&root->order, &message->u.order) > 0) {
        root->ordered_ns = mono_now().ns;
        ranks_apply_all(root);
        order_file_keep(root->config, &message->u.order);
    }
    ranks_settle(root);
}

static void do_open(struct root *root, struct root_job *job, const struct wire_message *message)
{
    const struct wire_open *open = &message->u.open;
    cpu_set_t cpus;
    cpus_from_list(open->cpus.items, open->cpus.count, &cpus);
    if (!lease_held(root, (int64_t)open->lease_ms)) {
        log_notice("job %" PRIu64 " is not opened now: there is no contact with elmer that its lease could count from",
                   open->job);
        return; /* it is sent again */
    }
    if (!job) {
        open_new(root, message, &cpus);
        return;
    }
    job->cpus = cpus; /* an adopted job has none yet */
    job->ncpus = open->cpus.count;
    tickets_bound(root, job);
    job_ask_open(job, message->id, open->generation);
    job_try_opened(root, job);
}

static void do_start(struct root *root, struct root_job *job, const struct wire_message *message)
{
    const struct wire_start *start = &message->u.start;
    struct job_process *process = job_process(job, (uint32_t)start->process, true);
    enum job_role role = ROLE_COMMAND;
    tickets_begun(root, job);
    if (!process) {
        tell_start_failed(root, message, "the job has started too many processes on this host");
        return;
    }
    role_by_name(start->role, &role);
    if (process->pid == 0 && !process->exited)
        process->role = role;
    process->rank_changes = job->rank_changes;
    tell_held(job, true);
    tell_supervisor(job, message);
    if (!job->waits)
        ranks_look(job); /* its first process may be one that waits */
    tell_held(job, false);
}

static void do_taken(struct root *root, struct root_job *job, const struct wire_message *message)
{
    struct job_process *process = job_process(job, (uint32_t)message->u.taken.process, false);
    (void)root;
    if (!process || !process->exited)
        return;
    process->acknowledged = true;
    tell_supervisor(job, message);
}

static void do_end(struct root *root, struct root_job *job, const struct wire_message *message)
{
    const struct wire_end *end = &message->u.end;
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

static void do_forget(struct root *root, struct root_job *job, const struct wire_message *message)
{
    (void)message;
    result_drop(root, job);
    job_drop(root, job);
}

static void do_signal(struct root *root, struct root_job *job, const struct wire_message *message)
{
    if (message->u.signal.number > 0)
        death_signal_asked(root, job, (int)message->u.signal.number);
}

static void do_helpers(struct root *root, struct root_job *job, const struct wire_message *message)
{
    if (message->type == WIRE_pvm_finish)
        boost_finish(root, job);
    tell_supervisor(job, message);
}

static void do_resync(struct root *root, struct root_job *none, const struct wire_message *message)
{
    (void)none;
    tell_state(root, message->id);
    for (size_t i = 0; i < root->job_count; i++) {
        const struct root_job *job = root->jobs[i];
        for (size_t k = 0; k < job->process_count; k++) {
            if (job->processes[k].exited && !job->processes[k].acknowledged)
                tell_exited(root, job, &job->processes[k]);
        }
        if (job->lost[0] && !job->end_asked)
            tell_lost(root, job);
        if (job->state == JOB_EMPTY && job->end_asked)
            tell_empty(root, job->id, job->attempt, 0, job->cpu_seconds, job->memory_peak_bytes);
    }
}

/* Shown in the status of the service, and nothing else. */
static void do_uplink(struct root *root, struct root_job *none, const struct wire_message *message)
{
    (void)none;
    str_printable(root->uplink, sizeof(root->uplink), message->u.uplink.text, strlen(message->u.uplink.text));
    place_say(root, false);
}

static void do_contact(struct root *root, struct root_job *none, const struct wire_message *message)
{
    (void)none;
    lease_contact(root, message->u.contact.said_ms);
}

static void do_ping(struct root *root, struct root_job *job, const struct wire_message *message)
{
    struct wire_message pong = {.type = WIRE_pong, .id = message->id};
    (void)job;
    tell(root, &pong);
}

/* ---- refusals ---- */

static void refuse_order(struct root *root, const struct wire_message *message, const char *text)
{
    log_error("refused: %s", text);
    tell_ordered(root, message->id); /* what holds is still the older one */
}

static void refuse_open(struct root *root, const struct wire_message *message, const char *text)
{
    tell_open_failed(root, message->u.open.job, (uint32_t)message->u.open.attempt, message->id, text);
}

/* ---- the table ---- */

#define IN(state) (1U << (state))
enum {
    UNKNOWN = IN(ROOT_JOB_STATES), /* also a job that is not there */
    ANY = IN(ROOT_JOB_STATES) - 1,
    NO_JOB = 0 /* the verb names none */
};

static const struct verb {
    enum wire_type type;
    unsigned states; /* of the job that it names */
    bool (*check)(const struct root *, const struct root_job *, const struct wire_message *, struct err *);
    void (*act)(struct root *, struct root_job *, const struct wire_message *);
    void (*refuse)(struct root *, const struct wire_message *, const char *text);
    const char *unknown, *not_now; /* why not, if it is not in one of these states */
} verbs[] = {
    {WIRE_order, NO_JOB, check_order, do_order, refuse_order, NULL, NULL},
    {WIRE_open, UNKNOWN | IN(JOB_OPENING) | IN(JOB_OPEN), check_open, do_open, refuse_open, NULL,
     "the job is ending or has ended here"},
    {WIRE_start, IN(JOB_OPEN), check_start, do_start, tell_start_failed,
     "the job is not known on this host: rsd or its supervisor was killed",
     "the job is not open on this host (any more)"},
    {WIRE_taken, ANY, NULL, do_taken, NULL, NULL, NULL},
    {WIRE_end, UNKNOWN | ANY, NULL, do_end, NULL, NULL, NULL},
    {WIRE_signal, IN(JOB_OPEN), NULL, do_signal, NULL, NULL, NULL},
    {WIRE_read_file, IN(JOB_OPEN), NULL, reading_ask, reading_refuse, "the job is not known on this host (any more)",
     "the job is not open on this host (any more)"},
    {WIRE_forget, IN(JOB_EMPTY), NULL, do_forget, NULL, NULL, NULL},
    {WIRE_pvm_spawned, IN(JOB_OPEN) | IN(JOB_TERMINATING), NULL, do_helpers, NULL, NULL, NULL},
    {WIRE_pvm_finish, IN(JOB_OPEN) | IN(JOB_TERMINATING), NULL, do_helpers, NULL, NULL, NULL},
    {WIRE_resync, NO_JOB, NULL, do_resync, NULL, NULL, NULL},
    {WIRE_contact, NO_JOB, NULL, do_contact, NULL, NULL, NULL},
    {WIRE_uplink, NO_JOB, NULL, do_uplink, NULL, NULL, NULL},
    {WIRE_ping, NO_JOB, NULL, do_ping, NULL, NULL, NULL},
};

static struct root_job *named(const struct root *root, const struct wire_message *message)
{
    switch ((int)message->type) {
#define NAMES(verb)                                                                                                    \
    case WIRE_##verb:                                                                                                  \
        return job_find(root, message->u.verb.job, (uint32_t)message->u.verb.attempt)
        NAMES(open);
        NAMES(start);
        NAMES(taken);
        NAMES(end);
        NAMES(signal);
        NAMES(read_file);
        NAMES(forget);
        NAMES(pvm_spawned);
        NAMES(pvm_finish);
#undef NAMES
    default:
        return NULL;
    }
}

/* Below a job that has run for long, and too much begins there. Before it is judged: that costs, too. */
static bool must_wait(struct root *root, const struct wire_open *open)
{
    cpu_set_t cpus;
    return cpus_are_ours(root, &open->cpus, &cpus) && starts_below(root, open, &cpus) && !starts_paid(root);
}

static void run(const struct verb *verb, struct root *root, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    struct root_job *job = named(root, message);
    unsigned state = job ? IN(job->state) : UNKNOWN;
    bool fits = verb->states == NO_JOB || (verb->states & state);
    if (job && job->discard && message->type == WIRE_open)
        return; /* what is left of it here is being removed, and elmer asks again for what is not confirmed */
    if (!job && message->type == WIRE_open && must_wait(root, &message->u.open))
        return; /* so it does with this one */
    if (fits && (!verb->check || verb->check(root, job, message, &err)))
        verb->act(root, job, message);
    else if (verb->refuse && !(root->tickets && root->tickets->gone)) /* else nobody has judged it */
        verb->refuse(root, message, fits ? err.text : job ? verb->not_now : verb->unknown);
}

void verbs_run(struct root *root, const struct wire_message *message)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (verbs[i].type == message->type) {
            run(&verbs[i], root, message);
            return;
        }
    }
    log_error("the network half asked for %s, which is no verb: stopping", wire_type_name(message->type));
    root->stop = true;
    root->status = 1;
}
