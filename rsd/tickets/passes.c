/* passes.c - passes for the processes of jobs, and for who wants to see a job's terminal (lib/ticket/pass.h): made, and
 * looked at for who was shown one.
 *
 * Which job a process belongs to says the kernel, by its control group. A user can make groups of any name where he is
 * given some, so the group must be one whose list of processes belongs to the user of supervisors, whom nobody else is.
 * The process is held by a pidfd from before its group is read until after, so it is the one that has been seen there.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/service.h"
#include "lib/ticket/pass.h"
#include "rsd/root/group.h"
#include "rsd/root/own_user.h"
#include "rsd/sup/admit.h"
#include "rsd/sup/user.h"
#include "rsd/tickets/desk.h"

enum { GROUP_BYTES = 4096, KEPT_MS = 60000, KEPT_USERS = 64 };

static bool lives(int pidfd)
{
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};
    return poll(&fd, 1, 0) == 0;
}

static uid_t supervisors(void)
{
    const struct passwd *entry = getpwnam("elmer-sup");
    return entry ? entry->pw_uid : OWN_USER_NONE;
}

static bool is_of_elmer(const char *group)
{
    char path[GROUP_BYTES], procs[GROUP_BYTES + 16];
    struct err none = ERR_INIT;
    struct stat st;
    if (group_locate("/proc", group, path, sizeof(path), &none) < 0)
        return false;
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    return lstat(procs, &st) == 0 && st.st_uid == supervisors();
}

static int find_job(int socket, pid_t pid, struct pass *pass, struct err *err)
{
    char group[GROUP_BYTES];
    int pidfd = service_hold(socket, pid), result;
    if (pidfd < 0)
        return err_set(err, -EINVAL, "who has asked is gone");
    result = group_of("/proc", pid, group, sizeof(group));
    if (result < 0)
        err_set(err, -EINVAL, "the control group of process %d cannot be read: %s%s", (int)pid, strerror(-result),
                result == -ENOENT ? "; is /proc mounted with hidepid?" : "");
    else if (!lives(pidfd))
        result = err_set(err, -EINVAL, "who has asked is gone");
    else if (!pass_job_of_group(group, &pass->job, &pass->attempt) || !is_of_elmer(group))
        result = err_set(err, -EINVAL, "it is no process of a job: its control group is %.200s", group);
    close(pidfd);
    return result < 0 ? -EINVAL : 0;
}

static int give(const struct ticket_keys *keys, const struct desk_asker *asker, struct pass *pass, char *out,
                struct err *err)
{
    snprintf(pass->host, sizeof(pass->host), "%s", keys->host);
    snprintf(pass->user, sizeof(pass->user), "%s", asker->user);
    memcpy(pass->certificate, keys->certificate, sizeof(pass->certificate));
    if (!pass_sign(pass, keys->key, keys->secret))
        return err_set(err, -EIO, "the signature cannot be made");
    pass_encode(pass, out);
    return 0;
}

int desk_pass(const struct ticket_keys *keys, const struct desk_asker *asker, const char *public_key, char *out,
              struct err *err)
{
    struct pass pass = {.uid = asker->uid};
    int result;
    if (!hex_read(public_key, pass.public_key, sizeof(pass.public_key)))
        return err_set(err, -EINVAL, "its key is none");
    result = find_job(asker->socket, asker->pid, &pass, err);
    return result < 0 ? result : give(keys, asker, &pass, out, err);
}

int desk_pass_to_look(const struct ticket_keys *keys, const struct desk_asker *asker, uint64_t job,
                      const char *public_key, char *out, struct err *err)
{
    struct pass pass = {.looks = true, .job = job, .uid = asker->uid};
    if (job == 0 || !hex_read(public_key, pass.public_key, sizeof(pass.public_key)))
        return err_set(err, -EINVAL, "its key is none, or no job is named");
    return give(keys, asker, &pass, out, err);
}

/* Who was found to be on none of the lists: name services may take long, or be away, and each connection of each erun
 * asks. Of so many users the one who was found first is forgotten. A process has the same lists for all its life. */
