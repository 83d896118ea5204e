/* become.c - a supervisor takes the ids that it has for good, before it hears a word.
 *
 *            real       effective   saved      file system
 *   uid      elmer-sup  the user    elmer-sup  elmer-sup
 *   gid      the user's, and all of his groups
 *
 * With his uid as the effective one it can bring processes forth that are the user completely, without any capability.
 * The others are a user's of its own: signals go by the real and the saved one, so he can neither end, stop nor wake
 * it, which ranks above all jobs; nor trace it, because these differ and its program is not readable. Files of the
 * groups that it needs, and its pipes, belong to elmer-sup: were they his, his processes could leave the job's group,
 * and its reports could be forged. Ranks and CPUs go by the effective uid, but not those of who has a capability that
 * the caller has not; in a user namespace of his own he has all of them, so rsd looks after ours (rsd/root/guard.c).
 *
 * elmer-spawn (rsd/spawn/birth.c) has looked him up, and has executed us as elmer-sup with his gids, SETUID and
 * SYS_NICE: ids that differ would lose both at exec. SETUID goes here. SYS_NICE stays, for ranks of what is born.
 * Births go to `job`, whose cgroup.procs is elmer-sup's, and that of the group above both leaves. A lease's end needs
 * cgroup.kill, which is rsd's: it is open (dead_man.c).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "rsd/root/caps.h"
#include "rsd/root/reaper.h"
#include "rsd/sup/sup.h"

#ifdef __SANITIZE_ADDRESS__ /* leaks are looked for by a tracer */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

static int take_ids(const struct sup *sup)
{
    const struct user *user = &sup->user;
    uid_t real, effective, saved;
    if (setresuid(sup->own_uid, user->uid, sup->own_uid) < 0)
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

static char *word(const char *name)
{
    const char *value = getenv(name);
    return strdup(value ? value : "");
}

static int find_user(struct sup *sup, struct err *err)
{
    const char *rsd = getenv(SUP_JOBS_VARIABLE), *user = getenv(SUP_UID_VARIABLE);
    uint64_t uid = 0, rsd_uid = 0;
    struct stat st;
    if (!user || !rsd || !str_to_u64(user, &uid) || !str_to_u64(rsd, &rsd_uid) || uid >= UINT32_MAX ||
        rsd_uid >= UINT32_MAX)
        return err_set(err, -EINVAL, "elmer-spawn does not say whose job it is");
    sup->own_uid = getuid();
    sup->rsd_uid = (uid_t)rsd_uid;
    sup->user = (struct user){
        .uid = (uid_t)uid, .gid = getgid(), .name = word("USER"), .home = word("HOME"), .shell = word("SHELL")};
    if (!sup->user.name || !sup->user.home || !sup->user.shell)
        return err_set(err, -ENOMEM, "out of memory");
    if (sup->own_uid == sup->user.uid || sup->own_uid == 0)
        return err_set(err, -EPERM, "a supervisor with the uid of its user, or root, is none");
    sup->kill_fd = fstat(SUP_FD_KILL, &st) == 0 && S_ISREG(st.st_mode) ? SUP_FD_KILL : -1; /* before 5.14: none */
    return sup->kill_fd >= 0 && fcntl(sup->kill_fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
}

/* Ours counts all supervisors: elmer-spawn has taken it away. */
static void limit_of_jobs(struct sup *sup)
{
    const char *text = getenv(SUP_LIMIT_VARIABLE);
    uintmax_t soft, hard;
    if (text && sscanf(text, "%ju %ju", &soft, &hard) == 2)
        sup->limits.processes = (struct rlimit){(rlim_t)soft, (rlim_t)hard};
}

int sup_become(struct sup *sup, struct err *err)
{
    int result = find_user(sup, err);
    if (result < 0)
        return result;
    limit_of_jobs(sup);
    result = take_ids(sup);
    if (result < 0)
        return err_set(err, result, "cannot be a supervisor of user %s: %s", sup->user.name, strerror(-result));
    sup->reaper_fd = reaper_start();
    return sup->reaper_fd < 0 ? err_set(err, sup->reaper_fd, "cannot start a thread: %s", strerror(-sup->reaper_fd))
                              : 0;
}

void user_fini(struct user *user)
{
    free(user->name);
    free(user->home);
    free(user->shell);
    *user = (struct user){0};
}
