/* limits.h - limits of resources: what rsd's own processes set for themselves, and what jobs get instead. */
#ifndef RSD_LIMITS_H
#define RSD_LIMITS_H

#include <sys/resource.h>

/* As a process found them when it began. */
struct limits {
    struct rlimit files, rt, processes;
};

/* As many descriptors as allowed; as many processes as wanted, because a limit for users must not count supervisors,
 * which all have the same uid; and the end (SIGXCPU) of a process that ranks above every job and computes for
 * LIMITS_RT_SECONDS without once sleeping: that is a fault, and nothing else would run on its CPU. */
enum { LIMITS_RT_SECONDS = 5 };
void limits_of_daemon(struct limits *given);
/* For a child, before exec: nothing of the above is inherited. */
void limits_give_back(const struct limits *given);

#endif
