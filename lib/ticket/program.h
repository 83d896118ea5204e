/* program.h - elmer-tickets, the program that has a host's ticket key (rsd/tickets), and what others say to it.
 *
 * It is never root: it runs as a user of its own, elmer-ticket, without any capability. Three things are asked of it:
 *
 *   serve   first: a socket to the root half of rsd, which asks about jobs (below); second: a listening socket, where
 *           local users get their tickets; third: to elmer-spawn (struct ticket_grant). Until the first is closed.
 *           As a unit of its own (rsd-tickets.service) it has three listening sockets of systemd's instead, by name:
 *           rsd, users, grants; rsd connects to the first, when root has written struct ticket_plan, elmer-spawn to
 *           the last. Either end may begin anew; then rsd and elmer-spawn join again.
 *   key     first: what the CA has answered, as text (TICKET_ANSWER); second: there the key goes before, hexadecimal
 * and a newline. The CA is the one with the hash that is given, or it is not believed. */
#ifndef LIB_TICKET_PROGRAM_H
#define LIB_TICKET_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

/* Descriptors that it is started with, beside 0 to 2. */
enum { TICKET_FD_FIRST = 3, TICKET_FD_SECOND = 4, TICKET_FD_THIRD = 5 };

/* A child that ends with us. args has its arguments, with its name, and NULL at the end; its directory, the third of
 * them, is made if it is not there. The descriptors stay ours; third -1: none. Its pid or -errno; what fails in the
 * child is logged. */
pid_t ticket_program_start(const char *path, const char *const *args, uid_t uid, gid_t gid, int first, int second,
                           int third, struct err *err);

/* ---- serve ---- */

struct ticket_serve {
    const char *path, *dir, *host;
    const char *hosts, *users; /* that hosts are believed, and about whom, beside this one: see ticket_is_among() */
    const char *deny_users, *deny_groups; /* names with a blank between: who sees no terminal here from another host */
    bool required; /* nothing runs here without a ticket: only then a process tells for certain who its user is */
    uid_t uid;
    gid_t gid;
    int grants; /* where to say what may be opened; -1: nowhere */
};
/* It serves, and answers on the descriptor that is returned, on which a wait ends after two seconds. listener stays the
 * caller's. -errno. */
int ticket_program_serve(const struct ticket_serve *serve, int listener, pid_t *pid, bool *certified, struct err *err);
/* What it is to serve as a unit: a file of root's in RUNDIR (service_plan_write()), which it reads whenever rsd joins.
 * Another one than before, and it begins anew. */
#define TICKET_PLAN_FILE "tickets.plan"
struct ticket_plan {
    uint32_t size; /* of this struct: another one is of another build */
    char version[28];
    uint64_t begun; /* a number of each start of rsd by an administrator, so that all begin anew then */
    char dir[1024], host[256], hosts[1024], users[1024], deny_users[1024], deny_groups[1024];
    uint32_t required; /* 0 or 1 */
    uint32_t unused;
};
/* Fills the plan, all of it. */
void ticket_plan_fill(struct ticket_plan *plan, const struct ticket_serve *serve, uint64_t begun);
/* Connect to a unit's socket; never waits. The socket, or -errno. Where elmer-tickets judges ticket_program_ready() is
 * next. */
int ticket_program_reach(const char *path, int type, struct err *err);
/* Wait so long for it to be ready. From then on a wait on the descriptor ends after two seconds. */
int ticket_program_ready(int fd, int wait_ms, bool *certified, struct err *err);
enum { TICKET_READY_MS = 20000 };
/* What it says once, when it is ready. */
struct ticket_ready {
    int32_t result;    /* 0, or -errno with a sentence */
    int32_t pid;       /* of who judges: rsd gives it its own class */
    uint8_t certified; /* its key, so that other hosts believe it, and it them; no bool: bytes of another process */
    char text[300];
};

enum ticket_verb {
    TICKET_ASK_OPEN, /* may this job be opened? */
    TICKET_ASK_START /* may this process be started? If so the ticket is used from now on */
};
/* Said, before the verdict, of each job that may be opened: to who starts its supervisor, so that rsd's word is not all
 * that he has. SOCK_SEQPACKET. */
struct ticket_grant {
    uint64_t job;
    uint32_t attempt, uid;
};

enum ticket_role { TICKET_COMMAND, TICKET_DAEMON, TICKET_AGENT };

struct ticket_verdict {
    uint32_t why; /* enum ticket_refusal */
    uint8_t ours; /* good, and this host has signed it; no bool: bytes of another process */
    char text[300];
    char name[32];
};
/* What a verb does not need is NULL or 0. It goes as it is, with `size`, the number of bytes behind it: those of the
 * texts, argv and environment, each with its NUL, in the order of the members. */
struct ticket_ask {
    const char *ticket, *user, *dir, *output, *errors, *tmpdir; /* tmpdir: of the job, on this host */
    const char *const *argv, *const *environment;
    uint64_t job, process, memory_bytes; /* for each processor */
    uint32_t verb, size, attempt, uid, processors, umask, role, argc, envc;
    uint8_t helpers, begun, truncate, capture; /* yes or no, as any byte says it */
};
enum { TICKET_ASK_BYTES_MAX = 4 << 20, TICKET_ASK_LIST_MAX = 8192 };
/* false: nothing comes, and nothing will come in order: close it. The verdict is a refusal then. */
bool ticket_ask(int fd, const struct ticket_ask *ask, struct ticket_verdict *verdict);
/* The other side: all texts are found in bytes, argv and environment put into list. */
bool ticket_asked(struct ticket_ask *ask, const char *bytes, const char *list[TICKET_ASK_LIST_MAX]);

/* ---- key: two lines, HEXADECIMAL CERTIFICATE and the CA's certificate as PEM ---- */
enum { TICKET_ANSWER_MAX = 16 << 10 };

#endif
