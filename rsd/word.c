#include <config.h>

#include "rsd/word.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/pass.h"
#include "rsd/prepare.h"

enum { PATIENCE_S = 5, SLICE_MS = 5000 };

struct word {
    uint32_t size; /* of this struct: another one is of another build */
    uint32_t kind;
    int32_t level;
    char version[28], format[1024], text[2048];
};

/* ---- root's side ---- */

bool word_open(int fd)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0;
}

static bool say(int fd, struct word *word, const int *fds, size_t count)
{
    word->size = sizeof(*word);
    snprintf(word->version, sizeof(word->version), "%s", PACKAGE_VERSION);
    return pass_send(fd, word, sizeof(*word), fds, count) == 0;
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
    int file;
    bool good;
    plan->size = sizeof(*plan);
    snprintf(plan->version, sizeof(plan->version), "%s", PACKAGE_VERSION);
    file = pass_file("elmer-rsd", plan, sizeof(*plan));
    if (file < 0)
        return false;
    good = say(fd, &word, (const int[]){plan->facts.groups_fd, plan->facts.tmp_fd, file}, 3);
    close(file);
    return good;
}

/* ---- rsd's side ---- */

static int next(int fd, struct word *word, int *fds, int patience_ms, struct err *err)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};
    int64_t end = mono_ms(mono_now()) + patience_ms, left;
    int ready, result;
    do { /* to make what jobs need may take longer than systemd waits for us */
        sd_notify(0, "WATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000000");
        left = end - mono_ms(mono_now());
        ready = poll(&in, 1, left > SLICE_MS ? SLICE_MS : left > 0 ? (int)left : 0);
    } while ((ready < 0 && errno == EINTR) || (ready == 0 && left > SLICE_MS));
    if (ready <= 0)
        return err_set(err, -ETIMEDOUT, "elmer-rsd-begin (rsd-spawn.service) does not answer");
    result = pass_receive(fd, word, sizeof(*word), fds);
    if (result < 0 && result != -EPROTO)
        return err_set(err, -EPIPE, "elmer-rsd-begin (rsd-spawn.service) has ended");
    if (result < 0 || word->size != sizeof(*word) ||
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
    struct rsd_reached *more;
    if (fd < 0)
        return err_set(err, -EPROTO, "the supervisor of job %s cannot be taken over", name);
    more = reallocarray(facts->reached, facts->reached_count + 1, sizeof(*more));
    if (!more) {
        close(fd);
        return err_set(err, -ENOMEM, "the supervisor of job %s cannot be taken over", name);
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
    int result, fds[PASS_MAX];
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
            break;
        case WORD_DONE:
            return take_done(fds, plan, err);
        }
    }
    return result;
}
