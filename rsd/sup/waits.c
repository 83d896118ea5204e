/* waits.c - see waits.h.
 *
 * The page is a file of the user's, in the job's directory on the jobs' own file system, so what he does to it costs
 * what any file there costs. It is made before any process of the job, with all its memory. It is read and written by
 * calls, never mapped: the user may cut it short, and a mapping would end us then. Nothing that is in it is believed:
 * a count is worth no more than the processors of the job can have counted.
 *
 * A process polls if its guard cannot sleep, because it was told not to (ELMER_SPIN=1, a bound of 0) or is not allowed
 * to, and it has made WAITS_ROUNDS rounds without progress in a second: each takes some microseconds at most.
 */
#include "config.h"

#include "rsd/sup/sup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"

enum {
    RANKS_END = 1 << 24,
    PROCESSORS_MOST = 65535,
    WAITS_MOST_MS = 60000 /* of who was not looked at for longer, what he has counted meanwhile is dropped */
};

/* A new file, not through a link, nor in anything that is mounted there: whoever serves that is not asked. */
static int create(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           .mode = 0600,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

/* For this one call our files are the user's: his directory is closed to others. */
static int create_as_user(const struct user *user, uid_t own_uid, const char *tmpdir)
{
    const char *slash = strrchr(tmpdir, '/');
    char name[160];
    int dir, fd, result = 0;
    if (!slash || snprintf(name, sizeof(name), "%.*s", (int)(slash - tmpdir), tmpdir) >= (int)sizeof(name))
        return -ENAMETOOLONG;
    dir = open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    snprintf(name, sizeof(name), "%s/" WAITS_FILE, slash + 1);
    (void)setfsuid(user->uid);
    fd = create(dir, name);
    if (fd < 0)
        result = -errno;
    (void)setfsuid(own_uid);
    close(dir);
    return fd < 0 ? result : fd;
}

int waits_begin(struct waits *waits, const struct user *user, uid_t own_uid, const char *tmpdir)
{
    static const struct page empty = {.head = {.version = PAGE_VERSION}};
    int result = 0;
    if (waits->begun)
        return 0;
    waits->begun = true;
    waits->fd = create_as_user(user, own_uid, tmpdir);
    if (waits->fd < 0)
        return waits->fd;
    ssize_t written = pwrite(waits->fd, &empty, sizeof(empty), 0);
    if (written != (ssize_t)sizeof(empty))
        result = written < 0 ? -errno : -ENOSPC;
    if (result == 0 && snprintf(waits->path, sizeof(waits->path), "%s/" WAITS_FILE, tmpdir) >= (int)sizeof(waits->path))
        result = -ENAMETOOLONG;
    if (result < 0)
        waits_fini(waits);
    return result;
}

void waits_fini(struct waits *waits)
{
    if (waits->begun && waits->fd >= 0)
        close(waits->fd);
    waits->fd = -1;
    waits->path[0] = 0;
}

/* ---- what they have counted ---- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* As far as there is room for whole ranges. */
static void put_ranges(char *text, size_t size, uint32_t *ranks, size_t count)
{
    size_t used = 0;
    text[0] = 0;
    if (count > 1)
        qsort(ranks, count, sizeof(*ranks), by_number);
    for (size_t i = 0, end; i < count; i = end) {
        char range[32];
        for (end = i + 1; end < count && ranks[end] <= ranks[end - 1] + 1; end++)
            ;
        if (ranks[i] == ranks[end - 1])
            snprintf(range, sizeof(range), "%s%u", i ? "," : "", ranks[i]);
        else
            snprintf(range, sizeof(range), "%s%u-%u", i ? "," : "", ranks[i], ranks[end - 1]);
        if (used + strlen(range) >= size)
            return;
        used += (size_t)snprintf(text + used, size - used, "%s", range);
    }
}

static bool polls(const struct page_slot *slot, const struct waits_seen *seen, int64_t elapsed_ms)
{
    uint64_t rounds = slot->rounds > seen->rounds ? slot->rounds - seen->rounds : 0;
    if (rounds > UINT32_MAX)
        rounds = UINT32_MAX;
    return slot->cannot_sleep && slot->rank < RANKS_END && rounds * 1000 >= (uint64_t)elapsed_ms * WAITS_ROUNDS;
}

void waits_count(struct waits *waits, const struct page *page, uint32_t processors, int64_t elapsed_ms)
{
    bool counts = elapsed_ms >= 0 && elapsed_ms <= WAITS_MOST_MS && processors <= PROCESSORS_MOST;
    const uint64_t most_ns = counts ? (uint64_t)elapsed_ms * 1000000 * processors : 0;
    uint32_t ranks[PAGE_SLOTS];
    size_t count = 0;
    uint64_t spun_ns = 0;
    for (size_t i = 0; i < PAGE_SLOTS; i++) {
        const struct page_slot *slot = &page->slots[i];
        struct waits_seen *seen = &waits->seen[i];
        if (counts && slot->pid != 0 && slot->pid == seen->pid) {
            uint64_t more_ns = slot->spun_ns > seen->spun_ns ? slot->spun_ns - seen->spun_ns : 0;
            spun_ns += more_ns < most_ns - spun_ns ? more_ns : most_ns - spun_ns;
            if (polls(slot, seen, elapsed_ms))
                ranks[count++] = slot->rank;
        }
        *seen = (struct waits_seen){slot->pid, slot->rounds, slot->spun_ns};
    }
    waits->spun_us += spun_ns / 1000;
    put_ranges(waits->polls, sizeof(waits->polls), ranks, count);
}

bool waits_look(struct waits *waits, bool alone, uint32_t processors, int64_t now_ms)
{
    static struct page page;
    struct page_head head = {.version = PAGE_VERSION, .alone = alone, .processors = processors};
    if (!waits->begun || waits->fd < 0)
        return false;
    /* What the user has taken away is not made again: it would be a file that grows. */
    if (pread(waits->fd, &page, sizeof(page), 0) != (ssize_t)sizeof(page)) {
        waits->polls[0] = 0;
        return true;
    }
    if (page.head.alone != head.alone)
        (void)!pwrite(waits->fd, &head.alone, sizeof(head.alone), offsetof(struct page_head, alone));
    if (page.head.processors != head.processors)
        (void)!pwrite(waits->fd, &head.processors, sizeof(head.processors), offsetof(struct page_head, processors));
    if (now_ms - waits->looked_ms < WAITS_LOOK_MS)
        return true;
    waits_count(waits, &page, processors, now_ms - waits->looked_ms);
    waits->looked_ms = now_ms;
    return true;
}

void waits_hear(struct sup *sup, const struct wire_look *look)
{
    struct wire_message message = {.type = WIRE_waits};
    if (!sup->connected || !waits_look(&sup->waits, look->alone, (uint32_t)look->processors, mono_ms(mono_now())))
        return;
    message.u.waits.job = sup->job;
    message.u.waits.attempt = sup->attempt;
    message.u.waits.spun_us = sup->waits.spun_us < INT64_MAX ? sup->waits.spun_us : INT64_MAX;
    message.u.waits.polls = sup->waits.polls;
    sup_tell(sup, &message);
}
