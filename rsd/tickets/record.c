/* record.c - see record.h.
 *
 * The recorder writes what comes at once, so that it survives the death of every process, and syncs half a second after
 * the first of them, so that a power cut takes the last second. It ends on end of file, when its parent has died. A
 * disk that cannot be written costs a line each minute: tickets are then remembered until rsd is restarted. For whom a
 * ticket is used is written before that it is: see judge.h. */
#include "config.h"

#include "rsd/tickets/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/ticket/keys.h"

enum { LOCK_MS = 5000, LOCK_LOOK_NS = 10000000, SYNC_MS = 500, OPEN_FILES = 16, PIPE_BYTES = 1 << 20 };
enum { FILE_SLOTS = TICKET_SLOTS + TICKET_SHEETS };

#define LAST "last" /* no name of a key */

_Static_assert(sizeof(struct record) * TICKET_MARKS <= 4096, "what belongs together is written in one piece");
_Static_assert(sizeof(struct record_user) == TICKET_KEY_BYTES + 4 * sizeof(uint64_t), "padding would be compared");

/* ---- reading ---- */

static void lock(int used)
{
    int64_t end = mono_ms(mono_now()) + LOCK_MS;
    while (flock(used, LOCK_EX | LOCK_NB) < 0) {
        if (mono_ms(mono_now()) >= end) {
            log_warning("the recorder of an earlier rsd is still busy: tickets that it has not written are forgotten");
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = LOCK_LOOK_NS}, NULL);
    }
}

static int load_file(int fd, const uint8_t *key, struct ticket_window *window, uint8_t (*blocks)[TICKET_BLOCK_BYTES])
{
    uint64_t top = 0;
    size_t size = 0, count;
    ssize_t got;
    while (size < (size_t)FILE_SLOTS * TICKET_BLOCK_BYTES &&
           (got = read(fd, (uint8_t *)blocks + size, (size_t)FILE_SLOTS * TICKET_BLOCK_BYTES - size)) > 0)
        size += (size_t)got;
    count = (size + TICKET_BLOCK_BYTES - 1) / TICKET_BLOCK_BYTES;
    memset((uint8_t *)blocks + size, 0, count * TICKET_BLOCK_BYTES - size);
    for (uint32_t slot = 0; slot < TICKET_SLOTS && slot < count; slot++) {
        uint64_t number = ticket_block_number(blocks[slot], slot);
        if (number != UINT64_MAX && number > top)
            top = number;
    }
    for (uint32_t slot = 0; slot < count; slot++)
        if (!ticket_window_restore(window, key, slot, blocks[slot], top))
            return -ENOMEM;
    return 0;
}

