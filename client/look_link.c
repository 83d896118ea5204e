/* look_link.c - from the id of a job to an open connection to what holds its terminal.
 *
 * elmer says where that is, when the job runs; before, it is asked again, at intervals that grow to a second, until the
 * job has ended without it. A connection has a key and a pass of its own each time, because what seals it follows from
 * these and is good for one connection (lib/run/seal.h). The pass of the other side must be that of a process of this
 * job and of our own user, on the host that was meant, and elmer-tickets of this host must believe it: so nothing is
 * typed at anybody else's. A connection that is lost is tried again for TERMINAL_GRACE_MS, also while elmer or the rsd
 * of this host is away. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client/common.h"
#include "client/look_internal.h"
#include "client/screen.h"
#include "client/wait.h"
#include "lib/base/clock.h"
#include "lib/job/terminal.h"
#include "lib/run/desk.h"
#include "libelmer/client.h"

enum {
    REACH_MS = 12000 /* elmer waits 10 s for the host */,
    SLOW_MS = 5000,
    BACK_MS = 1500,
    DESK_MS = 2000,
    DESK_AGAIN_MS = 100,
    NO_JOB = INT32_MAX, /* for a pass that is thrown away */
    DIAL_MS = 10000,
    PAUSE_MIN_MS = 20,
    PAUSE_MAX_MS = 1000
};
enum { FAILURES_MAX = 20 };

void look_end(struct look *look, int code)
{
    look->state = LOOK_ENDED;
    look->code = code;
}

void look_close(struct look *look)
{
    if (look->linked)
        run_link_fini(&look->link);
    look->linked = false;
}

static void try_again(struct look *look)
{
    look_close(look);
    look->state = LOOK_FINDING;
    look->pause_ms = look->pause_ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : 2 * look->pause_ms;
    if (look->pause_ms > PAUSE_MAX_MS)
        look->pause_ms = PAUSE_MAX_MS;
    look->next_ms = mono_now_ms() + look->pause_ms;
}

/* The job goes on; whether it does for long depends. */
static void give_up(struct look *look, const char *why)
{
    look_close(look);
    screen_back();
    if (look->options.keep)
        say("the terminal of job %llu is lost (%s); it goes on: eattach %llu", (unsigned long long)look->job, why,
            (unsigned long long)look->job);
    else
        say("the terminal of job %llu is lost (%s): its command gets a hangup", (unsigned long long)look->job, why);
    look_end(look, EXIT_ELMER);
}

void look_take_back(struct look *look)
{
    struct elmer_error error = {{0}};

    if (!look->options.own || look->options.keep || look->session != 0)
        return;
    if (elmer_cancel(look->elmer, look->job, ANSWER_MS, NULL, &error) == ELMER_OK ||
        elmer_kill(look->elmer, look->job, ANSWER_MS, NULL, &error) == ELMER_OK)
        say("job %llu is taken back", (unsigned long long)look->job);
    else
        say("job %llu cannot be taken back: %s", (unsigned long long)look->job, error.text);
}

/* For people, once, and kept: what said it may end before it is told. */
static void note_why(struct look *look, const char *why)
{
    snprintf(look->why, sizeof(look->why), "%s", why);
    if (look->session != 0 || look->told_why)
        return;
    look->told_why = true;
    say("the terminal of job %llu cannot be seen yet (%s): trying again", (unsigned long long)look->job, look->why);
}

static void lose_first(struct look *look)
{
    if (++look->failures < FAILURES_MAX) {
        try_again(look);
        return;
    }
    look_close(look);
    say("the terminal of job %llu cannot be seen: %s", (unsigned long long)look->job, look->why);
    look_take_back(look);
    look_end(look, EXIT_UNAVAILABLE);
}

void look_lose(struct look *look, const char *why)
{
    if (look->exited) { /* all was said */
        look_end(look, 0);
        look->wait_status = true;
        return;
    }
    note_why(look, why);
    if (look->session == 0) {
        lose_first(look);
        return;
    }
    if (look->lost_ms == 0) {
        look->lost_ms = mono_now_ms();
        look->pause_ms = 0;
        screen_note("the connection to %s is lost (%s): trying again for %d seconds; ~. leaves", look->host, look->why,
                    TERMINAL_GRACE_MS / 1000);
    }
    if (mono_now_ms() - look->lost_ms > TERMINAL_GRACE_MS)
        give_up(look, look->why);
    else
        try_again(look);
}

void look_late(struct look *look, const char *why)
{
    if (look->session != 0) {
        look_lose(look, why);
        return;
    }
    note_why(look, why);
    try_again(look);
}

void look_unanswered(struct look *look)
{
    char why[400];

    snprintf(why, sizeof(why), "%s does not answer on port %u of TCP: is there a firewall, or is it down?", look->host,
             (unsigned)look->reached->port);
    look_lose(look, why);
}

/* ---- where it is ---- */

static void tell_waiting(struct look *look, const struct elmer_job *job)
{
    if (look->told || (strcmp(job->state, "queued") != 0 && strcmp(job->state, "held") != 0))
        return;
    look->told = true;
    say("job %llu waits%s%s; its terminal is shown when it runs", (unsigned long long)look->job,
        job->reason[0] ? ": " : "", job->reason);
}

