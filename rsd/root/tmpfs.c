/* tmpfs.c - RUNDIR is in /run, where systemd and others need room to go on, and a job may put anything into its
 * directory. So RUNDIR/jobs is a tmpfs of its own, with a bound for bytes and one for files (a file takes about 1 KiB
 * of the kernel's memory that no size counts).
 *
 * One for all jobs: one for each would be a mount unit of systemd for each, and to unmount it takes the kernel
 * milliseconds (RCU). In memory and not below /var/tmp: a directory is removed by the root half itself, above all jobs,
 * and nothing there may wait for a disk. Who wants a disk can mount it there, before rsd starts.
 *
 * Jobs of an rsd that had no such thing keep their directories: nothing is mounted over them, and it is tried again
 * when the last of them has ended.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/internal.h"
#include "rsd/root/tmpfs.h"

#define SOURCE "elmer-jobs"
enum { BYTES_PER_FILE = 16 << 10, FILES_LEAST = 1024 };

static bool is_mounted(const char *path)
{
    struct statx st;
    return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) == 0 &&
           (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static bool is_ours(const char *path)
{
    char *line = NULL, at[4096];
    size_t capacity = 0;
    bool ours = false;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    while (file && getline(&line, &capacity, file) > 0) {
        if (sscanf(line, "%*s %*s %*s %*s %4095s", at) == 1 && strcmp(at, path) == 0)
            ours = strstr(line, " - tmpfs " SOURCE " ") != NULL; /* the last one is what is seen */
    }
    free(line);
    if (file)
        fclose(file);
    return ours;
}

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    bool empty = dir != NULL;
    while (empty && (entry = readdir(dir)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (dir)
        closedir(dir);
    return empty;
}

int tmpfs_mount(const char *path, uint64_t bytes, struct err *err)
{
    uint64_t files = bytes / BYTES_PER_FILE;
    unsigned long flags = MS_NOSUID | MS_NODEV;
    char options[120];
    if (is_mounted(path)) {
        if (!is_ours(path))
            return 1;
        flags |= MS_REMOUNT;
    } else if (!is_empty(path)) {
        return 0;
    }
    snprintf(options, sizeof(options), "mode=0711,size=%" PRIu64 ",nr_inodes=%" PRIu64, bytes,
             files < FILES_LEAST ? FILES_LEAST : files);
    if (mount(SOURCE, path, "tmpfs", flags, options) < 0)
        return err_set(err, -errno, "%s: %s", path, strerror(errno));
    return 1;
}

uint64_t tmpfs_part_of_memory(unsigned percent)
{
    struct sysinfo info;
    return sysinfo(&info) < 0 ? 0 : (uint64_t)info.totalram / 100 * info.mem_unit * percent;
}

int tmp_open(struct root *root, struct err *err)
{
    const struct rsd_config *config = root->config;
    struct err why = ERR_INIT;
    uint64_t bytes = config->tmpdir_percent ? tmpfs_part_of_memory(config->tmpdir_percent) : config->tmpdir_bytes;
    char path[200];
    int fd, result = 1;
    snprintf(path, sizeof(path), "%s/jobs", config->rundir);
    if (bytes > 0)
        result = tmpfs_mount(path, bytes, &why);
    if (result < 0)
        log_warning("cannot give the jobs' directories a file system with %" PRIu64 " bytes: %s", bytes, why.text);
    if (result == 0 && !root->tmp_waits)
        log_notice("the jobs' directories get a file system of their own when those of an earlier rsd have gone");
    root->tmp_waits = result == 0;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
    if (root->tmp_fd >= 0)
        close(root->tmp_fd);
    root->tmp_fd = fd;
    return 0;
}

void tmp_settle(struct root *root)
{
    if (!root->tmp_waits || job_count_live(root) > 0 || root->stop)
        return;
    log_notice(
        "the last job of an earlier rsd has gone: rsd starts again, to give the jobs' directories a file system");
    root->stop = true; /* to mount takes root */
    root->status = 1;
}
