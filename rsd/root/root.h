/* root.h - the root half of rsd: makes jobs' groups, ranks what runs in them, ends them. Verbs come from the network
 * half; see root.c. */
#ifndef RSD_ROOT_H
#define RSD_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/service.h"
#include "lib/ticket/program.h"
#include "rsd/config.h"
#include "rsd/root/order.h"

/* elmer-tickets beside the root half. */
struct rsd_tickets {
    int fd;          /* which it answers on */
    int grants;      /* what elmer-spawn hears it on: see struct ticket_grant */
    pid_t pid;       /* 0: no child of ours */
    bool unit;       /* it is joined, again and again; else it is a child */
    bool joining;    /* it has not said yet that it is ready */
    int64_t join_ms; /* not joined before: systemd may close what it takes at once, while a unit is being stopped */
    struct ticket_verdict opening; /* of the job that is being opened */
    bool gone;                     /* it has not answered: rsd starts again, and is asked again then */
};

#define RSD_UNITS_VARIABLE "ELMER_RSD_UNITS" /* "yes": rsd.service has them beside it */
/* Where units listen, below RUNDIR. */
#define RSD_NET_SOCKET    "net.sock"
#define RSD_JUDGE_SOCKET  "judge.sock"
#define RSD_GRANTS_SOCKET "grants.sock"
#define RSD_SPAWN_SOCKET  "spawn.sock"
#define RSD_UNIT_NET      "rsd-net.service"
#define RSD_UNIT_TICKETS  "rsd-tickets.service"

/* Again, by SIGHUP; or elmer-spawn stands still: its unit is to be killed. */
enum { RSD_EXIT_AGAIN = SERVICE_AGAIN, RSD_EXIT_STUCK = 3 };

/* A connection of root's to the supervisor of a job. */
struct rsd_reached {
    char name[32]; /* JOB.ATTEMPT */
    int fd;        /* -1: it was taken */
};
/* What root has found and made before rsd begins, where that is another program (rsd/begin). */
struct rsd_facts {
    enum order_mode mode;
    unsigned controllers; /* of the jobs' groups, see controllers.h */
    bool tmp_waits;       /* the jobs' directories have no file system of their own yet */
    pid_t spawn_pid;
    int groups_fd, tmp_fd, line; /* directories of the jobs' groups and directories; line: to elmer-spawn */
    char mode_reason[1024], reserve_refused[600], groups[4096], users[4096]; /* as in struct root */
    struct rsd_reached *reached;                                             /* NULL: none */
    size_t reached_count;
};
/* As root: connect to the supervisors of an rsd that was root, which listen to nobody else. The descriptor is closed
 * when the function returns. */
void rsd_reach(const struct rsd_config *config, void (*reached)(void *data, const char *name, int fd), void *data);
/* Put root down for good: this user, with SYS_NICE as far as we have it, no new privileges. 0 or -errno. */
int rsd_become(uid_t uid, gid_t gid);
/* As root: find and make it, and give elmer-jobs what is its. The line is not known yet. 0 or -errno. */
int rsd_begin(const struct rsd_config *config, struct rsd_facts *facts, struct err *err);

/* Run until SIGTERM (0), until the network half is gone or talks garbage (1), or until SIGHUP (RSD_EXIT_AGAIN: the
 * files are others, and nothing of them is read yet); a restart adopts what lives. -ECANCELED: it could not begin, and
 * has said why. fd_net: socketpair to the network half (taken over); -1: it is a unit, and is joined here, again and
 * again when it has gone. net_pid: its process, 0 in tests. tickets: what was started or joined, or NULL: then none can
 * be judged. facts: what root has made for us, who are elmer-jobs with SYS_NICE; NULL: we are root, make it here, and
 * put root down. Jobs and their supervisors live on in every case. */
int rsd_root_main(int fd_net, pid_t net_pid, const struct rsd_config *config, struct rsd_tickets *tickets,
                  const struct rsd_facts *facts);
/* Give a unit's process our own class, if it is one of that unit's: the number is its own word. */
void rsd_join_rank(pid_t pid, const char *unit);
/* A number that stays the same when rsd crashes or is reloaded, and is another after an administrator has stopped it
 * (rsd_begun_end()): what is joined then begins anew as well. 0 or -errno. */
int rsd_begun(const struct rsd_config *config, uint64_t *begun);
void rsd_begun_end(const struct rsd_config *config);

#endif
