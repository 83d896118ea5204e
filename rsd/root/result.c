/* result.c - what became of a job is kept for the next root half, until elmer has it on disk and says `forget`.
 *
 * Beside the supervisor's socket, in rundir, which is in memory: nothing on the way of an end waits for a disk. The
 * file is made, and its room taken, when the supervisor is started, so that a job is rather not opened than its result
 * lost because users have filled the file system. Until the job's leaf is empty its supervisor knows the ends of its
 * processes; told to quit it says the last of them and `done`, and lives until it is told to quit again, which is when
 * they are here (ending.c). So at every moment one of the two has them, and a supervisor that answers is right,
 * whatever is here: a write that was cut short can only be found together with one. It is written once and then only
 * removed.
 *
 * Bounds: a page for a job of up to some 400 processes here; MAX_TOMBSTONES jobs that have ended. At that bound no job
 * is opened any more (verbs.c), rather than that an older one's result is dropped. They do not outlive a reboot: then
 * such a job is one of a host that was lost.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/internal.h"

enum { SPARE_EXITS = 16 };
#define ENDING ".ended"

/* Of this machine and this boot, so in its byte order. A changed layout needs another mark. */
struct kept {
    char mark[8];
    uint64_t sum; /* of all that follows */
    uint64_t id;
    uint32_t attempt, uid, count;
    uint8_t end_asked, lapsed, struck, unused[1];
    double cpu_seconds;
    int64_t memory_peak_bytes;
    char lost[256];
};
struct kept_exit {
    uint32_t number;
    int16_t status;
    uint8_t role, signal;
};
static const char mark[8] = {'E', 'L', 'M', 'R', 'E', 'N', 'D', '1'};

static void path_of(const struct root *root, const struct root_job *job, char *path, size_t size)
{
    snprintf(path, size, "%s/sup/%s" ENDING, root->config->rundir, job->name);
}

/* FNV-1a */
static uint64_t sum_of(const struct kept *kept, size_t size)
{
    const unsigned char *at = (const unsigned char *)&kept->id, *end = (const unsigned char *)kept + size;
    uint64_t sum = 14695981039346656037u;
    for (; at < end; at++)
        sum = (sum ^ *at) * 1099511628211u;
    return sum;
}

int result_reserve(const struct root *root, const struct root_job *job)
{
    char path[200];
    size_t size = sizeof(struct kept) + (job->ncpus + SPARE_EXITS) * sizeof(struct kept_exit);
    int fd, result;
    path_of(root, job, path, sizeof(path));
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    result = -posix_fallocate(fd, 0, (off_t)size);
    close(fd);
    if (result < 0)
        unlink(path);
    return result;
}

static size_t fill(const struct root_job *job, struct kept *kept, struct kept_exit *exits)
{
    size_t size;
    memcpy(kept->mark, mark, sizeof(mark));
    kept->id = job->id;
    kept->attempt = job->attempt;
    kept->uid = job->uid;
    kept->end_asked = job->end_asked;
    kept->lapsed = job->lapsed;
    kept->cpu_seconds = job->cpu_seconds;
    kept->memory_peak_bytes = job->memory_peak_bytes;
    kept->struck = job->struck_bytes > 0;
    snprintf(kept->lost, sizeof(kept->lost), "%s", job->lost);
    for (size_t i = 0; i < job->process_count; i++) {
        const struct job_process *process = &job->processes[i];
        if (process->exited && !process->acknowledged)
            exits[kept->count++] = (struct kept_exit){process->number, (int16_t)process->exit_status,
                                                      (uint8_t)process->role, (uint8_t)process->signal};
    }
    size = sizeof(*kept) + kept->count * sizeof(*exits);
    kept->sum = sum_of(kept, size);
    return size;
}

