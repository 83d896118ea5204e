/* jobs.c - the table of jobs on this host and the moves between their states. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "rsd/root/internal.h"

static const struct moves_row states[ROOT_JOB_STATES] = {
    [JOB_OPENING] = {"opening",
                     MOVE_TO(JOB_OPEN) | MOVE_TO(JOB_TERMINATING) | MOVE_TO(JOB_KILLING) | MOVE_TO(JOB_CLOSING)},
    [JOB_OPEN] = {"open", MOVE_TO(JOB_TERMINATING) | MOVE_TO(JOB_KILLING) | MOVE_TO(JOB_CLOSING)},
    [JOB_TERMINATING] = {"terminating", MOVE_TO(JOB_KILLING) | MOVE_TO(JOB_CLOSING)},
    [JOB_KILLING] = {"killing", MOVE_TO(JOB_CLOSING)},
    [JOB_CLOSING] = {"closing", MOVE_TO(JOB_EMPTY)},
    [JOB_EMPTY] = {"empty", 0},
};

const char *job_state_name(enum root_job_state state)
{
    return state < ROOT_JOB_STATES ? states[state].name : "?";
}

void job_move(struct root_job *job, enum root_job_state to)
{
    MOVES_CHECK("job", states, job->state, to);
    job->state = to;
    job->deadline_ms = 0;
    job->retry_ms = 0;
    job->backoff_ms = 0;
}

struct root_job *job_find(const struct root *root, uint64_t id, uint32_t attempt)
{
    for (size_t i = 0; i < root->job_count; i++) {
        if (root->jobs[i]->id == id && root->jobs[i]->attempt == attempt)
            return root->jobs[i];
    }
    return NULL;
}

size_t job_count_live(const struct root *root)
{
    size_t count = 0;
    for (size_t i = 0; i < root->job_count; i++)
        count += root->jobs[i]->state != JOB_EMPTY;
    return count;
}

struct root_job *job_add(struct root *root, uint64_t id, uint32_t attempt)
{
    struct root_job *job;
    if (root->job_count == root->job_capacity) {
        size_t capacity = root->job_capacity ? root->job_capacity * 2 : 16;
        struct root_job **jobs = reallocarray(root->jobs, capacity, sizeof(struct root_job *));
        if (!jobs)
            return NULL;
        root->jobs = jobs;
        root->job_capacity = capacity;
    }
    job = calloc(1, sizeof(*job));
    if (!job)
        return NULL;
    job->id = id;
    job->attempt = attempt;
    snprintf(job->name, sizeof(job->name), "%" PRIu64 ".%" PRIu32, id, attempt);
    job->state = JOB_OPENING;
    job->since_ms = job->sweep_ms = job->scan_ms = job->news_ms = mono_ms(mono_now());
    job->sweep_step_ms = SWEEP_MS;
    boost_init_job(job);
    death_init_job(job);
    walks_init_job(job);
    job->group = (struct cgroup)CGROUP_INIT;
    job->supervisor.fd = job->errand_fd = -1;
    job->walk.pass = (struct sched_pass)SCHED_PASS_INIT;
    job->supervisor_pidfd = job->remove_fd = -1;
    job->cpu_seconds = -1;
    job->memory_peak_bytes = -1;
    root->jobs[root->job_count++] = job;
    return job;
}

void job_drop(struct root *root, struct root_job *job)
{
    size_t i = 0;
    while (i < root->job_count && root->jobs[i] != job)
        i++;
    assert(i < root->job_count);
    memmove(&root->jobs[i], &root->jobs[i + 1], (root->job_count - i - 1) * sizeof(struct root_job *));
    root->job_count--;
    walk_stop(job);
    death_errand_forget(job);
    group_close(&job->group);
    free(job->ticket);
    if (job->connected)
        channel_fini(&job->supervisor);
    if (job->supervisor_pidfd >= 0)
        close(job->supervisor_pidfd);
    if (job->remove_fd >= 0)
        close(job->remove_fd);
    free(job->processes);
    group_pids_fini(&job->seen);
    free(job);
}

struct job_process *job_process(struct root_job *job, uint32_t number, bool make)
{
    struct job_process *processes;
    for (size_t i = 0; i < job->process_count; i++) {
        if (job->processes[i].number == number)
            return &job->processes[i];
    }
    if (!make || job->process_count >= MAX_PROCESSES)
        return NULL;
    processes = reallocarray(job->processes, job->process_count + 1, sizeof(*processes));
    if (!processes)
        return NULL;
    job->processes = processes;
    processes[job->process_count] = (struct job_process){.number = number};
    return &processes[job->process_count++];
}

struct job_process *job_process_last(struct root_job *job, struct job_process *process)
{
    struct job_process copy = *process, *last = &job->processes[job->process_count - 1];
    assert(process >= job->processes && process <= last);
    memmove(process, process + 1, (size_t)(last - process) * sizeof(copy));
    *last = copy;
    return last;
}

void job_helper_add(struct root_job *job, pid_t pid)
{
    for (size_t i = 0; i < job->helper_count; i++) {
        if (job->helpers[i] == pid)
            return;
    }
    if (job->helper_count == MAX_HELPERS)
        return;
    job->helpers[job->helper_count] = pid;
    job->helper_cpu_ns[job->helper_count] = budget_process_ns(pid);
    job->helper_seen_ns[job->helper_count++] = -1;
}

void job_helper_remove(struct root_job *job, pid_t pid)
{
    for (size_t i = 0; i < job->helper_count; i++) {
        if (job->helpers[i] != pid)
            continue;
        job->helper_count--;
        job->helpers[i] = job->helpers[job->helper_count];
        job->helper_cpu_ns[i] = job->helper_cpu_ns[job->helper_count];
        job->helper_seen_ns[i] = job->helper_seen_ns[job->helper_count];
        return;
    }
}

bool job_name_parse(const char *name, uint64_t *id, uint32_t *attempt)
{
    char copy[48];
    uint64_t number;
    char *dot;
    if (snprintf(copy, sizeof(copy), "%s", name) >= (int)sizeof(copy))
        return false;
    dot = strchr(copy, '.');
    if (!dot)
        return false;
    *dot++ = 0;
    if (!str_to_u64(copy, id) || !str_to_u64(dot, &number) || number > UINT32_MAX)
        return false;
    *attempt = (uint32_t)number;
    return true;
}
