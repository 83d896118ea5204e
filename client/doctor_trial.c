/* doctor_trial.c - the jobs of eadmin doctor.
 *
 * On each host one, elmer-doctor, which tells of it in its output and waits; the output is read from here, and the job
 * is ended. All of them are submitted before the first is waited for. Then one with PVM and one by mpirun or mpiexec
 * over all of the hosts that have these. What has not happened in time is told with elmer's own reason, and is ended.
 */
#include "config.h"

#include "client/doctor.h"

#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/common.h"
#include "client/source.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"

enum {
    TRIAL_MS = 30000,
    ROUND_MS = 10000,
    PAUSE_MS = 100,
    OTHERS_MAX = 64 /* names that a host is asked for */
};
#define PROGRAM ELMER_LIBEXECDIR "/elmer-doctor"

struct trial {
    const struct doctor_host *host;
    uint64_t job; /* 0: it was refused */
    int64_t before_s;
};

/* ---- one job ---- */

/* 0: refused, and said. hosts end with NULL. */
static uint64_t submit(struct findings *findings, struct elmer *elmer, const char *where, const char *check,
                       const char *const *hosts, size_t nprocs, const char *const *command, const char *output,
                       bool pvm)
{
    static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL};
    const struct passwd *user = getpwuid(geteuid());
    char home[300];
    const char *own[] = {environment[0], environment[1], home, NULL};
    struct elmer_submission submission = {.nprocs = (uint32_t)nprocs,
                                          .command = command,
                                          .pvm = pvm,
                                          .name = "doctor",
                                          .dir = "/",
                                          .output = output,
                                          .environment = own,
                                          .hosts = hosts,
                                          .umask = 077};
    struct elmer_submitted *submitted;
    struct elmer_error error = {{0}};
    uint64_t job;

    snprintf(home, sizeof(home), "HOME=%s", user ? user->pw_dir : "/");
    if (elmer_submit(elmer, &submission, ANSWER_MS, &submitted, &error) != ELMER_OK) {
        finding_add(findings, FINDING_BAD, where, check, "no job can be tried: %s", error.text);
        return 0;
    }
    job = submitted->job;
    elmer_submitted_free(submitted);
    return job;
}

static struct elmer_jobs *look(struct elmer *elmer, uint64_t job)
{
    struct elmer_jobs *jobs;

    if (elmer_query(elmer, false, false, &job, 1, ANSWER_MS, &jobs, NULL) != ELMER_OK)
        return NULL;
    if (jobs->count == 1)
        return jobs;
    elmer_jobs_free(jobs);
    return NULL;
}

/* Ended or not begun: nothing of it stays. */
static void end(struct elmer *elmer, uint64_t job)
{
    struct elmer_jobs *jobs;

    if (elmer_kill(elmer, job, ANSWER_MS, NULL, NULL) != ELMER_OK)
        (void)elmer_cancel(elmer, job, ANSWER_MS, NULL, NULL);
    if (elmer_wait(elmer, job, ANSWER_MS, &jobs, NULL) == ELMER_OK)
        elmer_jobs_free(jobs);
}

static void say_end(struct findings *findings, const char *where, const char *check, const struct elmer_job *job,
                    size_t hosts, int64_t begun_ms)
{
    const struct doctor_trial trial = {.state = job->state,
                                       .reason = job->reason,
                                       .hosts = hosts,
                                       .ended = elmer_job_ended(job),
                                       .exit_status = job->exit_status,
                                       .seconds = (long)((mono_ms(mono_now()) - begun_ms) / 1000)};

    doctor_judge_trial(findings, where, check, &trial);
}

/* In rounds: elmer answers before the time is over. NULL: it did not. */
static struct elmer_jobs *wait_for_end(struct elmer *elmer, uint64_t job, int64_t deadline_ms,
                                       struct elmer_error *error)
{
    for (;;) {
        struct elmer_jobs *jobs;

        if (elmer_wait(elmer, job, ROUND_MS, &jobs, error) != ELMER_OK)
            return NULL;
        if (elmer_job_ended(&jobs->items[0]) || mono_ms(mono_now()) >= deadline_ms)
            return jobs;
        elmer_jobs_free(jobs);
    }
}

/* ---- one that tells of its host ---- */

/* All that it has said, once it has said all; malloc'd. NULL: not yet. */
static char *read_facts(struct elmer *elmer, const struct elmer_job *job)
{
    static struct part part;
    struct source source;
    char *said = NULL, value[DOCTOR_VALUE_BYTES];

    if (source_open(&source, elmer, job, 0, false) < 0 && source_read(&source, 0, false, &part) < 0) {
        said = must(strndup(part.bytes, part.count));
        if (!doctor_find(said, "end", value)) {
            free(said);
            said = NULL;
        }
    }
    source_close(&source);
    return said;
}

