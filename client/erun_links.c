/* erun_links.c - from a host of the job to its courier, which has been told what to start.
 *
 * elmer says where the courier listens, and has it started if there is none. Nobody there, or nobody who answers: it
 * has ended, and elmer is asked again, TRIES times. Then each shows the other its pass; that of the courier must be of
 * this job, attempt and user, and of the host that was meant: who comes in between has none. rsd may be starting again
 * meanwhile, so what needs elmer-tickets of this host is tried for PATIENCE_MS.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/common.h"
#include "client/erun.h"
#include "lib/base/clock.h"
#include "lib/run/added.h"
#include "lib/run/desk.h"
#include "libelmer/client.h"

enum { PATIENCE_MS = 8000, AGAIN_MS = 100, TRIES = 4, REACH_MS = 15000 };

extern char **environ;

/* ---- elmer-tickets ---- */

/* pass NULL: text is to be looked at. 0, or negative with a sentence. */
static int ask_desk(struct erun *erun, const char *text, char *pass, struct err *err)
{
    int64_t deadline = mono_ms(mono_now()) + PATIENCE_MS;
    for (;;) {
        struct run_desk desk;
        int result = text ? run_desk_ask_trust(&desk, text, err) : run_desk_ask_pass(&desk, erun->key.public_key, err);
        if (result == 0)
            result = run_desk_wait(&desk, pass, deadline, err);
        if (result == 0 || result == -EACCES || result == -EPROTO || mono_ms(mono_now()) + AGAIN_MS >= deadline)
            return result;
        poll(NULL, 0, AGAIN_MS);
        *err = (struct err)ERR_INIT;
    }
}

int erun_get_pass(struct erun *erun)
{
    struct err err = ERR_INIT;
    if (!seal_key_make(&erun->key)) {
        say("a key cannot be made");
        return ERUN_LOST;
    }
    if (ask_desk(erun, NULL, erun->pass, &err) == 0)
        return 0;
    say("%s", err.text);
    return ERUN_LOST;
}

uint64_t erun_inside(void)
{
    struct err err = ERR_INIT;
    struct seal_key key;
    struct run_desk desk;
    struct pass pass;
    char text[PASS_TEXT_MAX + 1];
    bool got = seal_key_make(&key) && run_desk_ask_pass(&desk, key.public_key, &err) == 0 &&
               run_desk_wait(&desk, text, mono_ms(mono_now()) + PATIENCE_MS, &err) == 0;
    return got && pass_decode(text, &pass) ? pass.job : 0;
}

/* ---- the way there ---- */

bool target_dial(struct erun *erun, struct target *target)
{
    struct client_reached reached;
    struct elmer_error error = {{0}};
    int fd, result;
    if (target->linked)
        run_link_fini(&target->link);
    target->linked = target->ready = false;
    erun_asks(erun, true);
    if (target->tries++ > 0 && erun_get_pass(erun) != 0) { /* a key is good for one connection to a courier */
        erun_asks(erun, false);
        return false;
    }
    result = client_reach(erun->elmer, erun->job->id, target->part->host, target->port, REACH_MS, &reached, &error);
    erun_asks(erun, false);
    if (result != ELMER_OK) {
        say("%s", error.text);
        return false;
    }
    target->port = reached.port;
    fd = run_link_connect(reached.address, reached.port);
    if (fd < 0) {
        say("%s (%s) cannot be reached: %s", target->part->host, reached.address, strerror(-fd));
        return false;
    }
    run_link_init(&target->link, fd, true, &erun->key, erun->pass);
    target->linked = true;
    return true;
}

/* ---- what is to be started there ---- */

static mode_t own_umask(void)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    return mask;
}

bool erun_size(struct winsize *size)
{
    for (int fd = 0; fd < 3; fd++)
        if (ioctl(fd, TIOCGWINSZ, size) == 0)
            return true;
    return false;
}

/* What is true on this host only stays here, and a descriptor of a rank of MPI is one of this process. */
static struct run_strings own_environment(void)
{
    const char *added = getenv(RUN_ADDED);
    struct run_strings list = {NULL, 0};
    size_t count = 0;
    while (environ[count])
        count++;
    list.items = must(calloc(count + 1, sizeof(*list.items)));
    for (size_t i = 0; i < count; i++)
        if (strchr(environ[i], '=') && strncmp(environ[i], "PMI_FD=", 7) != 0 && !run_added_is(added, environ[i]))
            list.items[list.count++] = environ[i];
    return list;
}

static bool send_start(struct erun *erun, struct target *target)
{
    const struct erun_plan *plan = erun->plan;
    struct run_start start = {.pty = plan->pty,
                              .shell = plan->like_ssh,
                              .home = plan->like_ssh,
                              .input = target == erun->targets,
                              .mpi = plan->mpi,
                              .umask = own_umask(),
                              .total = plan->total,
                              .argv = {(const char **)plan->argv, plan->argc},
                              .ranks = target->part->ranks,
                              .nranks = target->part->nranks};
    char *dir = getcwd(NULL, 0);
    struct winsize terminal;
    uint8_t *bytes;
    size_t size;
    if (plan->pty && erun_size(&terminal)) {
        start.rows = terminal.ws_row;
        start.columns = terminal.ws_col;
    }
    start.dir = dir ? dir : "/";
    start.environment = own_environment();
    bytes = must(run_start_pack(&start, &size));
    free(start.environment.items);
    free(dir);
    if (size > RUN_FRAME_MAX - 64) {
        say("arguments and environment are too long");
        free(bytes);
        return false;
    }
    run_link_send(&target->link, RUN_START, 0, bytes, size);
    free(bytes);
    target->ready = true;
    return true;
}

/* ---- the other end ---- */

static bool is_meant(const struct erun *erun, const struct target *target, const struct pass *own)
{
    const struct pass *peer = &target->link.peer;
    (void)erun;
    if (pass_is_of_job(peer, own) && strcmp(peer->host, target->part->host) == 0)
        return true;
    say("who answers for %s is of job %llu on %s", target->part->host, (unsigned long long)peer->job, peer->host);
    return false;
}

static bool check(struct erun *erun, struct target *target)
{
    struct err err = ERR_INIT;
    struct pass own;
    int result;
    if (!pass_decode(erun->pass, &own) || !is_meant(erun, target, &own))
        return false;
    erun_asks(erun, true);
    result = ask_desk(erun, target->link.other, NULL, &err);
    erun_asks(erun, false);
    if (result < 0) {
        say("%s", err.text);
        return false;
    }
    run_link_accept(&target->link);
    return target->link.state == RUN_OPEN && send_start(erun, target);
}

/* Nobody at the port: the courier is another one by now. One that has ended the connection may have waited too long for
 * this process, which had no CPU or was stopped. */
bool target_again(struct erun *erun, struct target *target, bool connecting)
{
    if (target->tries < TRIES) {
        if (!connecting)
            poll(NULL, 0, AGAIN_MS);
        return target_dial(erun, target);
    }
    if (connecting)
        say("%s cannot be reached: %s", target->part->host, target->link.text);
    else
        say("%s has ended the connection before it was open (%s): it may not believe passes of this host; see vouch in "
            "rsd.conf there",
            target->part->host, target->link.text);
    return false;
}

bool target_step(struct erun *erun, struct target *target, short revents)
{
    bool connecting = target->link.state == RUN_CONNECTING;
    run_link_step(&target->link, revents);
    if (target->link.state == RUN_DEAD)
        return target_again(erun, target, connecting);
    if (connecting)
        run_link_patient(&target->link);
    if (target->link.state == RUN_CHECKING)
        return check(erun, target);
    return true;
}
