/* sup.h - what the files of the supervisor share. */
#ifndef RSD_SUP_H
#define RSD_SUP_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/job/role.h"
#include "lib/wire/channel.h"
#include "rsd/root/limits.h"
#include "rsd/root/budget.h"
#include "rsd/root/order.h"
#include "rsd/sup/pace.h"
#include "rsd/root/signal_queue.h"
#include "rsd/sup/user.h"
#include "rsd/sup/waits.h"

enum {
    SUP_MAX_PROCESSES = 4096,
    SUP_MAX_PENDING = 256,      /* messages kept while no root half is there */
    SUP_AGENT_FRAME = 16 << 10, /* nothing that an agent says is longer */
    SUP_AGENT_READ = 1 << 10,   /* and no more of it is read at a time */
    SUP_LINE = 1000,
    SUP_BEGIN_MS = 10000,
    SUP_PUSH_MS = 5 /* a new process that has not got to exec by then waits behind a higher job: it is pushed */
};

/* BORN: between fork and exec. FAILED: never got to exec. EXITED: its status is kept until elmer has it on disk and
 * says so. ACKNOWLEDGED: it does; kept so that the process is never started twice. */
enum process_state { PROCESS_BORN, PROCESS_RUNNING, PROCESS_FAILED, PROCESS_EXITED, PROCESS_ACKNOWLEDGED };

struct process {
    uint32_t number;
    enum job_role role;
    enum process_state state;
    uint64_t request; /* id of the start */
    pid_t pid;
    bool reaped;               /* its pid may come again */
    int report_fd;             /* end of file: exec has succeeded; else struct child_report */
    int64_t push_ms, birth_ns; /* when it is looked at next until it has executed its command; what it had used then */
    int64_t own_ns;            /* of that, from what it has of its own */
    bool lowered;              /* it has used up what it may use above the jobs, for now */
    unsigned pushes;
    int exit_status, signal;
    uint32_t end;              /* EXITED: the how-manieth of the job's here */
    char *failure;             /* FAILED: why */
    struct wire_message start; /* while BORN: for the words of a failure */
    int capture_fd;            /* stdout of the process */
    struct pace capture_pace, agent_pace;
    bool line_sent;
    char line[SUP_LINE + 1];
    size_t line_size;
    struct channel agent;
    bool has_agent, agent_ready;
    size_t may_spawn; /* the hosts that it has to ask for */
    struct agent_asked {
        uint32_t request;
        char *host, *command;
    } * asked; /* [nasked] that have no answer yet */
    size_t nasked;
    char *dir, *files[2]; /* reader.c: of a command, where its output and its errors go; NULL: nowhere, or no memory */
};

/* What is being read for the user; one part at a time. */
struct reader {
    int fd; /* of the pipe; -1: nothing is */
    int pidfd;
    int64_t deadline_ms;
    uint64_t request;
    uint32_t process;
    struct pace pace;
    size_t size;
    char *bytes;
};

struct sup {
    struct channel root;
    bool connected, begun, quit;
    bool may_end;  /* told to quit again: the root half has put down what it was told */
    uint32_t ends; /* of processes, so far */
    int listen_fd, signal_fd, reaper_fd, job_fd, kill_fd;
    uid_t rsd_uid;         /* of rsd; root's is good too */
    uid_t own_uid;         /* of supervisors */
    pid_t errand, weigher; /* children of signals.c; 0: none */
    int weigh_nice;        /* told last, for the sessions of the job */
    bool weigh_due;        /* and not yet done by a child that has begun since */
    int64_t weigh_ms;      /* not before */
    int errand_signal;     /* what that child sends */
    struct signal_queue signals;
    struct order_rank signal_rank; /* of who sends to many */
    struct pace reap_pace, signal_pace;
    struct cpu_budget births; /* CPU time above the jobs, beside what births have of their own */
    int64_t births_own_ns;    /* what is left of that to all of them */
    cpu_set_t birth_cpus;     /* for which they have got it */
    uint64_t job;
    uint32_t attempt;
    struct user user;
    char tmpdir[128];
    const char *daemon, *agent; /* paths of the helpers' programs */
    struct order_ranks ranks;
    struct limits limits; /* of the unit that it is born in, for the job's processes */
    bool rt;              /* we are in a real-time class */
    int64_t lease_ms;     /* 0: none */
    int64_t contact_ms;   /* CLOCK_BOOTTIME: when the last thing was said that elmer has answered */
    struct process **processes;
    size_t count;
    char *pending[SUP_MAX_PENDING]; /* JSON */
    size_t pending_count;
    struct reader reader;
    struct waits waits;
};

void user_fini(struct user *user);

/* become.c: who the user is, and his uid as the effective one, for good; the thread that reaps is started. 0 or -errno.
 */
int sup_become(struct sup *sup, struct err *err);