static void hear(struct findings *findings, struct elmer *elmer, const struct trial *trial, int64_t deadline_ms,
                 char **said)
{
    const char *where = trial->host->name;
    struct doctor_facts here = {.user = "?",
                                .uid = geteuid(),
                                .version = PACKAGE_VERSION,
                                .running = trial->host->version,
                                .before_s = trial->before_s};
    const struct passwd *user = getpwuid(geteuid());
    bool over = false;

    for (*said = NULL; !*said && !over;) {
        struct elmer_jobs *jobs = look(elmer, trial->job);

        if (jobs && strcmp(jobs->items[0].state, "running") == 0)
            *said = read_facts(elmer, &jobs->items[0]);
        over = !*said && (mono_ms(mono_now()) >= deadline_ms || (jobs && elmer_job_ended(&jobs->items[0])));
        if (over && jobs)
            say_end(findings, where, "job", &jobs->items[0], 1, deadline_ms - TRIAL_MS);
        elmer_jobs_free(jobs);
        if (!*said && !over)
            poll(NULL, 0, PAUSE_MS);
    }
    end(elmer, trial->job);
    if (!*said)
        return;
    here.after_s = time(NULL);
    if (user)
        here.user = user->pw_name;
    finding_add(findings, FINDING_GOOD, where, "job", "has run");
    doctor_judge_facts(findings, where, *said, &here);
}

/* ---- over several hosts ---- */

static void try_over(struct findings *findings, struct elmer *elmer, const char *word, const struct doctor_host *hosts,
                     char *const *said, size_t count, bool pvm)
{
    char program[DOCTOR_VALUE_BYTES], launcher[DOCTOR_VALUE_BYTES];
    const char *const alone[] = {"true", NULL}, *const launched[] = {launcher, "true", NULL};
    const char **names = must(calloc(count + 1, sizeof(*names)));
    size_t n = 0, nprocs = 0;
    struct elmer_error error = {{0}};
    const char *check = pvm ? "pvm-job" : "mpi-job";
    uint64_t job;

    for (size_t i = 0; i < count; i++) {
        if (!said[i] || !doctor_find(said[i], word, program) || strcmp(program, "no") == 0)
            continue;
        if (n == 0)
            memcpy(launcher, program, sizeof(launcher)); /* it is started on the first */
        names[n++] = hosts[i].name;
        nprocs += hosts[i].processors;
    }
    job = n > 0 ? submit(findings, elmer, "", check, names, nprocs, pvm ? alone : launched, "/dev/null", pvm) : 0;
    if (job > 0) {
        const char *where = n == 1 ? names[0] : "";
        int64_t begun = mono_ms(mono_now());
        struct elmer_jobs *jobs = wait_for_end(elmer, job, begun + TRIAL_MS, &error);

        if (jobs)
            say_end(findings, where, check, &jobs->items[0], n, begun);
        else
            finding_add(findings, FINDING_BAD, where, check, "what became of the job is not known: %s", error.text);
        elmer_jobs_free(jobs);
        end(elmer, job);
    }
    free(names);
}

/* With the names of the hosts behind it, and from the first again. To be free'd. */
static const char **make_command(const struct doctor_host *hosts, size_t count, size_t at)
{
    size_t others = count - 1 < OTHERS_MAX ? count - 1 : OTHERS_MAX;
    const char **command = must(calloc(others + 2, sizeof(*command)));

    command[0] = PROGRAM;
    for (size_t i = 1; i <= others; i++)
        command[i] = hosts[(at + i) % count].name;
    return command;
}

void doctor_try(struct findings *findings, struct elmer *elmer, const struct doctor_host *hosts, size_t count)
{
    struct trial *trials = must(calloc(count + 1, sizeof(*trials)));
    char **said = must(calloc(count + 1, sizeof(*said)));
    char token[33] = "", output[100];
    int64_t deadline;

    if (str_unique_token(token) < 0)
        finding_add(findings, FINDING_BAD, "", "job", "no job can be tried: there are no random numbers");
    snprintf(output, sizeof(output), "/tmp/elmer-doctor.%%j.%s", token); /* nobody is there before us */
    for (size_t i = 0; i < count && token[0]; i++) {
        const char *names[] = {hosts[i].name, NULL}, **command = make_command(hosts, count, i);

        trials[i] = (struct trial){.host = &hosts[i], .before_s = time(NULL)};
        trials[i].job = submit(findings, elmer, hosts[i].name, "job", names, 1, command, output, false);
        free(command);
    }
    deadline = mono_ms(mono_now()) + TRIAL_MS;
    for (size_t i = 0; i < count; i++)
        if (trials[i].job > 0)
            hear(findings, elmer, &trials[i], deadline, &said[i]);
    try_over(findings, elmer, "pvm", hosts, said, count, true);
    try_over(findings, elmer, "mpi", hosts, said, count, false);
    for (size_t i = 0; i < count; i++)
        free(said[i]);
    free(said);
    free(trials);
}