/* It does not run, or not yet. */
static void wait_for_it(struct look *look)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    int result = elmer_query(look->elmer, false, false, &look->job, 1, REACH_MS, &jobs, &error);

    if (result == ELMER_OK && jobs->count == 1 && elmer_job_ended(&jobs->items[0])) {
        if (look->session == 0 && look->why[0])
            say("the terminal of job %llu was not seen: %s", (unsigned long long)look->job, look->why);
        look_end(look, 0);
        look->wait_status = true;
    } else if (result == ELMER_OK && jobs->count == 1 && look->session != 0 &&
               mono_now_ms() - look->lost_ms > TERMINAL_GRACE_MS) {
        give_up(look, "the job does not run now");
    } else if (result == ELMER_OK && jobs->count == 1) {
        tell_waiting(look, &jobs->items[0]);
        try_again(look);
    } else if (result == ELMER_OK) {
        say("there is no job %llu", (unsigned long long)look->job);
        look_end(look, EXIT_JOB);
    } else {
        look_lose(look, error.text);
    }
    if (result == ELMER_OK)
        elmer_jobs_free(jobs);
}

static int get_pass(uint64_t job, struct seal_key *key, char *pass, struct err *err)
{
    struct run_desk desk;
    int result;

    if (!seal_key_make(key))
        return err_set(err, -EIO, "a key cannot be made");
    result = run_desk_ask_look(&desk, job, key->public_key, err);
    return result < 0 ? result : run_desk_wait(&desk, pass, mono_now_ms() + DESK_MS, err);
}

bool look_possible(bool keep)
{
    char pass[PASS_TEXT_MAX + 1];
    struct seal_key key;
    struct err err = ERR_INIT;
    int64_t until = mono_now_ms() + DESK_MS;
    int result;

    while ((result = get_pass(NO_JOB, &key, pass, &err)) < 0 && result != -EACCES && mono_now_ms() < until) {
        err = (struct err)ERR_INIT;
        poll(NULL, 0, DESK_AGAIN_MS); /* rsd may be starting again just now */
    }
    explicit_bzero(&key, sizeof(key));
    if (result < 0)
        say("a terminal cannot be looked at from here: %s; %s", err.text,
            keep ? "submit with --detach, and eattach from another host" : "submit from a host that has tickets");
    return result >= 0;
}

static void dial(struct look *look)
{
    char pass[PASS_TEXT_MAX + 1];
    struct seal_key key;
    struct err err = ERR_INIT;
    int fd;

    if (get_pass(look->job, &key, pass, &err) < 0) {
        look_lose(look, err.text);
        return;
    }
    fd = run_link_connect(look->reached->address, look->reached->port);
    if (fd < 0) {
        look_lose(look, strerror(-fd));
        return;
    }
    run_link_init(&look->link, fd, true, &key, pass);
    explicit_bzero(&key, sizeof(key));
    look->linked = true;
    look->state = LOOK_DIALLING;
    look->next_ms = mono_now_ms() + DIAL_MS;
}

void look_find(struct look *look)
{
    struct elmer_error error = {{0}};
    int64_t begun = mono_now_ms();
    int result;

    assert(look->state == LOOK_FINDING && !look->linked);
    result = client_reach_terminal(look->elmer, look->job, look->session ? BACK_MS : REACH_MS, look->reached,
                                   look->host, &error);
    switch (result) {
    case ELMER_OK:
        dial(look);
        return;
    case ELMER_NO_SUCH_JOB: /* it may be one that has ended */
    case ELMER_WRONG_STATE:
        wait_for_it(look);
        return;
    case ELMER_UNREACHABLE:
    case ELMER_UNAVAILABLE:
        if (look->session != 0 && look->reached->port != 0)
            dial(look); /* it has not moved */
        else if (result == ELMER_UNAVAILABLE && mono_now_ms() - begun >= SLOW_MS)
            look_late(look, error.text); /* its host has not answered elmer */
        else
            look_lose(look, error.text);
        return;
    default:
        look_end(look, say_result(result, &error));
        look_take_back(look);
        return;
    }
}

/* ---- who it is ---- */

static bool is_meant(struct look *look)
{
    const struct pass *peer = &look->link.peer;
    struct pass own;

    if (pass_decode(look->link.pass, &own) && pass_may_look(&own, peer) && strcmp(peer->host, look->host) == 0)
        return true;
    run_link_kill(&look->link, "who answers on %s is not of this job", look->host);
    return false;
}

static void ask_for_it(struct look *look)
{
    struct run_look ask = {.session = look->session, .seen = RUN_LOOK_UNSEEN};
    uint8_t bytes[RUN_LOOK_BYTES];

    if (look->session != 0)
        ask.seen = look->written;
    else if (look->options.all)
        ask.seen = RUN_LOOK_ALL;
    screen_size(&ask.rows, &ask.columns);
    run_look_pack(&ask, bytes);
    run_link_send(&look->link, RUN_LOOK, 0, bytes, sizeof(bytes));
    look->state = LOOK_ASKED;
}

static void check(struct look *look)
{
    struct err err = ERR_INIT;
    struct run_desk desk;
    int result;

    if (!is_meant(look))
        return;
    result = run_desk_ask_trust(&desk, look->link.other, &err);
    if (result == 0)
        result = run_desk_wait(&desk, NULL, mono_now_ms() + DESK_MS, &err);
    if (result < 0) {
        run_link_kill(&look->link, "%s", err.text);
        return;
    }
    run_link_accept(&look->link);
    if (look->link.state == RUN_OPEN)
        ask_for_it(look);
}

void look_dial_step(struct look *look, short revents)
{
    assert(look->state == LOOK_DIALLING && look->linked);
    run_link_step(&look->link, revents);
    if (look->link.state == RUN_CHECKING)
        check(look);
    if (look->link.state == RUN_DEAD)
        look_lose(look, look->link.text);
}
