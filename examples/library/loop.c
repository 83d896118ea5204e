/* loop.c - submit three jobs and say how they end, while a clock ticks: libelmer in an event loop, without threads.
 *
 * loop [COMMAND [ARG..]]    exit status 0: all three have ended with status 0
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <elmer.h>

enum { JOBS = 3, CALL_MS = 30000, TICK_MS = 200 };

static _Noreturn void die(const char *why)
{
    fprintf(stderr, "loop: %s\n", why);
    exit(125);
}

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void wait_for(struct elmer *elmer, uint64_t job)
{
    struct elmer_call *call;
    struct elmer_error error;

    if (elmer_wait_any_begin(elmer, &job, 1, CALL_MS, &call, &error) != ELMER_OK)
        die(error.text);
}

/* Returns how many jobs have ended: 1 or 0; *good counts those with status 0. */
static int on_ended(struct elmer *elmer, struct elmer_call *call, int *good)
{
    struct elmer_error error;
    struct elmer_submitted *submitted;
    struct elmer_jobs *jobs;
    int ended = 0;

    if (elmer_call_result(call, &error) != ELMER_OK)
        die(error.text);
    submitted = elmer_call_submitted(call);
    jobs = elmer_call_jobs(call);
    if (submitted) {
        printf("job %llu\n", (unsigned long long)submitted->job);
        wait_for(elmer, submitted->job);
    } else if (jobs && elmer_job_ended(jobs->items)) {
        printf("job %llu is %s, exit status %d\n", (unsigned long long)jobs->items->id, jobs->items->state,
               jobs->items->exit_status);
        *good += jobs->items->exit_status == 0;
        ended = 1;
    } else if (jobs) { /* not yet: elmer answers after a while in any case */
        wait_for(elmer, jobs->items->id);
    }
    elmer_submitted_free(submitted);
    elmer_jobs_free(jobs);
    elmer_call_free(call);
    return ended;
}

int main(int argc, char **argv)
{
    static const char *const default_command[] = {"sleep", "1", NULL};
    const struct elmer_submission job = {
        .nprocs = 1, .command = argc > 1 ? (const char *const *)(argv + 1) : default_command, .output = "/dev/null"};
    const char *socket = getenv("ELMER_SOCKET");
    const struct elmer_options options = {.socket = socket && *socket ? socket : NULL};
    int left = JOBS, ticks = 0, good = 0;
    long next_ms = now_ms() + TICK_MS;
    struct elmer_call *call;
    struct elmer_error error;
    struct elmer *elmer;

    if (elmer_open(&options, &elmer, &error) != ELMER_OK)
        die(error.text);
    for (int i = 0; i < JOBS; i++)
        if (elmer_submit_begin(elmer, &job, CALL_MS, &call, &error) != ELMER_OK)
            die(error.text);
    while (left > 0) {
        struct pollfd fd = {.fd = elmer_fd(elmer), .events = POLLIN};
        int timeout = elmer_timeout_ms(elmer), tick = (int)(next_ms - now_ms());

        tick = tick > 0 ? tick : 0;
        poll(&fd, 1, timeout >= 0 && timeout < tick ? timeout : tick);
        elmer_step(elmer);
        while ((call = elmer_next_ended(elmer)))
            left -= on_ended(elmer, call, &good);
        if (now_ms() >= next_ms) {
            ticks++;
            next_ms += TICK_MS;
        }
    }
    printf("%d ticks meanwhile\n", ticks);
    elmer_close(elmer);
    return good == JOBS ? 0 : 1;
}
