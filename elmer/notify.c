#include "config.h"

#include "elmer/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "lib/memory/mem.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/container.h"

enum { STATUS_MS = 5000 };

struct notify {
    struct deadlines *deadlines;
    struct deadline watchdog, status;
    int64_t watchdog_ms; /* 0: none wanted */
    char last[500];
    void (*describe)(char *text, size_t size, void *data);
    void *data;
};

static void on_watchdog(struct deadline *deadline)
{
    struct notify *n = CONTAINER_OF(deadline, struct notify, watchdog);
    sd_notify(0, "WATCHDOG=1");
    deadline_set(n->deadlines, deadline, mono_ms(mono_now()) + n->watchdog_ms);
}

static void on_status(struct deadline *deadline)
{
    struct notify *n = CONTAINER_OF(deadline, struct notify, status);
    char text[sizeof(n->last)];
    n->describe(text, sizeof(text), n->data);
    if (strcmp(text, n->last) != 0) {
        memcpy(n->last, text, sizeof(text));
        sd_notifyf(0, "STATUS=%s", text);
    }
    deadline_set(n->deadlines, deadline, mono_ms(mono_now()) + STATUS_MS);
}

struct notify *notify_create(struct deadlines *deadlines, void (*status)(char *text, size_t size, void *data),
                             void *data)
{
    struct notify *n = mem_zalloc(sizeof(*n));
    *n = (struct notify){.deadlines = deadlines,
                         .describe = status,
                         .data = data,
                         .watchdog.fire = on_watchdog,
                         .status.fire = on_status};
    uint64_t usec;
    if (sd_watchdog_enabled(0, &usec) > 0)
        n->watchdog_ms = (int64_t)(usec / 1000 / 3);
    return n;
}

void notify_ready(struct notify *n)
{
    sd_notify(0, "READY=1");
    on_status(&n->status);
    if (n->watchdog_ms)
        on_watchdog(&n->watchdog);
}

void notify_reloading(struct notify *n)
{
    (void)n;
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, mono_ms(mono_now()) * 1000);
}

void notify_reloaded(struct notify *n)
{
    on_status(&n->status);
    sd_notify(0, "READY=1");
}

void notify_stopping(struct notify *n)
{
    if (n)
        sd_notify(0, "STOPPING=1");
}

void notify_destroy(struct notify *n)
{
    if (!n)
        return;
    deadline_clear(n->deadlines, &n->watchdog);
    deadline_clear(n->deadlines, &n->status);
    free(n);
}

bool notify_wait(const char *why)
{
    const struct timespec time = {.tv_sec = NOTIFY_WAIT_S};
    sigset_t set, before;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &before);
    sd_notifyf(0, "READY=1\nWATCHDOG=1\nSTATUS=elmer cannot begin: %s; it tries again every %d s", why, NOTIFY_WAIT_S);
    do
        number = sigtimedwait(&set, NULL, &time);
    while (number < 0 && errno == EINTR);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (number != SIGHUP)
        return number > 0;
    log_warning("reload: refused: elmer has not begun; \"systemctl restart elmer\" reads the files anew");
    return false;
}
