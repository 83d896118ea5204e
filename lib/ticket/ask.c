/* ask.c - what the root half of rsd asks elmer-tickets: see program.h. Without OpenSSL, as program.c. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/ticket/program.h"

enum { READY_MS = 20000, ANSWER_MS = 2000, TEXTS = 6 };

static void wait_at_most(int fd, int ms)
{
    const struct timeval most = {.tv_sec = ms / 1000};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

int ticket_program_serve(const struct ticket_serve *serve, int listener, pid_t *pid, bool *certified, struct err *err)
{
    const char *const args[] = {"elmer-tickets",
                                "serve",
                                serve->dir,
                                serve->host,
                                serve->hosts,
                                serve->users,
                                serve->deny_users,
                                serve->deny_groups,
                                serve->required ? "require" : "accept",
                                NULL};
    struct ticket_ready ready = {.code = 0};
    int pair[2], result;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    *pid = ticket_program_start(serve->path, args, serve->uid, serve->gid, pair[1], listener, serve->grants, err);
    close(pair[1]);
    wait_at_most(pair[0], READY_MS);
    result = *pid < 0 ? (int)*pid : 0;
    if (result == 0 && recv(pair[0], &ready, sizeof(ready), MSG_WAITALL) != (ssize_t)sizeof(ready))
        result = err_set(err, -EIO, "%s has not begun", serve->path);
    else if (result == 0 && ready.code < 0)
        result = err_set(err, ready.code, "%.*s", (int)sizeof(ready.text) - 1, ready.text);
    wait_at_most(pair[0], ANSWER_MS);
    *certified = ready.certified;
    if (result < 0)
        close(pair[0]);
    return result < 0 ? result : pair[0];
}

/* ---- asking ---- */

static void add(FILE *out, const char *text)
{
    fwrite(text ? text : "", 1, text ? strlen(text) + 1 : 1, out);
}

static char *all_bytes(const struct ticket_ask *ask, size_t *size)
{
    const char *texts[TEXTS] = {ask->ticket, ask->user, ask->dir, ask->output, ask->errors, ask->tmpdir};
    struct ticket_ask head = *ask;
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, size);
    if (!out)
        return NULL;
    fwrite(&head, sizeof(head), 1, out);
    for (size_t i = 0; i < TEXTS; i++)
        add(out, texts[i]);
    for (size_t i = 0; i < ask->argc; i++)
        add(out, ask->argv[i]);
    for (size_t i = 0; i < ask->envc; i++)
        add(out, ask->environment[i]);
    if (fclose(out) != 0 || *size - sizeof(head) > TICKET_ASK_BYTES_MAX) {
        free(bytes);
        return NULL;
    }
    head.size = (uint32_t)(*size - sizeof(head));
    head.ticket = head.user = head.dir = head.output = head.errors = head.tmpdir = NULL;
    head.argv = head.environment = NULL;
    memcpy(bytes, &head, sizeof(head));
    return bytes;
}

static bool send_all(int fd, const char *bytes, size_t size)
{
    for (ssize_t sent; size > 0; bytes += sent, size -= (size_t)sent) {
        sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
    }
    return true;
}

bool ticket_ask(int fd, const struct ticket_ask *ask, struct ticket_verdict *verdict)
{
    size_t size = 0;
    char *bytes = all_bytes(ask, &size);
    bool done = bytes && send_all(fd, bytes, size) &&
                recv(fd, verdict, sizeof(*verdict), MSG_WAITALL) == (ssize_t)sizeof(*verdict);
    free(bytes);
    if (!done)
        *verdict =
            (struct ticket_verdict){.why = UINT32_MAX, .text = "its ticket cannot be judged now", .name = "not-judged"};
    return done;
}

bool ticket_asked(struct ticket_ask *ask, const char *bytes, const char *list[TICKET_ASK_LIST_MAX])
{
    const char **const texts[TEXTS] = {&ask->ticket, &ask->user, &ask->dir, &ask->output, &ask->errors, &ask->tmpdir};
    const char *end = bytes + ask->size;
    size_t lists = (size_t)ask->argc + ask->envc;
    if (lists > TICKET_ASK_LIST_MAX || ask->size == 0 || end[-1])
        return false;
    for (size_t i = 0; i < TEXTS + lists; i++, bytes += strlen(bytes) + 1) {
        if (bytes == end)
            return false;
        *(i < TEXTS ? texts[i] : &list[i - TEXTS]) = bytes;
    }
    ask->argv = list;
    ask->environment = list + ask->argc;
    return bytes == end;
}
