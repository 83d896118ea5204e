/* adopt.c - the jobs of an earlier root half.
 *
 * Every name in sup/, every group and every directory of a job is tried. A supervisor that answers brings its job back
 * as OPEN. One whose result was put down is EMPTY. A group without either is lost if processes are in it, else it is a
 * leftover and is removed.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/root/internal.h"
#include "rsd/root/root.h"

enum { ENTRIES_READ = 5 * MAX_JOBS }; /* of sup/, where other files are, too */

static int reach(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The directory is elmer-jobs's, who may put there what he likes, and change it at any moment: so it is this very file
 * that is connected to, by its descriptor, and one that has no other name. Those whose listener is not root's are
 * elmer-jobs's own, which ExecStopPost= of rsd.service has given to root: they go back. */
static int reach_as_root(const struct rsd_config *config, int dir, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1;
    struct ucred peer = {.uid = 1};
    socklen_t length = sizeof(peer);
    struct stat st;
    if (at < 0)
        return -1;
    if (fstat(at, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == 0 && st.st_nlink == 1) {
        snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", at);
        fd = reach(&address);
        if (fd >= 0 &&
            (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.uid != 0 || peer.gid != 0)) {
            close(fd);
            fd = -1;
        }
        if (fd < 0 && fchownat(at, "", config->jobs_uid, config->jobs_gid, AT_EMPTY_PATH) < 0)
            log_warning("cannot give %s to elmer-jobs: %s", name, strerror(errno));
    }
    close(at);
    return fd;
}

static bool is_job_name(const char *name)
{
    char canonical[48];
    uint64_t id;
    uint32_t attempt;
    if (!job_name_parse(name, &id, &attempt))
        return false;
    snprintf(canonical, sizeof(canonical), "%" PRIu64 ".%" PRIu32, id, attempt);
    return strcmp(name, canonical) == 0;
}

void rsd_reach(const struct rsd_config *config, void (*reached)(void *data, const char *name, int fd), void *data)
{
    char path[200];
    const struct dirent *entry;
    DIR *dir;
    snprintf(path, sizeof(path), "%s/sup", config->rundir);
    dir = opendir(path);
    for (size_t count = 0; dir && count < ENTRIES_READ && (entry = readdir(dir)); count++) {
        int fd = is_job_name(entry->d_name) ? reach_as_root(config, dirfd(dir), entry->d_name) : -1;
        if (fd < 0)
            continue;
        reached(data, entry->d_name, fd);
        close(fd);
    }
    if (dir)
        closedir(dir);
}

/* What root has reached for us, or ourselves. */
static int connection_to(struct root *root, const struct root_job *job)
{
    struct sockaddr_un address;
    for (size_t i = 0; i < root->reached_count; i++) {
        int fd = root->reached[i].fd;
        if (fd < 0 || strcmp(root->reached[i].name, job->name) != 0)
            continue;
        root->reached[i].fd = -1;
        return fd;
    }
    return supervisor_address(root, job, &address) < 0 ? -1 : reach(&address);
}

static void connect_to(struct root *root, struct root_job *job)
{
    struct wire_message adopt = {.type = WIRE_adopt};
    struct ucred peer;
    socklen_t length = sizeof(peer);
    int fd = connection_to(root, job);
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 ||
        (peer.uid != 0 && peer.uid != root->config->jobs_uid) ||
        channel_init(&job->supervisor, fd, WIRE_FROM_SUPERVISOR, SUPERVISOR_OUT_MAX) < 0) {
        close(fd);
        return;
    }
    job->connected = true;
    job->by_root = peer.uid == 0 && peer.gid == 0; /* see rsd/spawn/birth.c; a user of group 0 loses nothing by it */
    tell_supervisor(job, &adopt);
}

static void find_supervisor_pid(struct root_job *job)
{
    struct group_pids pids = {0};
    if (group_pids(job->group.sup_fd, &pids) == 0 && pids.count > 0) {
        job->supervisor_pid = pids.items[0];
        job->supervisor_pidfd = (int)syscall(SYS_pidfd_open, pids.items[0], 0);
    }
    group_pids_fini(&pids);
}

static void adopt_one(struct root *root, const char *name)
{
    struct err err = ERR_INIT;
    struct root_job *job;
    uint64_t id;
    uint32_t attempt;
    if (!job_name_parse(name, &id, &attempt) || job_find(root, id, attempt))
        return;
    job = job_add(root, id, attempt);
    if (!job)
        return;
    job->since_ms -= SHORT_MS; /* nobody knows for how long it has run */
    job->session_nice = -1;    /* as an earlier order has left them */
    if (group_open(root->groups_fd, name, false, &job->group, &err) == 0) {
        group_freeze(&job->group, false); /* we may have died in sched_apply() */
        find_supervisor_pid(job);
    }
    lease_recall(root, job);
    tickets_recall(root, job);
    job_move(job, JOB_OPEN);
    connect_to(root, job);
}

static void adopt_names(struct root *root, DIR *dir)
{
    struct dirent *entry;
    if (!dir)
        return;
    while ((entry = readdir(dir)) && root->job_count < MAX_JOBS)
        adopt_one(root, entry->d_name);
    closedir(dir);
}

static DIR *open_stream(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

/* All answers are waited for together: what we hold must be known before elmer asks. */
static void wait_for_answers(struct root *root)
{
    int64_t deadline = mono_ms(mono_now()) + ADOPT_MS;
    struct pollfd fds[MAX_JOBS];
    for (;;) {
        nfds_t count = 0;
        int64_t left = deadline - mono_ms(mono_now());
        for (size_t i = 0; i < root->job_count && i < MAX_JOBS; i++) {
            struct root_job *job = root->jobs[i];
            if (job->connected && !job->supervisor.dead && !job->ready)
                fds[count++] = (struct pollfd){.fd = job->supervisor.fd, .events = POLLIN};
        }
        if (count == 0 || left <= 0 || (poll(fds, count, (int)left) < 0 && errno != EINTR))
            return;
        for (nfds_t k = 0; k < count; k++) {
            for (size_t i = 0; fds[k].revents && i < root->job_count; i++) {
                struct root_job *job = root->jobs[i];
                if (job->connected && job->supervisor.fd == fds[k].fd) {
                    supervisor_read(root, job);
                    break;
                }
            }
        }
    }
}

/* Nobody watches it: with processes it is lost, without it is what an interrupted open or end has left. */
static void adopt_failed(struct root *root, struct root_job *job)
{
    if (group_populated(&job->group)) {
        supervisor_lose(root, job);
        return;
    }
    log_notice("job=%s: what an earlier rsd has left of it is removed", job->name);
    supervisor_disconnect(job);
    job->supervisor_gone = true;
    job->discard = true;
    supervisor_kill(root, job);
    ending_begin(root, job, 0);
}

/* The root half died when the result was here, and something of the job is still to be removed. */
static void resume(struct root *root, struct root_job *job)
{
    supervisor_disconnect(job);
    job->supervisor_gone = true;
    supervisor_kill(root, job);
    ending_resume(root, job);
}

void supervisors_connect(struct root *root)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/sup", root->config->rundir);
    adopt_names(root, open_stream(AT_FDCWD, path));
    adopt_names(root, open_stream(root->groups_fd, "."));
    adopt_names(root, open_stream(root->tmp_fd, "."));
}

void supervisors_adopt(struct root *root)
{
    size_t adopted = 0;
    wait_for_answers(root);
    for (size_t i = root->job_count; i-- > 0;) {
        struct root_job *job = root->jobs[i];
        if (job->state != JOB_OPEN)
            continue;
        if (job->ready)
            adopted++;
        else if (result_recall(root, job))
            resume(root, job);
        else
            adopt_failed(root, job);
    }
    results_recall(root);
    if (adopted > 0)
        log_notice("%zu job%s of an earlier rsd %s adopted", adopted, adopted == 1 ? "" : "s",
                   adopted == 1 ? "is" : "are");
}
