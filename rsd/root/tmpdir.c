/* tmpdir.c - made by root for the user, and removed by root although a user could put anything into it.
 *
 * Removal descends by descriptors, never through a link or into something mounted (whoever serves that is not asked),
 * and unmounts what the user has mounted (FUSE). Each directory is taken from the user before it is read, so that a
 * process of his outside of the job cannot go on filling it. A tree deeper than DEPTH is flattened: the directory at
 * the limit is moved to the top and comes later. Its user may have taken the name that it gets there: then it gets
 * another, in the next round if need be, when what has the name may be gone.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsd/root/tmpdir.h"

/* Freeing a large file takes the kernel long, and its caller's rank. */
enum { DEPTH = 48, ROUNDS = 100000, NAMES = 100, SWEEP_ENTRIES = 64, LARGE_BYTES = 1 << 20 };

int tmpdir_make(int parent_fd, const char *name, uid_t uid, gid_t gid, struct err *err)
{
    int fd, result = 0;
    if (mkdirat(parent_fd, name, 0700) < 0)
        return err_set(err, -errno, "cannot make the job's temporary directory %s: %s", name, strerror(errno));
    fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, uid, gid) < 0)
        result = err_set(err, -errno, "cannot give the job's temporary directory %s to uid %u: %s", name, (unsigned)uid,
                         strerror(errno));
    if (fd >= 0)
        close(fd);
    if (result < 0)
        unlinkat(parent_fd, name, AT_REMOVEDIR);
    return result;
}

struct removal {
    int top_fd;
    unsigned moved, seen, patience;
    int64_t bytes;
    bool again;
};

/* Of what it takes in memory or on disk. A mount point is not asked, and counts as nothing. */
static int64_t size_of(int dir, const char *name)
{
    struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    struct stat entry;
    int64_t bytes = 0;
    int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
    if (fd < 0)
        return 0;
    if (fstat(fd, &entry) == 0 && S_ISREG(entry.st_mode))
        bytes = (int64_t)entry.st_blocks * 512;
    close(fd);
    return bytes;
}

/* A tree of usual size is gone before anybody waits for the CPU; a large one must not hold up what is ranked below us.
 */
static void count_entry(struct removal *removal, int dir, const char *name)
{
    struct sched_param param = {0};
    if (removal->seen >= removal->patience)
        return;
    removal->bytes += size_of(dir, name);
    if (++removal->seen == removal->patience || removal->bytes > LARGE_BYTES) {
        removal->seen = removal->patience;
        sched_setscheduler(0, SCHED_OTHER, &param);
    }
}

/* A directory of dir, not a link and not a mount. */
static int open_below(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

static int open_and_take(int dir, const char *name)
{
    int fd = open_below(dir, name);
    if (fd >= 0 && (fchown(fd, 0, 0) < 0 || fchmod(fd, 0700) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void unmount(int dir, const char *name)
{
    char path[64 + NAME_MAX];
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
    umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
}

static void remove_directory(struct removal *removal, int dir, const char *name, int depth);

static void remove_entry(struct removal *removal, int dir, const char *name, int depth)
{
    char moved[32];
    count_entry(removal, dir, name);
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return;
    if (errno == EBUSY)
        unmount(dir, name);
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return;
    if (depth < DEPTH) {
        remove_directory(removal, dir, name, depth);
        return;
    }
    do
        snprintf(moved, sizeof(moved), ".elmer-%u", removal->moved++);
    while (renameat(dir, name, removal->top_fd, moved) < 0 && removal->moved % NAMES > 0);
    removal->again = true;
}

static void remove_directory(struct removal *removal, int dir, const char *name, int depth)
{
    struct dirent *entry;
    int fd = open_and_take(dir, name);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((entry = readdir(stream))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(removal, fd, entry->d_name, depth + 1);
    }
    closedir(stream);
    unlinkat(dir, name, AT_REMOVEDIR);
}

int tmpdir_remove(int parent_fd, const char *name, unsigned patience)
{
    struct removal removal = {.again = true, .patience = patience};
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    unmount(parent_fd, name);
    removal.top_fd = open_and_take(parent_fd, name);
    if (removal.top_fd < 0)
        return errno == ENOENT ? 0 : -errno;
    for (unsigned round = 0; removal.again && round < ROUNDS; round++) {
        removal.again = false;
        remove_directory(&removal, parent_fd, name, 0);
    }
    close(removal.top_fd);
    return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Entries are unlinked and never opened: a mount point says EBUSY without asking whoever serves it. Takes fd. */
static void sweep_entries(int fd)
{
    struct dirent *entry;
    int64_t bytes = 0;
    DIR *stream = fdopendir(fd);
    if (!stream) {
        close(fd);
        return;
    }
    for (int i = 0; i < SWEEP_ENTRIES && bytes <= LARGE_BYTES && (entry = readdir(stream)); i++) {
        if (entry->d_type == DT_DIR && entry->d_name[0] == '.')
            continue; /* itself and the one above it; another is left */
        bytes += size_of(fd, entry->d_name);
        if (bytes <= LARGE_BYTES && unlinkat(fd, entry->d_name, 0) < 0 && errno == EISDIR)
            unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    closedir(stream);
}

int tmpdir_sweep(int parent_fd, const char *name)
{
    int fd;
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    fd = open_below(parent_fd, name);
    if (fd >= 0)
        sweep_entries(fd);
    return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -ENOTEMPTY;
}