int record_load(int used, struct ticket_window *window, struct err *err)
{
    uint8_t(*blocks)[TICKET_BLOCK_BYTES] = calloc(FILE_SLOTS, TICKET_BLOCK_BYTES);
    int copy = openat(used, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    uint8_t key[TICKET_KEY_BYTES];
    lock(used);
    while (result == 0 && dir && blocks && (entry = readdir(dir))) {
        int fd = hex_read(entry->d_name, key, sizeof(key))
                     ? openat(used, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                     : -1;
        if (fd >= 0) {
            result = load_file(fd, key, window, blocks);
            close(fd);
        }
    }
    if (!dir || !blocks || result < 0)
        result = err_set(err, result < 0 ? result : -errno, "cannot read which tickets were used: %s",
                         strerror(result < 0 ? -result : errno));
    if (dir)
        closedir(dir);
    free(blocks);
    return result;
}

void record_load_last(int used, struct record_user *last)
{
    int fd = openat(used, LAST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    uint8_t bytes[sizeof(*last) + 1]; /* more: that of another version */
    *last = (struct record_user){.job = 0};
    if (fd >= 0 && read(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(*last))
        memcpy(last, bytes, sizeof(*last));
    if (fd >= 0)
        close(fd);
}

/* ---- writing ---- */

struct files {
    int last; /* -1: not open */
    struct {
        int fd;
        uint8_t key[TICKET_KEY_BYTES];
    } items[OPEN_FILES];
    size_t count;
};

static void complain(const char *what)
{
    static struct log_limit limit;
    if (log_allowed(&limit, 1, 60000))
        log_error("which tickets were used cannot be written to the disk (%s: %s): they could be used again after a "
                  "restart",
                  what, strerror(errno));
}

static void sync_all(struct files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (fdatasync(files->items[i].fd) < 0)
            complain("fdatasync");
        close(files->items[i].fd);
    }
    files->count = 0;
}

static int file_of(struct files *files, int used, const uint8_t *key)
{
    char name[TICKET_HEX_KEY];
    int fd;
    for (size_t i = 0; i < files->count; i++)
        if (memcmp(files->items[i].key, key, TICKET_KEY_BYTES) == 0)
            return files->items[i].fd;
    if (files->count == OPEN_FILES)
        sync_all(files);
    hex_write(key, TICKET_KEY_BYTES, name);
    fd = openat(used, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        files->items[files->count].fd = fd;
        memcpy(files->items[files->count++].key, key, TICKET_KEY_BYTES);
    }
    return fd;
}

/* Without it a start whose answer is not heard is refused as used: no error of its own. */
static void write_last(const struct record_user *last, int used, struct files *files)
{
    if (files->last < 0)
        files->last = openat(used, LAST, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (files->last >= 0)
        (void)!pwrite(files->last, last, sizeof(*last), 0);
}

/* 1: one was written, 0: there is none now, -1: end. */
static int write_one(int in, int used, struct files *files)
{
    struct record record;
    ssize_t got = read(in, &record, sizeof(record));
    int fd;
    if (got != (ssize_t)sizeof(record))
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    fd = file_of(files, used, record.key);
    write_last(&record.last, used, files);
    if (fd < 0 || pwrite(fd, record.block, sizeof(record.block), (off_t)record.slot * TICKET_BLOCK_BYTES) !=
                      (ssize_t)sizeof(record.block))
        complain(fd < 0 ? "open" : "write");
    return 1;
}

static _Noreturn void record_all(int in, int used)
{
    struct files files = {.last = -1};
    int64_t sync_ms = 0;
    int last = 0;
    while (last >= 0) {
        struct pollfd fd = {.fd = in, .events = POLLIN};
        int64_t left = files.count ? sync_ms - mono_ms(mono_now()) : -1;
        (void)poll(&fd, 1, files.count ? (left > 0 ? (int)left : 0) : -1);
        while ((last = write_one(in, used, &files)) > 0)
            if (files.count == 1 && sync_ms == 0)
                sync_ms = mono_ms(mono_now()) + SYNC_MS;
        if (last < 0 || (sync_ms && mono_ms(mono_now()) >= sync_ms)) {
            sync_all(&files);
            sync_ms = 0;
        }
    }
    _exit(0);
}

/* SIGTERM comes to all processes of the unit: it is the end of who judges that ends this one, when the last mark, which
 * may be made after the signal, is on disk. */
static _Noreturn void recorder(int in, int used)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    (void)sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
    prctl(PR_SET_NAME, "elmer-recorder", 0, 0, 0);
    in = fcntl(in, F_DUPFD_CLOEXEC, 10);
    used = fcntl(used, F_DUPFD_CLOEXEC, 10);
    (void)dup3(in, 3, O_CLOEXEC);
    (void)dup3(used, 4, O_CLOEXEC);
    (void)syscall(SYS_close_range, 5U, ~0U, 0U);
    record_all(3, 4);
}

pid_t record_start(int used, int *fd)
{
    int pair[2];
    pid_t pid;
    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    (void)fcntl(pair[1], F_SETPIPE_SZ, PIPE_BYTES);
    pid = fork();
    if (pid == 0)
        recorder(pair[0], used);
    close(pair[0]);
    if (pid < 0) {
        pid = -errno;
        close(pair[1]);
        return pid;
    }
    *fd = pair[1];
    return pid;
}
