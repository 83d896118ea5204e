/* main.c - elmer-rsd-begin: what takes root when rsd starts, where rsd never is root (rsd-spawn.service).
 *
 * systemd starts it with a listening socket. It waits for rsd to connect, looks whether it is that
 * (lib/base/service.h), reads rsd.conf and makes what jobs need: directories, the scope, rt_reserve, files for the
 * units. What there is to say about that it says to rsd (word.h), which has a log and a status that administrators
 * know. Then it gives rsd the directories and becomes elmer-spawn, with that connection as its line. It hears nothing:
 * rsd could be taken.
 *
 * elmer-spawn ends with its line, and systemd starts this program for the next rsd; so each of the two can begin anew.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/service.h"
#include "lib/ticket/program.h"
#include "rsd/prepare.h"
#include "rsd/word.h"
#include "rsd/root/limits.h"
#include "rsd/root/sched.h"
#include "rsd/root/spawn.h"
#include "rsd/root/v1.h"

struct begin {
    int rsd; /* who has connected */
    struct begin_plan plan;
    struct spawn_grants grants;
};

/* ---- to rsd; it may have gone, then nobody needs this ---- */

static void tell_log(enum log_level level, const char *format, const char *text, void *data)
{
    const struct begin *begin = data;
    if (!word_log(begin->rsd, (int)level, format, text))
        _exit(SERVICE_AGAIN);
}

static void tell_waits(void *data, const char *why)
{
    const struct begin *begin = data;
    struct pollfd end = {.fd = begin->rsd}; /* no event but that it has gone: it says nothing */
    if (!word_waits(begin->rsd, why) || (why && poll(&end, 1, PREPARE_AGAIN_S * 1000) > 0))
        _exit(SERVICE_AGAIN);
}

static void tell_reached(void *data, const char *name, int fd)
{
    const struct begin *begin = data;
    if (!word_reached(begin->rsd, name, fd))
        _exit(SERVICE_AGAIN);
}

static int fail(const struct begin *begin, int status)
{
    word_failed(begin->rsd, status);
    return SERVICE_AGAIN;
}

/* elmer-spawn's first connection; the next it makes by itself. */
static int reach_tickets(struct begin *begin, struct err *err)
{
    const struct rsd_config *config = &begin->plan.config;
    if (config->ticket_uid == 0)
        return err_set(err, -ENOENT, "there is no user elmer-ticket: run systemd-sysusers");
    snprintf(begin->grants.path, sizeof(begin->grants.path), "%s/" RSD_GRANTS_SOCKET, config->rundir);
    begin->grants.fd = ticket_program_reach(begin->grants.path, SOCK_SEQPACKET, err);
    return begin->grants.fd < 0 ? begin->grants.fd : 0;
}

static int make_all(void *data, struct err *err)
{
    struct begin *begin = data;
    struct err why = ERR_INIT;
    int result = prepare_plans(&begin->plan.config, err);
    v1_leave("/proc");
    if (result == 0)
        result = rsd_begin(&begin->plan.config, &begin->plan.facts, err);
    if (result < 0)
        return result == -EPERM ? -EACCES : result; /* it may pass */
    result = reach_tickets(begin, &why);
    begin->plan.tickets = result == 0;
    snprintf(begin->plan.reason, sizeof(begin->plan.reason), "%s", why.text);
    if (result == 0 || !begin->plan.config.tickets_required)
        return 0;
    close(begin->plan.facts.groups_fd);
    close(begin->plan.facts.tmp_fd);
    return err_set(err, -EAGAIN, "tickets = require, but %s", why.text);
}

/* ---- all of it ---- */

