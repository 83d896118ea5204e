/* doctor_trial.c - the jobs of eadmin doctor.
 *
 * On each host one, elmer-doctor, which tells of it in its output and waits; the output is read from here, and the job
 * is ended. All of them are submitted before the first is waited for. Then one with PVM and one by mpirun or mpiexec
 * over all of the hosts that have these, a processor of each; where that fails, host by host. What has not happened in
 * time is told with elmer's own reason, and is ended.
 *
 * Jobs of users would stand behind one that waits. So it is taken back at once, and submitted again in a while, a few
 * times. A rehearsal would not even stand there, but elmer gives it a tenth of its time for all of them together, which
 * is too little for a job on each of many hosts. */
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
    SEARCH_MS = 60000, /* host by host, no further one is begun then */
    ROUND_MS = 10000,
    ROUNDS = 3,
    PAUSE_MS = 100,
    OTHERS_MAX = 64 /* names that a host is asked for */
};
#define PROGRAM ELMER_LIBEXECDIR "/elmer-doctor"

/* What is asked of elmer; both lists end with NULL. */
struct ask {
    const char *where, *check;
    const char *const *hosts, *const *command;
    size_t nprocs; /* one of each host */
    const char *output;
    bool pvm;
    enum finding_level refused; /* how bad that is */
};

struct trial {
    const struct doctor_host *host;
    uint64_t job; /* 0: there is none now */
    char *why;    /* it would have waited, and is to be tried again */
    int64_t before_s;
};

/* ---- one job ---- */

/* Ended or not begun: nothing of it stays. */
static void end(struct elmer *elmer, uint64_t job)
{
    struct elmer_jobs *jobs;

    if (elmer_kill(elmer, job, ANSWER_MS, NULL, NULL) != ELMER_OK)
        (void)elmer_cancel(elmer, job, ANSWER_MS, NULL, NULL);
    if (elmer_wait(elmer, job, ANSWER_MS, &jobs, NULL) == ELMER_OK)
        elmer_jobs_free(jobs);
}

/* 0: refused, and said; or taken back, then *why is the reason, malloc'd. */
static uint64_t submit(struct findings *findings, struct elmer *elmer, const struct ask *ask, char **why)
{
    static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL};
    const struct passwd *user = getpwuid(geteuid());
    char home[300];
    const char *own[] = {environment[0], environment[1], home, NULL};
    struct elmer_submission submission = {.nprocs = (uint32_t)ask->nprocs,
                                          .per_host = ask->nprocs > 1 ? 1 : 0,
                                          .command = ask->command,
                                          .pvm = ask->pvm,
                                          .name = "doctor",
                                          .dir = "/",
                                          .output = ask->output,
                                          .environment = own,
                                          .hosts = ask->hosts,
                                          .umask = 077};
    struct elmer_submitted *submitted;
    struct elmer_error error = {{0}};
    uint64_t job;
    int result;

    free(*why);
    *why = NULL;
    snprintf(home, sizeof(home), "HOME=%s", user ? user->pw_dir : "/");
    result = elmer_submit(elmer, &submission, ANSWER_MS, &submitted, &error);
    if (result != ELMER_OK) {
        finding_add(findings, result == ELMER_REFUSED ? ask->refused : FINDING_BAD, ask->where, ask->check,
                    "no job can be tried: %s", error.text);
        return 0;
    }
    job = submitted->job;
    if (strcmp(submitted->state, "queued") == 0) {
        *why = must(strdup(submitted->reason));
        end(elmer, job);
        job = 0;
    }
    elmer_submitted_free(submitted);
    return job;
}

