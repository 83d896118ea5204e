/* store_copier.c - see store_copier.h.
 *
 * out: the copy is made in a directory of its own in $TMPDIR or /var/tmp (SQLite wants a path, and the store's own disk
 * may be full), opened, removed, and sent. root's $TMPDIR may be closed to others (pam_tmpdir). in: what comes is
 * written beside the store, looked at and counted on by store_restored(), and moved when root's process has closed its
 * end. */
#include "config.h"

#include "client/store_copier.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/common.h"
#include "client/pair_writer.h"
#include "elmer/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"

static int refuse(const char *what, const char *path)
{
    say("%s %s: %s", what, path, strerror(errno));
    return EXIT_REFUSED;
}

/* Until nothing more comes. How much it was; -1 with errno. */
static int64_t pass_on(int from, int to)
{
    static char bytes[1 << 16];
    int64_t size = 0;
    ssize_t got;

    while ((got = read(from, bytes, sizeof(bytes))) != 0) {
        for (ssize_t sent = 0; sent < got;) {
            ssize_t n = write(to, bytes + sent, (size_t)(got - sent));

            if (n < 0 && errno != EINTR)
                return -1;
            sent += n > 0 ? n : 0;
        }
        if (got < 0 && errno != EINTR)
            return -1;
        size += got > 0 ? got : 0;
    }
    return size;
}

/* ---- out ---- */

static int send_copy(const char *store, const char *copy, int to)
{
    struct err err = ERR_INIT;
    int fd = -1, code = EXIT_DONE;

    if (store_copy(store, copy, &err) < 0) {
        say("%s", err.text);
        return EXIT_REFUSED;
    }
    if ((fd = open(copy, O_RDONLY | O_CLOEXEC)) < 0)
        code = refuse("cannot open", copy);
    unlink(copy);
    if (code == EXIT_DONE && pass_on(fd, to) < 0)
        code = errno == EPIPE ? EXIT_REFUSED : refuse("cannot read", copy);
    if (fd >= 0)
        close(fd);
    return code;
}

static int serve_out(const char *store, int to)
{
    const char *place = getenv("TMPDIR");
    bool good = place && *place && access(place, W_OK | X_OK) == 0; /* for the user elmer, who we are */
    char *dir = must(str_format("%s/elmer-backup.XXXXXX", good ? place : "/var/tmp")), *copy;
    int code;

    if (!mkdtemp(dir))
        code = refuse("cannot make a directory for a copy of the store:", dir);
    else {
        copy = must(str_format("%s/elmer.db", dir));
        code = send_copy(store, copy, to);
        rmdir(dir);
        free(copy);
    }
    free(dir);
    return code;
}

/* ---- in ---- */

struct incoming {
    int64_t size, made_ms;
};

static int sync_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), result = fd < 0 ? -1 : fsync(fd);

    if (fd >= 0)
        close(fd);
    return result;
}

static int move_in(const char *draft, const char *store)
{
    static const char *const beside[] = {"-wal", "-shm", ".lock"};
    char *copy = must(strdup(store));
    int code = EXIT_DONE;

    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
        char *name = must(str_format("%s%s", store, beside[i])); /* of a store that was there before */

        unlink(name);
        free(name);
    }
    if (sync_file(draft) < 0 || link(draft, store) < 0 || sync_file(dirname(copy)) < 0)
        code = refuse("cannot make", store);
    free(copy);
    return code;
}

static int take_in(const char *store, const char *draft, int from, const struct incoming *incoming)
{
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), code = EXIT_DONE;
    struct err err = ERR_INIT;
    int64_t came = fd < 0 ? -1 : pass_on(from, fd);
    uint64_t next_job;

    if (came < 0)
        code = refuse("cannot write", draft);
    else if (came != incoming->size) /* root's process has ended, or has said why */
        code = EXIT_REFUSED;
    if (fd >= 0)
        close(fd);
    if (code != EXIT_DONE)
        return code;
    if (store_restored(draft, incoming->made_ms, wall_now().ms, &next_job, &err) < 0) {
        say("%s", err.text);
        return EXIT_REFUSED;
    }
    code = move_in(draft, store);
    if (code == EXIT_DONE)
        printf("The queue is there again; the next job gets the id %" PRIu64 ".\n", next_job);
    return code == EXIT_DONE ? finish_output(code) : code;
}

static void remove_draft(const char *draft)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        char *name = must(str_format("%s%s", draft, ends[i]));

        unlink(name);
        free(name);
    }
}

/* The draft of one that was interrupted may be the store by another name, and SQLite would replay its log into this
 * one. */
static int serve_in(const char *store, int from, const struct incoming *incoming)
{
    char *draft = must(str_format("%s.restore", store));
    int code;

    remove_draft(draft);
    code = take_in(store, draft, from, incoming);
    remove_draft(draft);
    free(draft);
    return code;
}

/* ---- root's side ---- */

/* incoming: NULL: out. */
static int start(struct store_copier *copier, const struct passwd *user, const char *store,
                 const struct incoming *incoming)
{
    int ends[2];

    signal(SIGPIPE, SIG_IGN); /* what the other one says is enough */
    if (fflush(stdout) != 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ||
        (copier->pid = fork()) < 0) {
        say("cannot start a process of the user %s: %s", user->pw_name, strerror(errno));
        return EXIT_REFUSED;
    }
    if (copier->pid == 0) {
        int code = become_user(user);

        close(ends[0]);
        umask(077);
        /* Who interrupts root's process ends this one by its closed end, so that it tidies up. */
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        if (code == EXIT_DONE)
            code = incoming ? serve_in(store, ends[1], incoming) : serve_out(store, ends[1]);
        _exit(code);
    }
    close(ends[1]);
    copier->fd = ends[0];
    return EXIT_DONE;
}

int store_copier_out(struct store_copier *copier, const struct passwd *user, const char *store)
{
    return start(copier, user, store, NULL);
}

int store_copier_in(struct store_copier *copier, const struct passwd *user, const char *store, int64_t size,
                    int64_t made_ms)
{
    const struct incoming incoming = {.size = size, .made_ms = made_ms};

    return start(copier, user, store, &incoming);
}

int store_copier_end(struct store_copier *copier)
{
    int status;

    close(copier->fd);
    while (waitpid(copier->pid, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_REFUSED;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    say("the process that has to do with the store was killed");
    return EXIT_REFUSED;
}