/* Where the units' sockets are is in their files. */
static bool has_default_places(const struct rsd_config *config)
{
    static struct rsd_config normal;
    rsd_config_default(&normal);
    if (strcmp(config->rundir, normal.rundir) != 0) {
        log_error("rundir = %s: the sockets of rsd's units are in %s; remove the line, or run rsd without units, see "
                  "07-operations.md",
                  config->rundir, normal.rundir);
        return false;
    }
    if (strcmp(config->user, normal.user) != 0 || strcmp(config->network, normal.network) != 0 ||
        strcmp(config->ticket_program, normal.ticket_program) != 0 ||
        strcmp(config->ticket_dir, normal.ticket_dir) != 0)
        log_warning("user, network, ticket_program and ticket_dir of rsd.conf have no effect: use systemctl edit "
                    "rsd-net and rsd-tickets");
    return true;
}

/* Does not return if all is well. */
static int run(struct begin *begin, const char *path, const struct limits *given)
{
    struct rsd_config *config = &begin->plan.config;
    const struct prepare_then then = {.next = make_all, .waits = tell_waits, .data = begin};
    struct err err = ERR_INIT;
    char *text = NULL;
    uid_t uid;
    gid_t gid;
    int result;
    if (prepare_config(config, path, &text, &err) < 0 || !has_default_places(config))
        return fail(begin, PREPARE_EXIT_CONFIG);
    prepare_users(config);
    sched_rank(0, (struct order_rank){SCHED_FIFO, ORDER_DAEMON}, false); /* where it is refused, probe.c says why */
    result = prepare_in_time(config, &uid, &gid, &then, &err);
    if (result == 0)
        prepare_remember(config, text);
    free(text);
    if (result < 0) {
        log_error("rsd cannot begin: %s", err.text);
        return fail(begin, result == -EPERM ? PREPARE_EXIT_CONFIG : 1);
    }
    rsd_reach(config, tell_reached, begin);
    if (!word_done(begin->rsd, &begin->plan))
        return SERVICE_AGAIN;
    begin->plan.facts.line = begin->rsd;
    log_divert(NULL, NULL);
    spawn_become(config, given, &begin->plan.facts, &begin->grants, &err);
    log_error("rsd cannot begin: %s", err.text);
    return SERVICE_AGAIN;
}

static int await_rsd(int listener)
{
    static struct log_limit limit;
    struct pollfd in = {.fd = listener, .events = POLLIN};
    int fd = -1;
    while (fd < 0) {
        struct err err = ERR_INIT;
        const struct passwd *entry;
        if (poll(&in, 1, -1) <= 0)
            continue;
        entry = getpwnam("elmer-jobs");
        fd = service_accept(listener, entry ? entry->pw_uid : 0, SERVICE_OF_RSD, &err);
        if (fd < 0 && fd != -ESRCH && log_allowed(&limit, 10, 60000))
            log_warning("elmer-rsd-begin refuses a peer: %s", err.text);
    }
    return fd;
}

/* elmer-spawn and all that it starts would have them. */
static void forget_systemd(void)
{
    static const char *const names[] = {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unsetenv(names[i]);
}

int main(int argc, char **argv)
{
    static struct begin begin = {.rsd = -1, .grants = {.fd = -1}};
    struct limits given;
    int listener = service_listener("rsd");
    log_open("rsd", LOG_LEVEL_INFO);
    if (listener < 0 || geteuid() != 0 || (argc != 1 && (argc != 3 || strcmp(argv[1], "-c") != 0))) {
        fprintf(stderr, "usage: elmer-rsd-begin [-c FILE]\nsystemd starts it, for rsd: systemctl restart rsd\n");
        return PREPARE_EXIT_CONFIG;
    }
    umask(022);
    signal(SIGPIPE, SIG_IGN);
    limits_of_daemon(&given);
    service_notify("READY=1\nSTATUS=waits for rsd");
    begin.rsd = await_rsd(listener);
    close(listener);
    service_notify("STATUS=");
    forget_systemd();
    if (!word_open(begin.rsd))
        return SERVICE_AGAIN;
    log_divert(tell_log, &begin);
    return run(&begin, argc == 3 ? argv[2] : NULL, &given);
}
