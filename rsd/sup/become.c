/* become.c - a supervisor puts root down, before it hears of anything that a user can choose.
 *
 *            real       effective   saved      file system
 *   uid      elmer-sup  the user    elmer-sup  elmer-sup
 *   gid      the user's, and all of his groups
 *
 * With his uid as the effective one it can bring processes forth that are the user completely, without any capability.
 * The others are a user's of its own: signals go by the real and the saved one, so he can neither end, stop nor wake
 * it, which ranks above all jobs; nor trace it, because these differ and its program is not readable. Files of the
 * groups that it needs, and its pipes, belong to elmer-sup: were they his, his processes could leave the job's group,
 * and its reports could be forged. Ranks go by the effective uid, but not those of who has a capability that the
 * caller has not.
 *
 * Births go to `job`, whose cgroup.procs must be writable, and that of the group above both leaves. The root half has
 * no right to what is not root's, and uses neither. A lease's end needs cgroup.kill, which it does use: that is opened
 * before (dead_man.c). SYS_NICE stays, for ranks of what is born.
 *
 * Ids are those of a thread, and a name service may have made threads of its own. libc's calls change all of them, and
 * with root's ids those lose its capabilities, too. Ours is started afterwards.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/root/caps.h"
#include "rsd/root/own_user.h"
#include "rsd/root/reaper.h"
#include "rsd/sup/sup.h"

#ifdef __SANITIZE_ADDRESS__ /* leaks are looked for by a tracer */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

/* rsd may be protected from the OOM killer. Jobs are not, and we are so small that we are not looked at. */
static void reset_oom(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!write(fd, "0", 1);
    close(fd);
}

static int take_group(struct sup *sup)
{
    static const char *const files[] = {"../cgroup.procs", "cgroup.procs"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (fchownat(sup->job_fd, files[i], sup->own_uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
    }
    sup->kill_fd = openat(sup->job_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    return sup->kill_fd < 0 && errno != ENOENT ? -errno : 0; /* a kernel of before 5.14 has none */
}

static int take_ids(const struct sup *sup)
{
    const struct user *user = &sup->user;
    uid_t real, effective, saved;
    if (setgroups((size_t)user->group_count, user->groups) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
        prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(sup->own_uid, user->uid, sup->own_uid) < 0)
        return -errno;
    (void)setfsuid(sup->own_uid);
    if (caps_keep(CAPS_SUPERVISOR) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        getresuid(&real, &effective, &saved) < 0)
        return -errno;
    if (real != sup->own_uid || effective != user->uid || saved != sup->own_uid ||
        (uid_t)setfsuid((uid_t)-1) != sup->own_uid || (user->uid != 0 && seteuid(0) == 0))
        return -EPERM;
    return 0;
}

int sup_become(struct sup *sup, struct err *err)
{
    int result;
    sup->own_uid = own_user();
    if (sup->own_uid == sup->user.uid)
        return err_set(err, -EPERM,
                       "user %s has the uid of supervisors on this host: run systemd-sysusers and restart rsd",
                       sup->user.name);
    result = take_group(sup);
    if (result < 0)
        return err_set(err, result, "cannot take over the job's group: %s", strerror(-result));
    reset_oom();
    result = take_ids(sup);
    if (result < 0)
        return err_set(err, result, "cannot put root down for user %s: %s", sup->user.name, strerror(-result));
    sup->reaper_fd = reaper_start();
    return sup->reaper_fd < 0 ? err_set(err, sup->reaper_fd, "cannot start a thread: %s", strerror(-sup->reaper_fd))
                              : 0;
}
