/* ask.c - what the root half of rsd asks elmer-tickets: see program.h. Without OpenSSL, as program.c. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/ticket/program.h"

enum { ANSWER_MS = 2000, TEXTS = 6 };

/* ---- joining ---- */

static void wait_at_most(int fd, int ms)
{
    const struct timeval most = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000L};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

int ticket_program_ready(int fd, int wait_ms, bool *certified, struct err *err)
{
    struct ticket_ready ready = {.result = 0};
    wait_at_most(fd, wait_ms);
    if (recv(fd, &ready, sizeof(ready), MSG_WAITALL) != (ssize_t)sizeof(ready))
        return err_set(err, -EIO, "elmer-tickets has not begun");
    wait_at_most(fd, ANSWER_MS);
    *certified = ready.certified != 0;
    if (ready.result < 0)
        return err_set(err, ready.result, "%.*s", (int)sizeof(ready.text) - 1, ready.text);
    return ready.pid;
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
    int pair[2], result;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    *pid = ticket_program_start(serve->path, args, serve->uid, serve->gid, pair[1], listener, serve->grants, err);
    close(pair[1]);
    result = *pid < 0 ? (int)*pid : ticket_program_ready(pair[0], TICKET_READY_MS, certified, err);
    if (result < 0)
        close(pair[0]);
    return result < 0 ? result : pair[0];
}

void ticket_plan_fill(struct ticket_plan *plan, const struct ticket_serve *serve, uint64_t begun)
{
    memset(plan, 0, sizeof(*plan)); /* two are compared as bytes */
    plan->size = sizeof(*plan);
    plan->begun = begun;
    snprintf(plan->version, sizeof(plan->version), "%s", PACKAGE_VERSION);
    snprintf(plan->dir, sizeof(plan->dir), "%s", serve->dir);
    snprintf(plan->host, sizeof(plan->host), "%s", serve->host);
    snprintf(plan->hosts, sizeof(plan->hosts), "%s", serve->hosts);
    snprintf(plan->users, sizeof(plan->users), "%s", serve->users);
    snprintf(plan->deny_users, sizeof(plan->deny_users), "%s", serve->deny_users ? serve->deny_users : "");
    snprintf(plan->deny_groups, sizeof(plan->deny_groups), "%s", serve->deny_groups ? serve->deny_groups : "");
    plan->required = serve->required;
}

int ticket_program_reach(const char *path, int type, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), result;
    if (fd < 0)
        return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) < (int)sizeof(address.sun_path) &&
        connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && fcntl(fd, F_SETFL, 0) == 0)
        return fd;
    result = err_set(err, -errno, "cannot connect to %s: %s", path, strerror(errno));
    close(fd);
    return result;
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
