/* main.c - elmer-tickets, the program with the host's ticket key: lib/ticket/program.h says who asks what of it.
 *
 * serve is three processes. The first judges for the root half, which waits for it, so it has the root half's class and
 * touches no disk, but to look whether the key is certified now; the desk signs for local users; the recorder writes
 * which tickets were used. The last two are in SCHED_OTHER. When one of them ends all do, and rsd starts again; the
 * recorder ends when all is on disk. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/confine.h"
#include "lib/base/log.h"
#include "lib/ticket/keys.h"
#include "rsd/root/limits.h"
#include "rsd/tickets/certify.h"
#include "rsd/tickets/desk.h"
#include "rsd/tickets/judge.h"
#include "rsd/tickets/record.h"

/* What was used is read before anybody is served; the recorder is made when the secret is the desk's alone. */
static int start_both(struct judge *judge, struct ticket_keys *keys, char **denied, struct err *err)
{
    const struct desk_believes believes = {judge->hosts, judge->users, denied[0], denied[1],
                                           strcmp(denied[2], "require") == 0};
    int used = openat(keys->dir, "used", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), code;
    if (used < 0)
        return err_set(err, -errno, "cannot open %s: %s", "used", strerror(errno));
    code = record_load(used, judge->window, err);
    if (code == 0 && (code = (int)desk_start(keys, &believes, TICKET_FD_SECOND)) < 0)
        err_set(err, code, "cannot fork: %s", strerror(-code));
    ticket_keys_forget_secret(keys);
    if (code >= 0 && (code = (int)record_start(used, &judge->record_fd)) < 0)
        err_set(err, code, "no recorder: %s", strerror(-code));
    close(used);
    return code;
}

static int begin(struct judge *judge, const char *dir, const char *host, char **denied, struct err *err)
{
    int result = ticket_keys_open(judge->keys, dir, host, err);
    if (result < 0)
        return result;
    judge->window = ticket_window_create();
    result = judge->window ? start_both(judge, judge->keys, denied, err) : err_set(err, -ENOMEM, "out of memory");
    ticket_keys_trust(judge->keys, &judge->trust);
    return result < 0 ? result : 0;
}

static void on_child_end(int signal)
{
    static const char line[] = "<3>a process of elmer-tickets has ended; rsd starts again, jobs live on\n";
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

static int serve(char **args)
{
    static struct ticket_keys keys;
    struct judge judge = {.keys = &keys,
                          .hosts = args[2],
                          .users = args[3],
                          .record_fd = -1,
                          .grant_fd = fcntl(TICKET_FD_THIRD, F_GETFD) < 0 ? -1 : TICKET_FD_THIRD};
    struct ticket_ready ready = {.code = 0};
    struct limits given;
    struct err err = ERR_INIT;
    limits_of_daemon(&given);
    signal(SIGCHLD, on_child_end);
    ready.code = begin(&judge, args[0], args[1], args + 4, &err);
    ready.certified = judge.trust.has_authority;
    snprintf(ready.text, sizeof(ready.text), "%.*s", (int)sizeof(ready.text) - 1, err.text);
    close(TICKET_FD_SECOND);
    confine_it(CONFINE_LOCAL);
    if (send(TICKET_FD_FIRST, &ready, sizeof(ready), MSG_NOSIGNAL) == (ssize_t)sizeof(ready) && ready.code == 0)
        judge_all(&judge, TICKET_FD_FIRST);
    return ready.code == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    log_open("rsd", LOG_LEVEL_INFO);
    signal(SIGPIPE, SIG_IGN);
    confine_it(CONFINE_NETWORK);
    if (argc == 9 && strcmp(argv[1], "serve") == 0)
        return serve(argv + 2);
    if (argc == 5 && strcmp(argv[1], "key") == 0)
        return certify(argv[2], argv[3], argv[4]);
    fprintf(stderr, "usage: elmer-tickets serve DIRECTORY HOST HOSTS USERS DENIED-USERS DENIED-GROUPS require|accept\n"
                    "       elmer-tickets key DIRECTORY HOST HASH\nrsd and eadmin start it.\n");
    return 2;
}
