/* wait.c - esubmit -w and ewait: stay until a job, or one of several, has ended.
 *
 * Each round asks elmer to answer when one has ended, at the latest after half a minute. A connection that is lost
 * (a daemon restarts, a cable is out), or a disk that elmer cannot read, is said once; the rounds go on until elmer is
 * back, for as long as it takes: the job is on elmer's disk.
 */
#include "config.h"

#include "client/wait.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "client/patience.h"
#include "client/words.h"
#include "lib/base/clock.h"

enum { ROUND_MS = 30000, LAST_MS = 500 };

static char farewell[256]; /* a signal handler may not format */

static void on_signal(int number)
{
    ssize_t ignored = write(STDERR_FILENO, farewell, strlen(farewell));

    (void)ignored;
    _exit(128 + number);
}

void wait_catch_signals(uint64_t job)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    unsigned long long id = job;

    snprintf(farewell, sizeof(farewell),
             "esubmit: no longer waiting; job %llu goes on: 'equery %llu' shows it, 'ekill %llu' ends it ('ecancel "
             "%llu' while it is queued)\n",
             id, id, id, id);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction old;

        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup */
            sigaction(signals[i], &action, NULL);
    }
}

static void say_reason(const struct elmer_job *job)
{
    const char *what = job->ntasks > 0 ? "array" : "job";
    char id[WORDS_MAX];

    words_id(id, job);
    if (strcmp(job->state, "cancelled") == 0)
        say("%s %s was cancelled%s%s", what, id, job->reason[0] ? ": " : "", job->reason);
    else
        say("%s %s has ended (%s)%s%s", what, id, job->reason_code[0] ? job->reason_code : "no reason known",
            job->reason[0] ? ": " : "", job->reason);
}

int wait_status(const struct elmer_job *job)
{
    bool killed = strcmp(job->reason_code, "killed") == 0;
    bool tasks = strcmp(job->reason_code, "tasks-failed") == 0; /* then it is that of the first of them */

    if (strcmp(job->state, "done") != 0 || (!killed && !tasks && strcmp(job->reason_code, "exited") != 0)) {
        say_reason(job);
        return EXIT_ELMER;
    }
    if (killed || tasks)
        say_reason(job);
    if (job->signal > 0) {
        char id[WORDS_MAX];

        if (!killed && !tasks)
            say("job %s died by signal %d (%s)", words_id(id, job), job->signal, strsignal(job->signal));
        return 128 + job->signal;
    }
    if (job->exit_status >= 0)
        return job->exit_status;
    if (!killed && !tasks)
        say_reason(job);
    return EXIT_ELMER;
}

/* One round. -1: none has ended yet. */
static int round_of(struct elmer *elmer, const uint64_t *ids, size_t nids, int timeout_ms)
{
    unsigned long long first = ids[0];
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    int result = elmer_wait_any(elmer, ids, nids, timeout_ms, &jobs, &error), code = -1;

    if (result == ELMER_OK) {
        if (elmer_job_ended(&jobs->items[0]))
            code = wait_status(&jobs->items[0]);
        elmer_jobs_free(jobs);
        if (code < 0 && waiting_was_said())
            say("elmer is back, still waiting for job %llu%s", first, nids > 1 ? " or another" : "");
    } else if (!patience_passes(result, &error)) {
        say("job %llu%s can no longer be followed: %s", first, nids > 1 ? " or another" : "", error.text);
        code = EXIT_ELMER;
    }
    return code;
}

/* What has happened since the last round; of several that have ended the first. */
static int last_look(struct elmer *elmer, const uint64_t *ids, size_t nids)
{
    struct elmer_jobs *jobs;
    int code = -1;

    if (elmer_query(elmer, false, false, ids, nids, LAST_MS, &jobs, NULL) != ELMER_OK)
        return -1;
    for (size_t i = 0; i < nids && code < 0; i++)
        for (size_t j = 0; j < jobs->count && code < 0; j++)
            if (jobs->items[j].id == ids[i] && elmer_job_ended(&jobs->items[j]))
                code = wait_status(&jobs->items[j]);
    elmer_jobs_free(jobs);
    return code;
}

int wait_for_any(struct elmer *elmer, const uint64_t *ids, size_t nids, int64_t until_ms)
{
    for (int64_t began = mono_now_ms(); began < until_ms; began = mono_now_ms()) {
        int result = round_of(elmer, ids, nids, (int)(until_ms - began < ROUND_MS ? until_ms - began : ROUND_MS));

        if (result >= 0)
            return result;
        patience_pace(began, until_ms);
    }
    return last_look(elmer, ids, nids);
}

int wait_for_job(struct elmer *elmer, uint64_t job)
{
    return wait_for_any(elmer, &job, 1, INT64_MAX);
}
