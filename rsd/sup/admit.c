#include "config.h"

#include "rsd/sup/admit.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

enum { NAME_BYTES = 255, BUFFER_MIN = 4 << 10, BUFFER_MAX = 16 << 20 };

/* ---- the user database ---- */

/* What name services say when there is no such name; getpwnam(3) has the list. */
static int missing(int code)
{
    return code == 0 || code == ENOENT || code == ESRCH || code == EBADF || code == EPERM ? -ENOENT : -code;
}

static int find_user(const char *name, char *buffer, size_t size, id_t *id)
{
    struct passwd entry, *found = NULL;
    int result = getpwnam_r(name, &entry, buffer, size, &found);
    if (!found)
        return missing(result);
    *id = entry.pw_uid;
    return 0;
}

/* The size is that of the list of its members. */
static int find_group(const char *name, char *buffer, size_t size, id_t *id)
{
    struct group entry, *found = NULL;
    int result = getgrnam_r(name, &entry, buffer, size, &found);
    if (!found)
        return missing(result);
    *id = entry.gr_gid;
    return 0;
}

static int look_up(int (*find)(const char *, char *, size_t, id_t *), const char *name, id_t *id)
{
    int result = -ERANGE;
    for (size_t size = BUFFER_MIN; result == -ERANGE && size <= BUFFER_MAX; size *= 2) {
        char *buffer = malloc(size);
        if (!buffer)
            return -ENOMEM;
        result = find(name, buffer, size, id);
        free(buffer);
    }
    return result;
}

static int uid_of(const char *name, id_t *id)
{
    return look_up(find_user, name, id);
}

static int gid_of(const char *name, id_t *id)
{
    return look_up(find_group, name, id);
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
    uint64_t number;
    int result = lookup(name, id);
    if (result != -ENOENT || !str_to_u64(name, &number) || number >= UINT32_MAX)
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
        return err_set(err, -EPERM, "jobs of user %s from other hosts are refused (deny_users in rsd.conf)", name);
    if (result < 0)
        return err_set(err, result, "user %s of deny_users in rsd.conf cannot be looked up: %s", name,
                       strerror(-result));
    result = search(lists->groups, lists->gid_of, is_member, user, name);
    if (result == 1)
        return err_set(err, -EPERM, "jobs of group %s from other hosts are refused (deny_groups in rsd.conf)", name);
    if (result < 0)
        return err_set(err, result, "group %s of deny_groups in rsd.conf cannot be looked up: %s", name,
                       strerror(-result));
    return 0;
}

int admit(const struct user *user, bool rt, struct err *err)
{
    const char *program = getenv("ELMER_ACCOUNT"); /* our environment is rsd's */
    const struct admit_lists lists = {getenv("ELMER_DENY_USERS"), getenv("ELMER_DENY_GROUPS"), uid_of, gid_of};
    int result = admit_judge(user, &lists, err);
    return result == 0 && program ? account_ask(program, user->name, rt, ACCOUNT_MS, err) : result;
}
