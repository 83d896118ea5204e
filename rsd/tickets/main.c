/* main.c - elmer-tickets, the program with the host's ticket key: lib/ticket/program.h says who asks what of it.
 *
 * serve is three processes. The first judges for the root half, which waits for it, so it has the root half's class and
 * touches no disk, but to look whether the key is certified now; the desk signs for local users; the recorder writes
 * which tickets were used. The last two are in SCHED_OTHER. When one of them ends all do, and who has started them does
 * so again; the recorder ends when all is on disk.
 *
 * As a unit of its own (rsd-tickets.service) it is started by systemd, with three listening sockets. It waits for rsd,
 * for which root has written a plan of what to serve, and goes on when that has gone, until it comes again:
 * with the same plan it is served as before; with another, after a reload or an upgrade, this process ends and is
 * started anew. Who connects must be of rsd.service. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/confine.h"
#include "lib/base/log.h"
#include "lib/base/service.h"
#include "lib/ticket/keys.h"
#include "rsd/root/limits.h"
#include "rsd/tickets/certify.h"
#include "rsd/tickets/desk.h"
#include "rsd/tickets/judge.h"
#include "rsd/tickets/record.h"

/* Read the used tickets before serving anybody. Fork the recorder after the desk, when the secret key is forgotten
 * here, so that it never has it. */
static int start_both(struct judge *judge, struct ticket_keys *keys, const struct desk_believes *believes, int listener,
                      struct err *err)
{
    int used = openat(keys->dir, "used", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), result;
    if (used < 0)
        return err_set(err, -errno, "cannot open %s: %s", "used", strerror(errno));
    result = record_load(used, judge->window, err);
    record_load_last(used, &judge->last);
    if (result == 0 && (result = (int)desk_start(keys, believes, listener)) < 0)
        err_set(err, result, "cannot fork: %s", strerror(-result));
    ticket_keys_forget_secret(keys);
    if (result >= 0 && (result = (int)record_start(used, &judge->record_fd)) < 0)
        err_set(err, result, "no recorder: %s", strerror(-result));
    close(used);
    return result;
}

static int begin(struct judge *judge, const char *dir, const char *host, const struct desk_believes *believes,
                 int listener, struct err *err)
{
    int result = ticket_keys_open(judge->keys, dir, host, err);
    if (result < 0)
        return result;
    judge->window = ticket_window_create();
    result = judge->window ? start_both(judge, judge->keys, believes, listener, err)
                           : err_set(err, -ENOMEM, "out of memory");
    ticket_keys_trust(judge->keys, &judge->trust);
    return result < 0 ? result : 0;
}

static void on_child_end(int signal)
{
    static const char line[] = "<3>a process of elmer-tickets has ended; it is started again, jobs live on\n";
    (void)signal;
    (void)!write(STDERR_FILENO, line, sizeof(line) - 1);
    _exit(1);
}

/* The desk looks users up, by whatever the name services do for that in its process. */
static void confine_it(enum confine what)
{
    int result = confine(what);
    if (result < 0)
        log_warning("elmer-tickets has no filter of system calls: %s", strerror(-result));
}

static bool say_ready(const struct judge *judge, int fd, struct ticket_ready *ready, const struct err *err)
{
    ready->certified = judge->trust.has_authority;
    snprintf(ready->text, sizeof(ready->text), "%.*s", (int)sizeof(ready->text) - 1, err->text);
    return send(fd, ready, sizeof(*ready), MSG_NOSIGNAL) == (ssize_t)sizeof(*ready) && ready->result == 0;
}

static int serve(char **args)
{
    static struct ticket_keys keys;
    struct judge judge = {.keys = &keys,
                          .hosts = args[2],
                          .users = args[3],
                          .record_fd = -1,
                          .grant_fd = fcntl(TICKET_FD_THIRD, F_GETFD) < 0 ? -1 : TICKET_FD_THIRD};
    const struct desk_believes believes = {args[2], args[3], args[4], args[5], strcmp(args[6], "require") == 0};
    struct ticket_ready ready = {.result = 0};
    struct limits given;
    struct err err = ERR_INIT;
    limits_of_daemon(&given);
    signal(SIGCHLD, on_child_end);
    ready.result = begin(&judge, args[0], args[1], &believes, TICKET_FD_SECOND, &err);
    close(TICKET_FD_SECOND);
    confine_it(CONFINE_LOCAL);
    if (say_ready(&judge, TICKET_FD_FIRST, &ready, &err))
        judge_all(&judge, TICKET_FD_FIRST);
    return ready.result == 0 ? 0 : 1;
}