static struct admitted {
    uint32_t uid;
    char user[TICKET_USER_MAX + 1];
    int64_t until_ms;
} admitted[KEPT_USERS];
static size_t next_admitted;

static bool is_admitted(const struct pass *pass)
{
    const int64_t now_ms = mono_now_ms();
    for (size_t i = 0; i < KEPT_USERS; i++)
        if (now_ms < admitted[i].until_ms && admitted[i].uid == pass->uid && strcmp(admitted[i].user, pass->user) == 0)
            return true;
    return false;
}

static void keep_admitted(const struct pass *pass)
{
    struct admitted *kept = &admitted[next_admitted++ % KEPT_USERS];
    kept->uid = pass->uid;
    kept->until_ms = mono_now_ms() + KEPT_MS;
    snprintf(kept->user, sizeof(kept->user), "%s", pass->user);
}

/* Who may run nothing here that another host says is his has nothing done or shown here by its word either: neither
 * another process of his job nor its terminal. A job of his that he has submitted here would else be open to whoever
 * holds that host, whether the job is there or not: which hosts a job has, only elmer says. */
static int judge_stranger(const struct desk_believes *believes, const struct pass *pass, struct err *err)
{
    const struct admit_lists lists = {believes->deny_users, believes->deny_groups, uid_here, gid_here};
    struct user user = {.uid = 0};
    int result;
    if (is_admitted(pass))
        return 0;
    result = user_lookup(&user, pass->user, (uid_t)pass->uid, err);
    if (result == 0)
        result = admit_judge(&user, &lists, err);
    if (result == 0)
        keep_admitted(pass);
    free(user.groups);
    free(user.name);
    free(user.home);
    free(user.shell);
    return result == -EPERM ? -EINVAL : result < 0 ? -EAGAIN : 0; /* he may be known in a moment */
}

/* By its key: an earlier host of the same name is another one. */
static bool is_own(const struct ticket_keys *keys, const struct pass *pass)
{
    return memcmp(pass->key, keys->key, sizeof(pass->key)) == 0;
}

static int believe(struct ticket_keys *keys, const struct desk_believes *believes, const char *text, struct pass *pass,
                   struct err *err)
{
    struct ticket_trust trust = {.has_authority = false};
    enum ticket_refusal why = pass_decode(text, pass) ? TICKET_GOOD : TICKET_GARBLED;
    (void)ticket_keys_certified(keys);
    ticket_keys_trust(keys, &trust);
    if (why == TICKET_GOOD)
        why = pass_check_chain(pass, &trust);
    if (why == TICKET_GOOD && !is_own(keys, pass) &&
        !(ticket_is_among(believes->hosts, pass->host) && ticket_is_among(believes->users, pass->user)))
        why = TICKET_NOT_VOUCHED;
    if (why == TICKET_GOOD)
        return 0;
    return err_set(err, -EINVAL, "%s does not believe the pass for job %llu of a process on %s (%s)%s", keys->host,
                   (unsigned long long)pass->job, pass->host[0] ? pass->host : "a host", ticket_refusal_name(why),
                   why == TICKET_OTHER_CLUSTER ? ": one of the two has no certified ticket key; rsd --join again"
                   : why == TICKET_NOT_VOUCHED ? ": see vouch and vouch_users in rsd.conf there"
                                               : "");
}

int desk_pass_check(struct ticket_keys *keys, const struct desk_believes *believes, const char *text, struct err *err)
{
    struct pass pass;
    int result = believe(keys, believes, text, &pass, err);
    return result == 0 && !is_own(keys, &pass) ? judge_stranger(believes, &pass, err) : result;
}

int desk_pass_trust(struct ticket_keys *keys, const struct desk_believes *believes, const char *text, struct err *err)
{
    struct pass pass;
    return believe(keys, believes, text, &pass, err);
}