void result_keep(const struct root *root, struct root_job *job)
{
    struct kept *kept = calloc(1, sizeof(*kept) + job->process_count * sizeof(struct kept_exit));
    char path[200];
    ssize_t size = 0, written = -1;
    int fd = -1;
    path_of(root, job, path, sizeof(path));
    if (kept) {
        size = (ssize_t)fill(job, kept, (struct kept_exit *)(kept + 1));
        fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    if (fd >= 0) {
        written = pwrite(fd, kept, (size_t)size, 0);
        close(fd);
    }
    if (!kept || written != size)
        log_error("job=%s: its result cannot be kept in %s (%s): it is lost if rsd ends before elmer has it on disk",
                  job->name, path, written >= 0 ? strerror(ENOSPC) : strerror(errno));
    free(kept);
    job->kept = true;
}

void result_drop(const struct root *root, const struct root_job *job)
{
    char path[200];
    path_of(root, job, path, sizeof(path));
    unlink(path);
}

/* ---- in the next root half ---- */

static struct kept *read_whole(const char *path, size_t *size)
{
    struct stat st;
    struct kept *kept = NULL;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    *size = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof(*kept) &&
        st.st_size <= (off_t)(sizeof(*kept) + (MAX_PROCESSES + SPARE_EXITS) * sizeof(struct kept_exit)) &&
        (kept = malloc((size_t)st.st_size)) && read(fd, kept, (size_t)st.st_size) == st.st_size)
        *size = (size_t)st.st_size;
    close(fd);
    return kept;
}

static bool is_whole(const struct kept *kept, size_t size, const struct root_job *job)
{
    size_t needs = sizeof(*kept);
    if (size < needs || memcmp(kept->mark, mark, sizeof(mark)) != 0 || kept->count > MAX_PROCESSES)
        return false;
    needs += kept->count * sizeof(struct kept_exit);
    return size >= needs && kept->sum == sum_of(kept, needs) && kept->id == job->id && kept->attempt == job->attempt &&
           memchr(kept->lost, 0, sizeof(kept->lost));
}

static bool take_over(struct root_job *job, const struct kept *kept)
{
    const struct kept_exit *exits = (const struct kept_exit *)(kept + 1);
    free(job->processes); /* what may be told of a job that is being adopted is less than this */
    job->processes = NULL;
    job->process_count = 0;
    for (size_t i = 0; i < kept->count; i++) {
        struct job_process *process = exits[i].role < ROLE_COUNT ? job_process(job, exits[i].number, true) : NULL;
        if (!process)
            return false;
        process->role = (enum job_role)exits[i].role;
        process->exited = true;
        process->exit_status = exits[i].status;
        process->signal = exits[i].signal;
    }
    job->uid = (uid_t)kept->uid;
    job->end_asked = kept->end_asked;
    job->lapsed = kept->lapsed;
    job->cpu_seconds = kept->cpu_seconds;
    job->memory_peak_bytes = kept->memory_peak_bytes;
    if (kept->struck) /* a kernel of before 5.19 knows no peak */
        job->struck_bytes = kept->memory_peak_bytes > 0 ? (uint64_t)kept->memory_peak_bytes : 1;
    memcpy(job->lost, kept->lost, sizeof(job->lost));
    job->kept = true;
    return true;
}

bool result_recall(const struct root *root, struct root_job *job)
{
    char path[200];
    size_t size = 0;
    struct kept *kept;
    bool whole;
    path_of(root, job, path, sizeof(path));
    kept = read_whole(path, &size);
    whole = kept && is_whole(kept, size, job) && take_over(job, kept);
    if (kept && !whole && kept->mark[0])
        log_warning("job=%s: what was kept of its result in %s cannot be read: removed", job->name, path);
    free(kept);
    if (!whole)
        unlink(path);
    return whole;
}

static void recall_name(struct root *root, const char *name)
{
    char copy[64];
    uint64_t id;
    uint32_t attempt;
    size_t length = strlen(name), end = strlen(ENDING);
    struct root_job *job;
    if (length <= end || length >= sizeof(copy) || strcmp(name + length - end, ENDING) != 0)
        return;
    memcpy(copy, name, length - end);
    copy[length - end] = 0;
    if (!job_name_parse(copy, &id, &attempt) || job_find(root, id, attempt) || !(job = job_add(root, id, attempt)))
        return;
    job->supervisor_gone = true;
    job_move(job, JOB_CLOSING);
    job_move(job, JOB_EMPTY);
    if (!result_recall(root, job))
        job_drop(root, job);
}

void results_recall(struct root *root)
{
    char path[200];
    struct dirent *entry;
    DIR *dir;
    size_t before = root->job_count;
    snprintf(path, sizeof(path), "%s/sup", root->config->rundir);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)) && root->job_count < MAX_JOBS + MAX_TOMBSTONES)
        recall_name(root, entry->d_name);
    if (dir)
        closedir(dir);
    if (root->job_count > before)
        log_notice("%zu job%s ended here of which elmer has not all on disk", root->job_count - before,
                   root->job_count - before == 1 ? " has" : "s have");
}
