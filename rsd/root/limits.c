#include "config.h"

#include <stdbool.h>
#include <sys/resource.h>

#include "rsd/root/limits.h"

void limits_of_daemon(struct limits *given)
{
    const rlim_t most = (rlim_t)LIMITS_RT_SECONDS * 1000000;
    struct rlimit limit;
    *given =
        (struct limits){{RLIM_INFINITY, RLIM_INFINITY}, {RLIM_INFINITY, RLIM_INFINITY}, {RLIM_INFINITY, RLIM_INFINITY}};
    if (getrlimit(RLIMIT_NOFILE, &given->files) == 0) {
        limit = (struct rlimit){given->files.rlim_max, given->files.rlim_max};
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (getrlimit(RLIMIT_NPROC, &given->processes) == 0) {
        limit = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
        if (setrlimit(RLIMIT_NPROC, &limit) < 0) { /* a container without CAP_SYS_RESOURCE */
            limit = (struct rlimit){given->processes.rlim_max, given->processes.rlim_max};
            setrlimit(RLIMIT_NPROC, &limit);
        }
    }
    if (getrlimit(RLIMIT_RTTIME, &given->rt) == 0 && given->rt.rlim_cur > most) {
        limit = (struct rlimit){most, given->rt.rlim_max};
        setrlimit(RLIMIT_RTTIME, &limit);
    }
}

void limits_give_back(const struct limits *given)
{
    setrlimit(RLIMIT_NOFILE, &given->files);
    setrlimit(RLIMIT_RTTIME, &given->rt);
    setrlimit(RLIMIT_NPROC, &given->processes);
}
