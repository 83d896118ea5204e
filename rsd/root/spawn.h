/* spawn.h - elmer-spawn (rsd/spawn), the one program of a workstation that is root for good, and what rsd asks of it.
 *
 * It is what elmer-rsd-begin becomes (rsd/begin), or where it is no unit of its own rsd starts it while it is root
 * itself. Root gives it what it needs to know in a file that nobody can change. rsd is the only one at the other end of
 * its line: SOCK_SEQPACKET, one request and one answer at a time, both of one build. It names jobs by number; every
 * path is made by elmer-spawn below descriptors that it was given at its start. */
#ifndef RSD_ROOT_SPAWN_H
#define RSD_ROOT_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/un.h>

#include "lib/base/err.h"
#include "rsd/config.h"

/* Descriptors that it is started with: the line; the directory of the jobs' groups; that of their directories; what
 * elmer-tickets grants; its plan. */
enum { SPAWN_FD_LINE = 3, SPAWN_FD_GROUPS, SPAWN_FD_TMP, SPAWN_FD_GRANTS, SPAWN_FD_PLAN };
enum { SPAWN_OWN_USERS = 6 };
enum { SPAWN_JOIN_MS = 100 }; /* from the end of one elmer-tickets to joining at the next */

struct spawn_plan {
    uint32_t size; /* of this, so that no other build takes it */
    char version[32];
    bool tickets_required; /* a supervisor is started for jobs only that elmer-tickets has granted */
    uint32_t minimum_uid, supervisor_uid, jobs_uid, jobs_gid;
    /* Elmer's users, as which nothing runs for anybody, whatever minimum_uid says; UINT32_MAX: there is no such one. */
    uint32_t own[SPAWN_OWN_USERS];
    char supervisor[4096], escapes[4096], account[1024];
    char deny_users[1024], deny_groups[1024];
    char helpers[RSD_HELPERS][RSD_HELPER_BYTES];
    char users[4096], groups[4096];
    struct sockaddr_un grants; /* where elmer-tickets is joined again when it has begun anew; family 0: nowhere */
    struct rlimit rt;          /* of RLIMIT_RTTIME, as it was given: elmer-spawn fills it in */
};

enum spawn_verb {
    SPAWN_SUPERVISOR, /* for this job, as its user, in its group; two descriptors: what it will have as 3 and 4 */
    SPAWN_REMOVE,     /* the job's directory; a descriptor that is closed when it is gone, or given up */
    SPAWN_SIGNAL,     /* to each process of the job: where its supervisor cannot, see death.c */
    SPAWN_ESCAPES,    /* elmer-escapes */
    SPAWN_NUMBER,     /* a setting of the kernel for rt_reserve: what it is; given a value, set that first */
};
struct spawn_request {
    uint64_t job;
    uint32_t verb, attempt, uid, signal;
    int64_t lease_ms, contact_ms; /* of the supervisor */
    int64_t value;
    /* No bool, which may have two values only: who has taken rsd sends any. */
    uint8_t set;                    /* the value; else only look */
    uint8_t ask_lists, ask_account; /* deny_users and deny_groups; PAM */
    char text[256];                 /* the user's name; the leaf, sup or job; the path of the setting */
};
/* With a pidfd, where a process was started. */
struct spawn_answer {
    int32_t result, pid; /* result: 0 or -errno */
    int64_t value;
};

/* ---- in rsd ---- */

struct root;
struct root_job;
struct limits;
/* What elmer-tickets is heard on, -1: nothing; and where it is joined again, "": nowhere. */
struct spawn_grants {
    int fd;
    char path[100];
};
/* Started once, as root; ends when its line is closed. Its pid, which is rsd's child, or -errno. *line: for the rest.
 */
pid_t spawn_start(const struct rsd_config *config, const struct limits *given, const char *users, const char *groups,
                  int groups_fd, int tmp_fd, const struct spawn_grants *grants, int *line, struct err *err);
/* The same in our own place, where elmer-spawn is a unit: the line is facts->line. Returns only if it cannot be tried;
 * if it cannot be executed that is in the log, and we end. */
struct rsd_facts;
void spawn_become(const struct rsd_config *config, const struct limits *given, const struct rsd_facts *facts,
                  const struct spawn_grants *grants, struct err *err);
/* These wait for the answer. If none comes in SPAWN_MS rsd stops, and is started again. -errno, or 0. */
enum { SPAWN_MS = 5000 };
int spawn_supervisor(struct root *root, struct root_job *job, const char *user, int channel, int listener, int *pidfd);
int spawn_remove(struct root *root, const struct root_job *job, int done);
int spawn_signal(struct root *root, const struct root_job *job, const char *leaf, int number);
int spawn_escapes(struct root *root, int *pidfd);
int spawn_number(struct root *root, const char *path, int64_t *value, bool set);

#endif
