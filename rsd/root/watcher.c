#include "config.h"

#include "rsd/root/watcher.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "rsd/root/group.h"

bool watcher_find_users(const char *groups, char *users, size_t size)
{
    static const char scope[] = "/elmer.slice/elmer-jobs.scope";
    struct err err = ERR_INIT;
    const char *at = strstr(groups, scope);
    if (at && !at[strlen(scope)])
        return snprintf(users, size, "%.*s/user.slice", (int)(at - groups), groups) < (int)size;
    return group_locate("/proc", "/user.slice", users, size, &err) == 0;
}
