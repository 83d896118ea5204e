#include "config.h"

#include "rsd/root/own_user.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/str.h"

uid_t own_user(void)
{
    const char *text = getenv(OWN_USER_VARIABLE);
    uint64_t uid;
    return text && str_to_u64(text, &uid) && uid > 0 && uid < UINT32_MAX ? (uid_t)uid : OWN_USER_NONE;
}

int own_user_keep(enum caps_of who)
{
    if (getuid() == 0 || geteuid() == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || caps_keep(who) < 0)
        return -EPERM;
    return 0;
}
