/* role.h - what a process is to its job, and how messages name that; for elmer, which starts it, and for rsd. */
#ifndef LIB_JOB_ROLE_H
#define LIB_JOB_ROLE_H

#include <stdbool.h>
#include <string.h>

enum job_role { ROLE_COMMAND, ROLE_DAEMON, ROLE_AGENT, ROLE_COUNT };

static inline const char *role_name(enum job_role role)
{
    static const char *const names[ROLE_COUNT] = {"command", "pvmd", "agent"};

    return (unsigned)role < ROLE_COUNT ? names[role] : "?";
}

/* False: there is no such role, and *role stays as it is. */
static inline bool role_by_name(const char *name, enum job_role *role)
{
    for (int i = 0; i < ROLE_COUNT; i++) {
        if (strcmp(name, role_name((enum job_role)i)) == 0) {
            *role = (enum job_role)i;
            return true;
        }
    }
    return false;
}

#endif
