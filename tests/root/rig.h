/* rig.h - a real root half behind a socketpair, with groups, directories and processes of its own. What the
 * tests have in common beside it is in bed.h. */
#ifndef TESTS_ROOT_RIG_H
#define TESTS_ROOT_RIG_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/wire/channel.h"

struct rig {
    char dir[64]; /* temporary: run/ work/ helper */
    char run[64]; /* where DIR/run leads to; "": nowhere */
    char groups[4096];
    char users[4096]; /* in place of user.slice; a test makes it */
    struct channel channel;
    pid_t root_half;
    int gate;      /* -1: none was made */
    uint64_t cpu;  /* the one that all jobs share */
    bool pvm;      /* jobs that are opened have virtual machines */
    char keys[80]; /* directory of its ticket key; "": tickets are not judged */
    bool tickets_required;
    const char *vouch, *vouch_users; /* as in rsd.conf; NULL: all */
    const char *ticket;              /* of jobs that are opened; NULL: none */
    const char *path;                /* "PATH=..", of commands; NULL: the usual */
};

enum {
    RIG_WAIT_MS = 20000,
    RIG_SUPERVISOR_UID = 65533,
    RIG_TICKET_UID = 65532,
    RIG_JOBS_UID = 65531,
    NOBODY = 65534 /* whose jobs they are */
};

/* Wait until the condition holds; fails the test after RIG_WAIT_MS. */
#define rig_until(condition)                                                                                           \
    do {                                                                                                               \
        const int64_t until_ms_ = rig_now_ms() + RIG_WAIT_MS;                                                          \
        while (!(condition)) {                                                                                         \
            if (rig_now_ms() > until_ms_)                                                                              \
                fail_msg("not within %d ms: %s", RIG_WAIT_MS, #condition);                                             \
            poll(NULL, 0, 2);                                                                                          \
        }                                                                                                              \
    } while (0)

/* NULL, or the last word on what the root half is configured with, before it starts. */
struct rsd_config;
extern void (*rig_configure)(struct rsd_config *config);

/* 0, or 77 with the reason on stderr: this machine cannot run these tests. */
int rig_possible(void);
void rig_up(struct rig *rig); /* keys to vouch_users are the caller's, all else is set */
void rig_down(struct rig *rig);
void rig_root_start(struct rig *rig);
void rig_root_kill(struct rig *rig, int signal); /* and wait for it; returns when it is reaped */
int rig_root_wait(struct rig *rig);              /* its exit status */

void rig_send(struct rig *rig, const struct wire_message *message);
/* The next message of that type, others are skipped; the caller frees it. Fails the test after ms, ten times as long as
 * on a quiet machine: a deadline, no bar. A bar is asserted beside it. */
void rig_expect(struct rig *rig, enum wire_type type, int ms, struct wire_message *message);
/* Nothing of that type comes within ms. */
void rig_expect_none(struct rig *rig, enum wire_type type, int ms);

struct level {
    uint64_t job;
    unsigned level;
    bool lowest;
};
void rig_ask_order(struct rig *rig, uint64_t generation, const struct level *levels, size_t count); /* asked only */
void rig_order(struct rig *rig, uint64_t generation, const struct level *levels, size_t count); /* waits for ordered */
/* Asked only; lease_ms 0: none. */
void rig_ask_open(struct rig *rig, uint64_t job, uint64_t generation, uint64_t lease_ms);
void rig_open(struct rig *rig, uint64_t job, uint64_t generation); /* waits for opened */
/* The program of a pvmd or an agent is always DIR/helper. */
void rig_start(struct rig *rig, uint64_t job, uint32_t process, const char *role, const char *const *argv);
/* A command of job 1 with nothing but a PATH, at these paths. */
void rig_start_at(struct rig *rig, uint32_t process, const char *const *argv, const char *dir, const char *output,
                  const char *errors, bool truncate);
pid_t rig_started(struct rig *rig);
void rig_run(struct rig *rig, uint64_t job, const char *const *argv); /* start and started */
void rig_end(struct rig *rig, uint64_t job, unsigned grace_ms);
double rig_empty(struct rig *rig, uint64_t job, int ms); /* and nothing is left of it */

size_t rig_pids(const struct rig *rig, uint64_t job, const char *leaf, pid_t *pids, size_t max);
/* How many threads of the job are not in that class and priority (policy -1: not in SCHED_FIFO or SCHED_RR at
 * priority). */
size_t rig_wrong(const struct rig *rig, uint64_t job, int policy, int priority, size_t *threads);
/* How many processes of the job have the signal in that set of their status: "SigIgn", "SigCgt". */
size_t rig_signals(const struct rig *rig, uint64_t job, const char *set, int signal);
bool rig_is_called(pid_t pid, const char *name); /* and so is beyond its exec */
size_t rig_zombies(pid_t parent);                /* its children that have ended and were not reaped yet */
pid_t rig_spawn(const struct rig *rig);          /* elmer-spawn, as a child of the root half; 0: there is none */
/* A FIFO work/gate: a job that reads a line of it waits until rig_gate_open(). */
void rig_gate(struct rig *rig);
void rig_gate_open(const struct rig *rig);
bool rig_exists(const struct rig *rig, uint64_t job);
int64_t rig_now_ms(void);
/* CPU time of the first thread of a process, which of root half and supervisor is the one above the jobs: the one that
 * reaps is in SCHED_OTHER (reaper.c). 0: it is gone. */
double rig_thread_ms(pid_t pid);
/* What that thread has waited for a processor so far, as of the last time that it got one. */
double rig_waited_ms(pid_t pid);
/* What the hypervisor has taken from all processors so far. The kernel counts it as the time of who was running or,
 * with PARAVIRT_TIME_ACCOUNTING, of nobody. */
double rig_stolen_ms(void);

#endif
