/* hand_over.c - rsd puts root down, when it has started and before it hears anybody.
 *
 * What it goes on to write belongs to elmer-jobs from then on: the place of the jobs' groups and all below, the weight
 * of their slice, and RUNDIR/sup. Of the groups of jobs that run, what belongs to elmer-sup stays so. What still takes
 * root afterwards is asked of elmer-spawn, which is started here, or is a unit of its own: then elmer-rsd-begin gives
 * away the files, and rsd has put root down before. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/caps.h"
#include "rsd/root/internal.h"

enum { DEPTH = 3 };

/* Never through a link, and not what belongs to neither, nor what has another name as well: in RUNDIR/sup, which is
 * elmer-jobs's from the first start on, that may be any file of root's (fs.protected_hardlinks=0). A socket of root's
 * is that of a supervisor of an rsd that was root: nobody else is to connect to it (rsd_reach()). */
static void give_one(const struct root *root, int dir, const char *name)
{
    struct stat st;
    int at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* what is looked at is what is given */
    if (at < 0)
        return;
    if (fstat(at, &st) == 0 && st.st_uid == 0 && !S_ISLNK(st.st_mode) && !S_ISSOCK(st.st_mode) &&
        (S_ISDIR(st.st_mode) || st.st_nlink == 1) &&
        fchownat(at, "", root->config->jobs_uid, root->config->jobs_gid, AT_EMPTY_PATH) < 0)
        log_warning("cannot give %s to elmer-jobs: %s", name, strerror(errno));
    close(at);
}

static void give_below(const struct root *root, int dir, int depth)
{
    struct dirent *entry;
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    while (stream && (entry = readdir(stream))) {
        int below;
        if (entry->d_name[0] == '.')
            continue;
        give_one(root, dir, entry->d_name);
        below = entry->d_type != DT_DIR || depth == 0
                    ? -1
                    : openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            continue;
        give_below(root, below, depth - 1);
        close(below);
    }
    if (stream)
        closedir(stream);
    else if (fd >= 0)
        close(fd);
}

/* As systemd does it for User= of a unit: of the place itself only what is needed to make groups and to move between
 * them, not its limits. */
static int give_place(const struct root *root)
{
    static const char *const files[] = {"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"};
    struct dirent *entry;
    int fd = openat(root->groups_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (fchown(root->groups_fd, root->config->jobs_uid, root->config->jobs_gid) < 0 || !stream) {
        int result = -errno;
        if (stream)
            closedir(stream);
        else if (fd >= 0)
            close(fd);
        return result;
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        give_one(root, root->groups_fd, files[i]);
    while ((entry = readdir(stream))) {
        int below = entry->d_type != DT_DIR || entry->d_name[0] == '.'
                        ? -1
                        : openat(root->groups_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            continue;
        give_one(root, root->groups_fd, entry->d_name);
        give_below(root, below, DEPTH);
        close(below);
    }
    closedir(stream);
    return 0;
}

static void give_weight(const struct root *root)
{
    int dir = place_weight_dir(root);
    if (dir < 0)
        return;
    give_one(root, dir, "cpu.weight");
    close(dir);
}

static int give_files(const struct root *root)
{
    char path[200];
    int result = 0, fd;
    snprintf(path, sizeof(path), "%s/sup", root->config->rundir);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fchown(fd, root->config->jobs_uid, root->config->jobs_gid) < 0)
        result = -errno;
    give_below(root, fd, 0);
    close(fd);
    return result;
}

int rsd_become(uid_t uid, gid_t gid)
{
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ||
        setresuid(uid, uid, uid) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -errno;
    if (caps_keep(CAPS_JOBS) < 0 || setuid(0) == 0 || setgid(0) == 0)
        return -EPERM;
    return 0;
}

int hand_over_files(struct root *root, struct err *err)
{
    int result = give_place(root);
    if (result < 0)
        return err_set(err, result, "cannot give %s to elmer-jobs: %s", root->groups, strerror(-result));
    give_weight(root);
    result = give_files(root);
    return result < 0
               ? err_set(err, result, "cannot give %s/sup to elmer-jobs: %s", root->config->rundir, strerror(-result))
               : 0;
}

int hand_over(struct root *root, struct err *err)
{
    const struct spawn_grants grants = {.fd = root->tickets ? root->tickets->grants : -1};
    int result = hand_over_files(root, err);
    if (result < 0)
        return result;
    root->spawn_pid = spawn_start(root->config, &root->limits, root->users, root->groups, root->groups_fd, root->tmp_fd,
                                  &grants, &root->spawn_fd, err);
    if (root->spawn_pid < 0)
        return root->spawn_pid;
    if (grants.fd >= 0) { /* elmer-spawn's alone */
        close(root->tickets->grants);
        root->tickets->grants = -1;
    }
    result = rsd_become(root->config->jobs_uid, root->config->jobs_gid);
    return result < 0 ? err_set(err, result, "cannot put root down: %s", strerror(-result)) : 0;
}
