/* wait.c - esubmit -w: stay until the job has ended.
 *
 * Each round asks elmer to answer when the job has ended, at the latest after half a minute. A connection that is lost
 * (a daemon restarts, a cable is out) is said once; the rounds go on until elmer is back, for as long as it takes: the
 * job is on elmer's disk.
 */
#include "config.h"

#include "client/wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/clock.h"

enum { ROUND_MS = 30000, PAUSE_MS = 500 };

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
    unsigned long long id = job->id;

    if (strcmp(job->state, "cancelled") == 0)
        say("job %llu was cancelled%s%s", id, job->reason[0] ? ": " : "", job->reason);
    else
        say("job %llu has ended (%s)%s%s", id, job->reason_code[0] ? job->reason_code : "no reason known",
            job->reason[0] ? ": " : "", job->reason);
}

int wait_status(const struct elmer_job *job)
{
    bool killed = strcmp(job->reason_code, "killed") == 0;

    if (strcmp(job->state, "done") != 0 || (!killed && strcmp(job->reason_code, "exited") != 0)) {
        say_reason(job);
        return EXIT_ELMER;
    }
    if (killed)
        say_reason(job);
    if (job->signal > 0) {
        if (!killed)
            say("job %llu died by signal %d (%s)", (unsigned long long)job->id, job->signal, strsignal(job->signal));
        return 128 + job->signal;
    }
    if (job->exit_status >= 0)
        return job->exit_status;
    if (!killed)
        say_reason(job);
    return EXIT_ELMER;
}

/* An answer long before its time would make the rounds a busy loop. */
static void pace(int64_t began_ms)
{
    if (mono_ms(mono_now()) - began_ms < PAUSE_MS)
        poll(NULL, 0, PAUSE_MS);
}

int wait_for_job(struct elmer *elmer, uint64_t job)
{
    for (;;) {
        struct elmer_error error = {{0}};
        struct elmer_jobs *jobs;
        int64_t began = mono_ms(mono_now());
        int result = elmer_wait(elmer, job, ROUND_MS, &jobs, &error);

        if (result == ELMER_OK) {
            int code = elmer_job_ended(&jobs->items[0]) ? wait_status(&jobs->items[0]) : -1;

            elmer_jobs_free(jobs);
            if (code >= 0)
                return code;
            if (waiting_was_said())
                say("elmer is back, still waiting for job %llu", (unsigned long long)job);
        } else if (result != ELMER_UNREACHABLE) { /* that has been said already */
            say("job %llu can no longer be followed: %s", (unsigned long long)job, error.text);
            return EXIT_ELMER;
        }
        pace(began);
    }
}