/* ---- as a unit of its own ---- */

enum { STRANGERS = 16 }; /* that are looked at in a row */
static int grants = -1;  /* where elmer-spawn joins */
static uid_t rsd_user;

/* A stranger's connection is none; the next may be in order. */
static int accept_of(const char *unit, int listener, uid_t uid)
{
    static struct log_limit limit;
    struct err err = ERR_INIT;
    int fd = service_accept(listener, uid, unit, &err);
    if (fd < 0 && fd != -ESRCH && log_allowed(&limit, 10, 60000))
        log_warning("elmer-tickets refuses a peer: %s", err.text);
    return fd;
}

static int next_grantee(int wait_ms)
{
    struct pollfd listener = {.fd = grants, .events = POLLIN};
    int fd = -1;
    for (unsigned i = 0; i < STRANGERS && fd < 0 && poll(&listener, 1, wait_ms) > 0; i++)
        fd = accept_of(SERVICE_OF_SPAWN, grants, 0);
    return fd;
}

static int await_rsd(int door)
{
    struct pollfd listener = {.fd = door, .events = POLLIN};
    int fd = -1;
    while (fd < 0) {
        if (poll(&listener, 1, service_alive()) > 0)
            fd = accept_of(SERVICE_OF_RSD, door, rsd_user);
    }
    return fd;
}

static bool read_plan(struct ticket_plan *plan)
{
    return service_plan_read(ELMER_RSD_RUNDIR "/" TICKET_PLAN_FILE, 0, plan, sizeof(*plan)) == 0 &&
           plan->size == sizeof(*plan) && strncmp(plan->version, PACKAGE_VERSION, sizeof(plan->version)) == 0;
}

static int serve_unit(void)
{
    static struct ticket_keys keys;
    static struct ticket_plan plan, said;
    const struct passwd *entry = getpwnam("elmer-jobs");
    int users = service_listener("users"), door = service_listener("rsd"), fd;
    struct judge judge = {.keys = &keys,
                          .hosts = plan.hosts,
                          .users = plan.users,
                          .record_fd = -1,
                          .grant_fd = -1,
                          .next_grantee = next_grantee};
    struct limits given;
    grants = service_listener("grants");
    rsd_user = entry ? entry->pw_uid : 0;
    if (users < 0 || door < 0 || grants < 0) {
        log_error("elmer-tickets has not been given its sockets: systemctl restart rsd");
        return 2;
    }
    limits_of_daemon(&given);
    service_notify("READY=1\nSTATUS=waits for rsd");
    for (;;) {
        struct ticket_ready ready = {.result = 0, .pid = getpid()};
        struct err err = ERR_INIT;
        fd = await_rsd(door);
        if (!read_plan(&said) || (plan.size && memcmp(&plan, &said, sizeof(plan)) != 0)) {
            log_notice("elmer-tickets begins anew, as rsd has");
            return SERVICE_AGAIN;
        }
        if (!plan.size) {
            const struct desk_believes believes = {said.hosts, said.users, said.deny_users, said.deny_groups,
                                                   said.required != 0};
            plan = said;
            signal(SIGCHLD, on_child_end);
            ready.result = begin(&judge, plan.dir, plan.host, &believes, users, &err);
            close(users);
            confine_it(CONFINE_LOCAL);
        }
        service_notify("STATUS=");
        if (!say_ready(&judge, fd, &ready, &err) && ready.result < 0)
            return 1;
        judge_all(&judge, fd);
        close(fd);
        if (judge.recorder_gone)
            return 1;
        service_notify("STATUS=waits for rsd");
    }
}

int main(int argc, char **argv)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    log_open("rsd", LOG_LEVEL_INFO);
    signal(SIGPIPE, SIG_IGN);
    confine_it(CONFINE_NETWORK);
    if (argc == 9 && strcmp(argv[1], "serve") == 0)
        return serve(argv + 2);
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve_unit();
    if (argc == 5 && strcmp(argv[1], "key") == 0)
        return certify(argv[2], argv[3], argv[4]);
    fprintf(stderr,
            "usage: elmer-tickets serve [DIRECTORY HOST HOSTS USERS DENIED-USERS DENIED-GROUPS require|accept]\n"
            "       elmer-tickets key DIRECTORY HOST HASH\nsystemd, rsd and eadmin start it.\n");
    return 2;
}