/* signals.c: to all processes of the job, and their sessions' nice value */
void signals_send(struct sup *sup, const struct wire_send_signal *message);
void signals_step(struct sup *sup, int64_t now);             /* what its turn has come for */
int64_t signals_wait_ms(const struct sup *sup, int64_t now); /* until then; INT64_MAX: nothing waits for a time */
void signals_weigh(struct sup *sup, int nice);
void signals_reaped(struct sup *sup, pid_t pid, int status);

/* process.c: life of one process */
void process_start(struct sup *sup, struct wire_message *message); /* takes the message over, if it needs it longer */
void process_report(struct sup *sup, struct process *process);     /* report_fd is readable */
void process_capture(struct sup *sup, struct process *process);    /* capture_fd is readable */
int64_t process_capture_wait_ms(const struct process *process, int64_t now); /* until it may be read again */
void process_free(struct process *process);
void process_peek(struct sup *sup, struct process *process); /* has it ended, or stopped? */
void process_reaped(struct sup *sup, pid_t pid, int status);
void process_acknowledged(struct sup *sup, uint32_t number);
struct process *process_find(const struct sup *sup, uint32_t number);
void process_tell_exited(struct sup *sup, const struct process *process);
void process_tell_ends(struct sup *sup); /* in the order in which they came */

/* push.c: until it has executed its command; _birth: its rank to begin with, on those CPUs; _born: it has, or failed */
struct order_rank process_birth(struct sup *sup, struct process *process, const cpu_set_t *cpus, int64_t now);
void process_born(struct sup *sup, struct process *process, int64_t now);
void process_push(struct sup *sup, struct process *process, int64_t now);
struct order_rank process_rank(const struct sup *sup, const struct process *process); /* which it is to have then */

/* reader.c: output of the job's processes, read as the user */
void reader_note(struct process *process, const struct wire_start *start); /* where it goes */
void reader_forget(struct process *process);
void reader_offer(struct sup *sup); /* the root half may ask */
void reader_begin(struct sup *sup, const struct wire_message *message);
void reader_step(struct sup *sup, bool readable); /* something has come, or its time may be over */
void reader_fini(struct sup *sup);

/* agent.c: the agent of a virtual machine and its messages */
void agent_read(struct sup *sup, struct process *process);
void agent_drain(struct sup *sup, struct process *process); /* it has ended: what it wrote last, then no more of it */
int64_t agent_wait_ms(const struct process *process, int64_t now); /* until it may be read again */
void agent_resend(struct sup *sup, struct process *process);       /* what elmer may not have heard */
void agent_forget(struct process *process);                        /* what it has asked for */
void agent_hear_root(struct sup *sup, const struct wire_message *message);

/* waits.c: how the job is here; the answer is how it waits */
void waits_hear(struct sup *sup, const struct wire_look *look);

/* dead_man.c */
bool lease_option(struct sup *sup, const char *option); /* --lease=MS,CONTACT; false: it is something else */
void lease_contact(struct sup *sup, uint64_t said_ms);
int lease_timeout(const struct sup *sup, int timeout); /* of poll(2), shortened to look at the lease in time */
bool lease_over(const struct sup *sup);
void lease_kill(struct sup *sup); /* returns when no process of the job is left */

/* tell.c */
void sup_tell(struct sup *sup, const struct wire_message *message); /* to the root half, or kept for the next one */
void sup_tell_kept(struct sup *sup);
void sup_tell_adopted(struct sup *sup);
void sup_flush(struct sup *sup); /* what a turn has told; a root half that cannot be told is left */
void sup_disconnect(struct sup *sup);

/* child.c: from fork to exec */
enum child_stage {
    STAGE_SESSION,
    STAGE_CPUS,
    STAGE_GROUPS,
    STAGE_USER,
    STAGE_DIR,
    STAGE_OUTPUT,
    STAGE_ERRORS,
    STAGE_HOSTFILE,
    STAGE_RANK,
    STAGE_EXEC
};
struct child_report {
    int stage, error;
};
struct child_plan {
    const struct user *user;
    char *const *argv, **environment;
    const struct wire_strs *given; /* of a command: what came with the job of its environment */
    const char *dir, *output, *errors, *hosts, *hostfile;
    bool truncate, rt, reset_on_fork, few_files;
    mode_t umask;
    const struct limits *limits;
    const cpu_set_t *cpus;
    struct order_rank birth, rank;      /* until it has become the user and has its files; then */
    int stdout_fd, agent_fd, report_fd; /* -1: none */
};
_Noreturn void child_run(const struct child_plan *plan);
/* For another child of the supervisor: away from its descriptors but out_fd, which becomes 1, and the user, completely.
 * Returns, or ends the process. */
void child_become_user(const struct user *user, int out_fd);
/* A sentence: what failed, why, what to do. */
void child_explain(const struct child_report *report, const struct wire_start *start, const char *user, char *text,
                   size_t size);

#endif
