/* user.c - the user of the job, looked up once when it is opened: a start must not wait for a name service. */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "rsd/sup/user.h"

enum { MAX_GROUPS = 65536 };

static int copy_user(struct user *user, const struct passwd *entry, struct err *err)
{
    user->uid = entry->pw_uid;
    user->gid = entry->pw_gid;
    user->name = strdup(entry->pw_name);
    user->home = strdup(entry->pw_dir && entry->pw_dir[0] ? entry->pw_dir : "/");
    user->shell = strdup(entry->pw_shell && entry->pw_shell[0] ? entry->pw_shell : "/bin/sh");
    if (!user->name || !user->home || !user->shell)
        return err_set(err, -ENOMEM, "out of memory");
    return 0;
}

static int copy_groups(struct user *user, struct err *err)
{
    int count = 64;
    for (;;) {
        int had = count;
        gid_t *groups = reallocarray(user->groups, (size_t)count, sizeof(*groups));
        if (!groups)
            return err_set(err, -ENOMEM, "out of memory");
        user->groups = groups;
        if (getgrouplist(user->name, user->gid, groups, &count) >= 0)
            break;
        if (count <= had)
            count = had * 2;
        if (count > MAX_GROUPS)
            return err_set(err, -E2BIG, "user %s is in too many groups", user->name);
    }
    user->group_count = count;
    return 0;
}

int user_lookup(struct user *user, const char *name, uid_t uid, struct err *err)
{
    const struct passwd *entry;
    int result;
    errno = 0;
    entry = getpwnam(name);
    if (!entry) {
        result = errno;
        return err_set(
            err, -ENOENT,
            "user %s is not known on this host%s%s: the same users with the same uids are needed on all hosts; make "
            "the account here, too",
            name, result ? ": " : "", result ? strerror(result) : "");
    }
    if (entry->pw_uid != uid)
        return err_set(err, -EPERM,
                       "user %s has uid %u on this host but uid %u where the job was submitted: make the hosts' user "
                       "databases agree",
                       name, (unsigned)entry->pw_uid, (unsigned)uid);
    result = copy_user(user, entry, err);
    return result == 0 ? copy_groups(user, err) : result;
}
