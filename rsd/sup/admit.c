#include "config.h"

#include "rsd/sup/admit.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 255 };

/* ---- the user database ---- */

/* What name services say when there is no such name; getpwnam(3) has the list. */
static int missing(int code)
{
    return code == 0 || code == ENOENT || code == ESRCH || code == EBADF || code == EPERM ? -ENOENT : -code;
}

int uid_here(const char *name, id_t *id)
{
    const struct passwd *entry;
    errno = 0;
    entry = getpwnam(name);
    if (!entry)
        return missing(errno);
    *id = entry->pw_uid;
    return 0;
}

int gid_here(const char *name, id_t *id)
{
    const struct group *entry;
    errno = 0;
    entry = getgrnam(name);
    if (!entry)
        return missing(errno);
    *id = entry->gr_gid;
    return 0;
}

/* ---- the lists ---- */

static bool is_user(const struct user *user, id_t uid)
{
    return user->uid == uid;
}

static bool is_member(const struct user *user, id_t gid)
{
    if (user->gid == gid)
        return true;
    for (int i = 0; i < user->group_count; i++) {
        if (user->groups[i] == gid)
            return true;
    }
    return false;
}

/* The next name of a list; false: there is none. */
static bool next_name(const char **list, char name[NAME_BYTES + 1])
{
    const char *begin = *list + strspn(*list, " ");
    size_t length = strcspn(begin, " ");
    *list = begin + length;
    if (length == 0)
        return false;
    if (length > NAME_BYTES)
        length = NAME_BYTES;
    memcpy(name, begin, length);
    name[length] = 0;
    return true;
}

/* A name first, then a number, as chown(1) has it: names of other databases may have blanks in them. */
static int id_of(admit_lookup lookup, const char *name, id_t *id)
{
    unsigned long number;
    int result = lookup(name, id);
    if (result != -ENOENT || strspn(name, "0123456789") != strlen(name))
        return result;
    errno = 0;
    number = strtoul(name, NULL, 10);
    if (errno != 0 || number >= UINT32_MAX)
        return result;
    *id = (id_t)number;
    return 0;
}

/* 1 and the name: one of the list is the user's; 0: none is. */
static int search(const char *list, admit_lookup lookup, bool (*fits)(const struct user *, id_t),
                  const struct user *user, char name[NAME_BYTES + 1])
{
    while (list && next_name(&list, name)) {
        id_t id = 0;
        int result = id_of(lookup, name, &id);
        if (result < 0 && result != -ENOENT)
            return result;
        if (result == 0 && fits(user, id))
            return 1;
    }
    return 0;
}

int admit_judge(const struct user *user, const struct admit_lists *lists, struct err *err)
{
    char name[NAME_BYTES + 1];
    int result = search(lists->users, lists->uid_of, is_user, user, name);
    if (result == 1)
        return err_set(err, -EPERM, ADMIT_DENIED_USER, name);
    if (result < 0)
        return err_set(err, result, "user %s of deny_users in rsd.conf cannot be looked up: %s", name,
                       strerror(-result));
    result = search(lists->groups, lists->gid_of, is_member, user, name);
    if (result == 1)
        return err_set(err, -EPERM, ADMIT_DENIED_GROUP, name);
    if (result < 0)
        return err_set(err, result, "group %s of deny_groups in rsd.conf cannot be looked up: %s", name,
                       strerror(-result));
    return 0;
}

int admit(const struct user *user, bool rt, struct err *err)
{
    const char *program = getenv("ELMER_ACCOUNT"); /* our environment is rsd's */
    const struct admit_lists lists = {getenv("ELMER_DENY_USERS"), getenv("ELMER_DENY_GROUPS"), uid_here, gid_here};
    int result = admit_judge(user, &lists, err);
    return result == 0 && program ? account_ask(program, user, rt, ACCOUNT_MS, err) : result;
}
