#include "config.h"

#include "client/pair_writer.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/file.h"
#include "lib/pki/pair.h"
#include "lib/pki/x509.h"

enum { TEXTS = 3 }; /* each with its NUL */

/* ---- the process ---- */

int become_user(const struct passwd *user)
{
    if (setgroups(0, NULL) == 0 && setresgid(user->pw_gid, user->pw_gid, user->pw_gid) == 0 &&
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid) == 0)
        return EXIT_DONE;
    say("cannot become the user %s: %s", user->pw_name, strerror(errno));
    return EXIT_REFUSED;
}

static int write_pair(const char *pki, const char *key, const char *certificate, const char *ca)
{
    struct err err = ERR_INIT;
    int dir = file_dir(pki, 0700, &err);
    int result = dir < 0 ? dir : file_write(dir, "ca.crt", ca, 0644, &err);

    if (result == 0)
        result = pair_write(dir, key, certificate, &err);
    if (dir >= 0)
        close(dir);
    if (result == 0)
        return EXIT_DONE;
    say("%s", err.text);
    return EXIT_REFUSED;
}

/* Splits what has come. If root's process has ended on its way it is not all, and nothing is written. */
static int write_texts(const char *pki, const char *bytes, size_t size)
{
    const char *texts[TEXTS], *at = bytes;

    for (int i = 0; i < TEXTS; i++) {
        const char *end = memchr(at, 0, size - (size_t)(at - bytes));

        if (!end)
            return EXIT_REFUSED;
        texts[i] = at;
        at = end + 1;
    }
    return write_pair(pki, texts[0], texts[1], texts[2]);
}

static int serve(int fd, const char *pki)
{
    static char bytes[TEXTS * (PKI_PEM_MAX + 1)];
    size_t size = 0;
    ssize_t got;

    while ((got = read(fd, bytes + size, sizeof(bytes) - size)) != 0) {
        if (got > 0)
            size += (size_t)got;
        else if (errno != EINTR)
            return EXIT_REFUSED;
    }
    return size > 0 ? write_texts(pki, bytes, size) : EXIT_DONE;
}

/* ---- root's side ---- */

int pair_writer_start(struct pair_writer *writer, const struct passwd *user, const char *pki)
{
    int ends[2];

    writer->pid = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ? -1 : fork();
    if (writer->pid < 0) {
        say("cannot start a process of the user %s: %s", user->pw_name, strerror(errno));
        return EXIT_REFUSED;
    }
    if (writer->pid == 0) {
        int code = become_user(user);

        close(ends[0]);
        _exit(code == EXIT_DONE ? serve(ends[1], pki) : code);
    }
    close(ends[1]);
    writer->socket = ends[0];
    return EXIT_DONE;
}

static bool send_text(int fd, const char *text)
{
    for (size_t left = strlen(text) + 1; left > 0;) {
        ssize_t sent = send(fd, text, left, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return false;
        text += sent > 0 ? sent : 0;
        left -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

int pair_writer_write(struct pair_writer *writer, const char *key, const char *certificate, const char *ca)
{
    /* Where not all can be sent the process has ended, and has said why. */
    (void)(send_text(writer->socket, key) && send_text(writer->socket, certificate) && send_text(writer->socket, ca));
    return pair_writer_end(writer);
}

int pair_writer_end(struct pair_writer *writer)
{
    pid_t pid = writer->pid;
    int status;

    if (pid == 0)
        return EXIT_DONE;
    writer->pid = 0;
    close(writer->socket);
    if (waitpid(pid, &status, 0) == pid && WIFEXITED(status))
        return WEXITSTATUS(status);
    say("the process that writes elmer's key was killed: run eadmin init again");
    return EXIT_REFUSED;
}
