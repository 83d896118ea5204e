#include <config.h>

#include "rsd/word.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/prepare.h"

enum { FDS = 3, PATIENCE_S = 5 };

struct word {
    uint32_t size; /* of this struct: another one is of another build */
    uint32_t kind;
    int32_t level;
    char version[28], format[1024], text[2048];
};

union control {
    char bytes[CMSG_SPACE(FDS * sizeof(int))];
    struct cmsghdr align;
};

/* ---- root's side ---- */

bool word_open(int fd)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0;
}

static bool say(int fd, struct word *word, const int *fds, size_t count)
{
    union control control = {{0}};
    struct iovec part = {word, sizeof(*word)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    word->size = sizeof(*word);
    snprintf(word->version, sizeof(word->version), "%s", PACKAGE_VERSION);
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, count * sizeof(int));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*word);
}

bool word_log(int fd, int level, const char *format, const char *text)
{
    struct word word = {.kind = WORD_LOG, .level = level};
    snprintf(word.format, sizeof(word.format), "%s", format);
    snprintf(word.text, sizeof(word.text), "%s", text);
    return say(fd, &word, NULL, 0);
}

bool word_waits(int fd, const char *why)
{
    struct word word = {.kind = WORD_WAITS};
    snprintf(word.text, sizeof(word.text), "%s", why ? why : "");
    return say(fd, &word, NULL, 0);
}

bool word_failed(int fd, int status)
{
    struct word word = {.kind = WORD_FAILED, .level = status};
    return say(fd, &word, NULL, 0);
}

bool word_reached(int fd, const char *name, int supervisor)
{
    struct word word = {.kind = WORD_REACHED};
    snprintf(word.text, sizeof(word.text), "%s", name);
    return say(fd, &word, &supervisor, 1);
}

bool word_done(int fd, struct begin_plan *plan)
{
    struct word word = {.kind = WORD_DONE};
    const int file = memfd_create("elmer-rsd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool good;
    plan->size = sizeof(*plan);
    snprintf(plan->version, sizeof(plan->version), "%s", PACKAGE_VERSION);
    good = file >= 0 && write(file, plan, sizeof(*plan)) == (ssize_t)sizeof(*plan) &&
           fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0 &&
           say(fd, &word, (const int[FDS]){plan->facts.groups_fd, plan->facts.tmp_fd, file}, FDS);
    if (file >= 0)
        close(file);
    return good;
}

/* ---- rsd's side ---- */

static int next(int fd, struct word *word, int *fds, int patience_ms, struct err *err)
{
    union control control;
    struct iovec part = {word, sizeof(*word)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    struct pollfd in = {.fd = fd, .events = POLLIN};
    int64_t end = mono_ms(mono_now()) + patience_ms, left;
    ssize_t got;
    int ready;
    do {
        left = end - mono_ms(mono_now());
        ready = poll(&in, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return err_set(err, -ETIMEDOUT, "elmer-rsd-begin (rsd-spawn.service) does not answer");
    got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    for (struct cmsghdr *at = got > 0 ? CMSG_FIRSTHDR(&message) : NULL; at; at = CMSG_NXTHDR(&message, at)) {
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS && at->cmsg_len <= CMSG_LEN(FDS * sizeof(int)))
            memcpy(fds, CMSG_DATA(at), at->cmsg_len - CMSG_LEN(0));
    }
    if (got <= 0)
        return err_set(err, -EPIPE, "elmer-rsd-begin (rsd-spawn.service) has ended");
    if (got != (ssize_t)sizeof(*word) || word->size != sizeof(*word) ||
        strncmp(word->version, PACKAGE_VERSION, sizeof(word->version)) != 0)
        return err_set(err, -EPROTO, "elmer-rsd-begin (rsd-spawn.service) is of another build");
    return 0;
}

void word_show(const char *why)
{
    if (why && why[0])
        sd_notifyf(0, "READY=1\nWATCHDOG=1\nSTATUS=rsd cannot begin: %s; it tries again every %d s", why,
                   PREPARE_AGAIN_S);
    else
        sd_notify(0, "STATUS=");
}

static int take_reached(const char *name, int fd, struct rsd_facts *facts, struct err *err)
{
    struct rsd_reached *more = reallocarray(facts->reached, facts->reached_count + 1, sizeof(*more));
    if (!more || fd < 0) {
        if (fd >= 0)
            close(fd);
        return err_set(err, more ? -EPROTO : -ENOMEM, "the supervisor of job %s cannot be taken over", name);
    }
    facts->reached = more;
    more += facts->reached_count++;
    more->fd = fd;
    snprintf(more->name, sizeof(more->name), "%.*s", (int)sizeof(more->name) - 1, name);
    return 0;
}

static int take_done(const int *fds, struct begin_plan *plan, struct err *err)
{
    struct rsd_facts before = plan->facts;
    ssize_t got = fds[2] < 0 ? -1 : pread(fds[2], plan, sizeof(*plan), 0);
    if (fds[2] >= 0)
        close(fds[2]);
    plan->facts.reached = before.reached;
    plan->facts.reached_count = before.reached_count;
    plan->facts.groups_fd = fds[0];
    plan->facts.tmp_fd = fds[1];
    if (got != (ssize_t)sizeof(*plan) || plan->size != sizeof(*plan) ||
        strncmp(plan->version, PACKAGE_VERSION, sizeof(plan->version)) != 0)
        return err_set(err, -EPROTO, "elmer-rsd-begin (rsd-spawn.service) is of another build");
    return 0;
}

int word_hear(int fd, struct begin_plan *plan, int patience_ms, struct err *err)
{
    static struct word word;
    int result, fds[FDS] = {-1, -1, -1};
    plan->facts = (struct rsd_facts){.reached = NULL};
    while ((result = next(fd, &word, fds, patience_ms, err)) == 0) {
        word.format[sizeof(word.format) - 1] = word.text[sizeof(word.text) - 1] = 0;
        switch ((enum word_kind)word.kind) {
        case WORD_LOG:
            log_diverted((enum log_level)word.level, word.format, word.text);
            break;
        case WORD_WAITS:
            word_show(word.text);
            break;
        case WORD_FAILED:
            return word.level > 0 ? word.level : 1;
        case WORD_REACHED:
            result = take_reached(word.text, fds[0], &plan->facts, err);
            if (result < 0)
                return result;
            fds[0] = -1;
            break;
        case WORD_DONE:
            return take_done(fds, plan, err);
        }
    }
    return result;
}