static void say_waits(struct findings *findings, const char *where, const char *check, const char *why)
{
    finding_add(findings, FINDING_WARNING, where, check,
                "no job was tried: it would have waited, and jobs of users behind it%s%s", *why ? ": " : "", why);
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

/* In time, or not at all; 0: it has been said why. *refused: elmer does not take it. */
static uint64_t submit_in_time(struct findings *findings, struct elmer *elmer, const struct ask *ask, bool *refused)
{
    char *why = NULL;
    uint64_t job = submit(findings, elmer, ask, &why);

    for (int round = 1; why && round < ROUNDS; round++) {
        poll(NULL, 0, ROUND_MS);
        job = submit(findings, elmer, ask, &why);
    }
    if (why)
        say_waits(findings, ask->where, ask->check, why);
    *refused = job == 0 && !why;
    free(why);
    return job;
}

/* Whether it was bad, or refused. */
static bool try_one(struct findings *findings, struct elmer *elmer, const struct ask *ask)
{
    bool refused;
    uint64_t job = submit_in_time(findings, elmer, ask, &refused);
    struct elmer_error error = {{0}};
    int64_t begun = mono_ms(mono_now());
    struct elmer_jobs *jobs;

    if (job == 0)
        return refused;
    jobs = wait_for_end(elmer, job, begun + TRIAL_MS, &error);
    if (jobs)
        say_end(findings, ask->where, ask->check, &jobs->items[0], ask->nprocs, begun);
    else
        finding_add(findings, FINDING_BAD, ask->where, ask->check, "what became of the job is not known: %s",
                    error.text);
    elmer_jobs_free(jobs);
    end(elmer, job);
    return findings->items[findings->count - 1].level == FINDING_BAD;
}

static bool has(const char *said, const char *word, char program[DOCTOR_VALUE_BYTES])
{
    return said && doctor_find(said, word, program) && strcmp(program, "no") != 0;
}

static void try_over(struct findings *findings, struct elmer *elmer, const char *word, const struct doctor_host *hosts,
                     char *const *said, size_t count, bool pvm)
{
    char program[DOCTOR_VALUE_BYTES] = "", launcher[DOCTOR_VALUE_BYTES] = "";
    const char *const alone[] = {"true", NULL}, *const launched[] = {launcher, "true", NULL};
    const char **names = must(calloc(count + 1, sizeof(*names)));
    struct ask ask = {.where = "",
                      .check = pvm ? "pvm-job" : "mpi-job",
                      .hosts = names,
                      .command = pvm ? alone : launched,
                      .output = "/dev/null",
                      .pvm = pvm,
                      .refused = FINDING_WARNING}; /* by a limit, which is meant so, if each alone is taken */
    int64_t until_ms;
    bool apart;

    for (size_t i = 0; i < count; i++)
        if (has(said[i], word, ask.nprocs == 0 ? launcher : program)) /* it is started on the first */
            names[ask.nprocs++] = hosts[i].name;
    if (ask.nprocs == 1) {
        ask.where = names[0];
        ask.refused = FINDING_BAD;
    }
    apart = ask.nprocs > 0 && try_one(findings, elmer, &ask) && ask.nprocs > 1;
    until_ms = mono_ms(mono_now()) + SEARCH_MS;
    for (size_t i = 0; apart && i < count && mono_ms(mono_now()) < until_ms; i++) {
        if (!has(said[i], word, launcher))
            continue;
        ask.where = names[0] = hosts[i].name;
        names[1] = NULL;
        ask.nprocs = 1;
        ask.refused = FINDING_BAD;
        (void)try_one(findings, elmer, &ask);
    }
    free(names);
}

/* ---- all of them ---- */

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

static void begin(struct findings *findings, struct elmer *elmer, struct trial *trial, const struct doctor_host *hosts,
                  size_t count, size_t at, const char *output)
{
    const char *names[] = {hosts[at].name, NULL}, **command = make_command(hosts, count, at);
    const struct ask ask = {.where = hosts[at].name,
                            .check = "job",
                            .hosts = names,
                            .command = command,
                            .nprocs = 1,
                            .output = output,
                            .refused = FINDING_BAD};

    trial->host = &hosts[at];
    trial->before_s = time(NULL);
    trial->job = submit(findings, elmer, &ask, &trial->why);
    free(command);
}

/* Whether some would still have waited. */
static bool try_each(struct findings *findings, struct elmer *elmer, struct trial *trials,
                     const struct doctor_host *hosts, size_t count, const char *output, char **said, bool again)
{
    int64_t deadline;
    bool waits = false;

    for (size_t i = 0; i < count; i++)
        if (!again || trials[i].why)
            begin(findings, elmer, &trials[i], hosts, count, i, output);
    deadline = mono_ms(mono_now()) + TRIAL_MS;
    for (size_t i = 0; i < count; i++) {
        if (trials[i].job > 0)
            hear(findings, elmer, &trials[i], deadline, &said[i]);
        trials[i].job = 0;
        waits = waits || trials[i].why;
    }
    return waits;
}

void doctor_try(struct findings *findings, struct elmer *elmer, const struct doctor_host *hosts, size_t count)
{
    struct trial *trials = must(calloc(count + 1, sizeof(*trials)));
    char **said = must(calloc(count + 1, sizeof(*said)));
    char token[33] = "", output[100];

    if (str_unique_token(token) < 0)
        finding_add(findings, FINDING_BAD, "", "job", "no job can be tried: there are no random numbers");
    snprintf(output, sizeof(output), "/tmp/elmer-doctor.%%j.%s", token); /* nobody is there before us */
    for (int round = 0; token[0] && round < ROUNDS; round++) {
        if (round > 0)
            poll(NULL, 0, ROUND_MS);
        if (!try_each(findings, elmer, trials, hosts, count, output, said, round > 0))
            break;
    }
    for (size_t i = 0; i < count; i++)
        if (trials[i].why)
            say_waits(findings, hosts[i].name, "job", trials[i].why);
    try_over(findings, elmer, "pvm", hosts, said, count, true);
    try_over(findings, elmer, "mpi", hosts, said, count, false);
    for (size_t i = 0; i < count; i++) {
        free(trials[i].why);
        free(said[i]);
    }
    free(said);
    free(trials);
}
