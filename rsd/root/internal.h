/* internal.h - what the files of the root half share: the table of jobs and the state of the loop. */
#ifndef RSD_ROOT_INTERNAL_H
#define RSD_ROOT_INTERNAL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "lib/job/role.h"
#include "lib/wire/channel.h"
#include "rsd/config.h"
#include "rsd/root/admission.h"
#include "rsd/root/controllers.h"
#include "rsd/root/boost.h"
#include "rsd/root/budget.h"
#include "rsd/root/group.h"
#include "rsd/root/limits.h"
#include "rsd/root/order.h"
#include "rsd/root/root.h"
#include "rsd/root/sched.h"
#include "rsd/root/signal_queue.h"
#include "rsd/root/spawn.h"

enum {
    MAX_LACKS = CONTROLLER_COUNT + 1,
    MAX_JOBS = 1024,          /* with groups */
    MAX_TOMBSTONES = 4096,    /* ended, not forgotten: at so many no job is opened any more */
    MAX_ORDER = 2 * MAX_JOBS, /* entries: also of jobs that are ending */
    MAX_PROCESSES = 4096,     /* of a job on this host, ever */
    LEASE_MAX_MS = 86400000,
    SHORT_MS = 500, /* who has run for so long is protected from what others cost above all jobs */
    MAX_RAISED = 16,
    MAX_HELPERS = 64, /* of a job on this host: more than one daemon and one agent are not expected */
    OPEN_MS = 20000,  /* a supervisor must have answered (it looks the user up, and asks PAM) */
    ADOPT_MS = 3000,
    QUIT_MS = 1000,      /* and have quit */
    REMOVE_S = 30,       /* a job's directory must be gone, or it is left behind with a line ... */
    REMOVE_WAIT_MS = 20, /* ... but the job's end waits for it no longer than this */
    SWEEP_MS = 1000,
    LOOK_STILL = 3,    /* how often the time to the next message `look` is doubled where nobody waits */
    SWEEP_SOON_MS = 3, /* after an order that changed the job, then four times as long each time, up to SWEEP_MS */
    NEW_TASKS_MS = 20, /* at least between scans for new tasks of helpers */
    NEW_TASKS_MAX_MS = 200,
    NEW_TASKS_CALM_PART = 32 /* of the time without a new task, to the next scan */
};

/* OPENING: group made, supervisor started, one of its answer and the order of open's generation is missing. OPEN:
 * processes may start. TERMINATING: TERM is sent, the grace runs. KILLING: cgroup.kill is sent, what is left is raised,
 * again and again. CLOSING: no process is left; the supervisor tells the last ends and quits, group and directory go.
 * EMPTY: only usage and exits are left, until forget, in a file too (result.c). */
enum root_job_state { JOB_OPENING, JOB_OPEN, JOB_TERMINATING, JOB_KILLING, JOB_CLOSING, JOB_EMPTY, ROOT_JOB_STATES };
const char *job_state_name(enum root_job_state state);

/* Who pays for what is done above all jobs: see walks.c. */
enum payer {
    PAYER_TOP,    /* the jobs at the top here: what is done for them takes nothing from a job above */
    PAYER_ORDERS, /* that jobs below come, change and go */
    PAYER_SCANS,  /* sweeps of jobs below, and scans for their new tasks */
    PAYER_COUNT
};
/* A walk over a job's threads: see walks.c. WALK_ORDER: the order is not applied before it is done. */
enum walk_why { WALK_NONE, WALK_SWEEP, WALK_ORDER };
struct walk {
    enum walk_why why;
    struct sched_pass pass;
    bool in_pass, freezing;
    unsigned passes;
    int64_t due_ms, limit_ms, thaw_ms, used_ns;
};

struct job_process {
    uint32_t number;
    enum job_role role;
    pid_t pid;             /* 0: not running */
    unsigned rank_changes; /* of the job, when its start was passed on */
    bool exited, acknowledged;
    int exit_status, signal;
};

struct root_job {
    uint64_t id;
    uint32_t attempt;
    char name[48]; /* ID.ATTEMPT: of its group, socket and directory */
    enum root_job_state state;
    uid_t uid;
    bool has_helpers;   /* its launcher gives the command some */
    char *ticket;       /* NULL: none */
    bool ticket_begun;  /* it counts as used on this host */
    int ticket_unread;  /* errno: nobody knows what its ticket says, or whether it has one; 0: all is known */
    size_t ticket_cpus; /* that it was opened with first: it gets no more; 0: not known, or no ticket */
    bool local;         /* it was submitted on this host */
    bool asked_lists, asked_account; /* what its supervisor is finding out, see admission.h ... */
    char asked[256];                 /* ... about this user */

    bool open_asked; /* an open waits for its answer */
    uint64_t open_id, open_generation;
    int64_t open_until_ms; /* so long it waits for the walks of others */
    bool end_asked;        /* empty is due when it is EMPTY; without: it is lost or could not be opened */
    bool discard;          /* could not be opened: forget it when it is EMPTY */
    char lost[256];        /* why it cannot go on; "": it can */
    int64_t lease_ms;      /* 0: none */
    bool kept;             /* its result has been written down */
    bool lapsed;           /* its lease is over: it ends, and the exits that come of that are of no interest */

    struct cgroup group;
    struct channel supervisor;
    bool connected, ready; /* ready: the supervisor has answered begin or adopt */
    pid_t supervisor_pid;
    int supervisor_pidfd;
    bool supervisor_gone;
    bool below;            /* one that has run for long, when it was opened: see starts.c. It pays for its start */
    bool born;             /* a process of it has come to exec */
    int64_t supervisor_ns; /* of its leaf, that is paid */
    bool by_root;          /* the supervisor is of an rsd that was root: it knows of no signals and no sessions */
    bool swept;            /* the directory, or somebody is at it */
    int remove_fd; /* closed by elmer-spawn's child when the directory is gone, or given up; -1: nobody is at it */

    struct job_process *processes;
    size_t process_count;
    pid_t helpers[MAX_HELPERS];          /* processes of daemons and the agent */
    int64_t helper_cpu_ns[MAX_HELPERS];  /* when it was last charged to the boost */
    int64_t helper_seen_ns[MAX_HELPERS]; /* at the last scan for starved ones */
    size_t helper_count;

    bool ranked; /* an order has named it */
    unsigned level;
    bool lowest, crowded;
    unsigned weight; /* of its group; 0: not set */
    struct walk walk;
    struct cpu_budget top_part; /* while it is at the top */
    int64_t since_ms;           /* it is here */
    bool walked;                /* an order has been applied to all of its threads */
    bool renice;                /* mode idle: nice values of ours are to be taken back */
    int session_nice;           /* told last; -1: not known */
    cpu_set_t cpus;
    size_t ncpus;
    bool waits;              /* its processes say how they wait: rsd/sup/waits.h ... */
    uint64_t spun_us;        /* ... what they said last, ... */
    unsigned still;          /* ... how often it has been the same, ... */
    int64_t look_ms;         /* ... and when they are asked again */
    bool told_alone;         /* what they were told last */
    struct order_ranks told; /* to the supervisor */
    bool told_any;
    unsigned rank_changes; /* how often rank or CPUs have changed */
    struct boost boost;
    int64_t sweep_ms, sweep_step_ms;
    int64_t scan_ms, news_ms; /* next scan for new tasks; when there was one */
    struct group_pids seen;   /* by that scan */

    struct signal_queue signals; /* that its user has asked for */
    struct cpu_budget signalling;
    int64_t reading_ns; /* of its supervisor, when a part was asked for that has not come; 0: none */
    int errand_fd;      /* its pidfd, or -1 */
    pid_t errand;       /* process that kills its many; 0: none. These are of death.c */
    pid_t raised[MAX_RAISED];
    size_t raised_count;
    int64_t lower_ms, raised_used_ns, kill_ms, kill_here_ms;

    int64_t deadline_ms; /* of the state; 0: none */
    int64_t retry_ms, backoff_ms, remove_wait_ms;
    bool stuck_logged, refusal_logged, guard_logged;
    double cpu_seconds;
    int64_t memory_peak_bytes;
    uint64_t struck_bytes; /* what its processes here used when the kernel ended them for their limit; 0: it has not */
};

struct root {
    const struct rsd_config *config;
    struct rsd_tickets *tickets; /* NULL: none can be judged */
    struct limits limits;        /* as given to us: for supervisors */
    enum order_mode mode;
    char mode_reason[1024];
    char uplink[700];          /* why there is no link to elmer, as the network half says */
    char reserve_refused[600]; /* why rt_reserve is not in force, or that nothing is kept; "": all is well */
    cpu_set_t cpus;            /* of this host that rsd may use */
    struct order order;
    uint64_t applied; /* generation whose walks are done */
    bool order_asked; /* an answer to order_id is due then */
    uint64_t order_id;
    int64_t ordered_ns; /* when the newest came */
    struct cpu_budget paying[PAYER_COUNT], dying, starts;
    int64_t charged_ns[PAYER_COUNT]; /* ever */
    unsigned top_level;              /* of the jobs at the top here, see walks_fill() */
    int64_t turned_ns;               /* own CPU time at the end of the last turn */
    unsigned weight;                 /* of all jobs together; 0: not set */
    struct root_job **jobs;          /* in order of their opening */
    size_t job_count, job_capacity;
    struct channel net;
    bool net_is_unit;    /* else it is a child */
    bool net_joining;    /* it has not answered yet */
    int64_t net_join_ms; /* until when it has to; while it is away (net.fd is -1) the next try */
    pid_t net_pid, spawn_pid;
    int spawn_fd;       /* elmer-spawn's line: see spawn.h */
    bool spawn_is_unit; /* else it is a child */
    bool spawn_gone;
    struct rsd_reached *reached; /* supervisors that root has connected to for us; the caller's */
    size_t reached_count;
    int signal_fd, reaper_fd;
    int groups_fd; /* directory of the jobs' groups */
    char groups[4096];
    int scope_fd;         /* where the answer will be whether the scope is being stopped; -1: nobody asks */
    uint64_t scope_job;   /* the job that it was asked for */
    unsigned controllers; /* that the jobs' groups have: see controllers.h */
    char users[4096];     /* where users' own groups are; "": not known */
    unsigned watchers;    /* of elmer-escapes that have ended soon, one after the other */
    int watcher_fd;       /* pidfd of who looks there for who has left a job (rsd/escapes); -1: none */
    int64_t watched_ms;   /* when it was looked at, or a second before it is to be started */
    int64_t watcher_ms;   /* when it was started */
    int tmp_fd;           /* RUNDIR/jobs */
    bool tmp_waits;       /* for directories of an earlier rsd to go, before it gets a file system of its own */
    int64_t contact_ms;   /* CLOCK_BOOTTIME; 0: none yet */
    int64_t boost_ms, watchdog_ms;
    struct admission admission;
    struct cpu_budget boosts;  /* of all jobs that start or end */
    struct cpu_budget reading; /* of output */
    uint64_t watchdog_us;      /* 0: none */
    bool stop;
    int status;
};

/* jobs.c: the table */
struct root_job *job_find(const struct root *root, uint64_t id, uint32_t attempt);
struct root_job *job_add(struct root *root, uint64_t id, uint32_t attempt); /* NULL: out of memory */
void job_drop(struct root *root, struct root_job *job);
void job_move(struct root_job *job, enum root_job_state to); /* aborts on a move that the table does not allow */
size_t job_count_live(const struct root *root);
/* The record of a process; made if it is not there. NULL: too many. */
struct job_process *job_process(struct root_job *job, uint32_t number, bool make);
/* It has exited: behind all that have before. Other pointers to records are stale then. Returns where it is now. */
struct job_process *job_process_last(struct root_job *job, struct job_process *process);
void job_helper_add(struct root_job *job, pid_t pid);
void job_helper_remove(struct root_job *job, pid_t pid);
bool job_name_parse(const char *name, uint64_t *id, uint32_t *attempt);

/* tell.c: messages to the network half and to a supervisor */
void tell(struct root *root, const struct wire_message *message);
void tell_ordered(struct root *root, uint64_t id); /* which order holds */
void tell_simple(struct root *root, enum wire_type type, const struct root_job *job, uint64_t id); /* opened */
void tell_open_failed(struct root *root, uint64_t job, uint32_t attempt, uint64_t id, const char *text);
void tell_start_failed(struct root *root, const struct wire_message *start, const char *text);
void tell_exited(struct root *root, const struct root_job *job, const struct job_process *process);
void tell_lost(struct root *root, const struct root_job *job);
void tell_empty(struct root *root, uint64_t job, uint32_t attempt, uint64_t id, double cpu_seconds,
                int64_t memory_peak_bytes);
void tell_state(struct root *root, uint64_t id);
void tell_supervisor(struct root_job *job, const struct wire_message *message);
void tell_held(struct root_job *job, bool held); /* its supervisor: until it is false, so that it wakes up once */

/* join.c: the network half and elmer-tickets where they are units */
enum { NET_OUT_MAX = 64 << 20 };
bool join_net_there(const struct root *root);      /* always, of a child */
void join_net_due(struct root *root, int64_t now); /* look for it, if it is time */
int64_t join_net_next(const struct root *root);    /* when that is; INT64_MAX: never */
bool join_net_answered(struct root *root);         /* after POLLIN: it is there, and what follows are frames */
void join_net_lost(struct root *root, const char *why);
void join_tickets_due(struct root *root, int64_t now); /* the same for elmer-tickets */
int64_t join_tickets_next(const struct root *root);
void join_tickets_news(struct root *root); /* after POLLIN on tickets->fd, when nothing was asked */
/* Before asking, or again because it has gone; until then (mono_ms). False: it is not there. */
bool join_tickets_await(const struct root *root, bool again, int64_t deadline_ms);
enum { TICKETS_BACK_MS = 3000 };

/* verbs.c: what the network half may ask for */
void verbs_run(struct root *root, const struct wire_message *message);

/* place.c: groups_fd, groups and controllers, made or found. The errno with which real time is refused there, 0; or
 * negative, and nothing has changed. */
int place_open(struct root *root, struct err *err);
/* What jobs have to do without, each with what follows from it. Returns how many. */
size_t place_lacks(const struct root *root, const char *lacks[MAX_LACKS]);
/* The same into log and status. */
void place_say(const struct root *root, bool log);
/* What all jobs together weigh against the rest of the host, 100 being everybody's: of the slice, or of the group that
 * stands beside others. systemd may set it back (a change to the slice): say it again. -ENOENT: no controller cpu. */
int place_weigh(const struct root *root, unsigned weight);
int place_weight_dir(const struct root *root); /* the group whose weight that is, or a negative errno */

/* hand_over.c: root is put down. What rsd owns from here on is given to elmer-jobs, elmer-spawn is started, and we are
 * elmer-jobs with SYS_NICE. 0 or -errno. */
int hand_over(struct root *root, struct err *err);
int hand_over_files(struct root *root, struct err *err); /* the first half of it */

/* begin.c: tmp_fd, place, mode, users' slice and rt_reserve, made or found by root; or taken from who has been root. 0
 * or -errno. */
int begin_as_root(struct root *root, struct err *err);
int begin_take(struct root *root, const struct rsd_facts *facts, struct err *err);

/* tmpfs.c: tmp_fd, with a file system of its own where that can be */
int tmp_open(struct root *root, struct err *err);
void tmp_settle(struct root *root); /* a job has ended: can it be now? */

/* open.c */
void open_new(struct root *root, const struct wire_message *message, const cpu_set_t *cpus);
void open_answered(struct root *root); /* after POLLIN on scope_fd */

/* starts.c: what jobs cost that begin and end */
void starts_init(struct root *root);
bool starts_below(const struct root *root, const struct wire_open *open, const cpu_set_t *cpus);
bool starts_paid(struct root *root); /* there is something to spend */
/* Of ourselves and elmer-spawn; to be charged what has been used since. */
int64_t starts_clock(const struct root *root, const struct root_job *job);
void starts_charge(struct root *root, const struct root_job *job, int64_t since_ns);
void starts_charge_supervisor(struct root *root, struct root_job *job); /* what it has used by now */
void starts_charge_birth(struct root *root, struct root_job *job, pid_t pid);
void starts_charge_failed(struct root *root, const struct root_job *job); /* its usage is known */

/* supervisors.c: start, and what they say */
enum { SUPERVISOR_OUT_MAX = 8 << 20 }; /* bytes that wait to be sent to one */
int supervisor_start(struct root *root, struct root_job *job, const char *user, struct err *err);
/* Where a root half connects; -ENAMETOOLONG. */
int supervisor_address(const struct root *root, const struct root_job *job, struct sockaddr_un *address);
void supervisor_disconnect(struct root_job *job);
void supervisor_kill(struct root *root, struct root_job *job); /* and what is beside it in its leaf */
/* Nobody watches its processes any more: the job is ended here. */
void supervisor_lose(struct root *root, struct root_job *job);
/* adopt.c */
/* While we are root, or by what root has reached for us: those of an rsd that was root listen to nobody else. */
void supervisors_connect(struct root *root);
void supervisors_adopt(struct root *root);
void supervisor_read(struct root *root, struct root_job *job);
void supervisor_lost(struct root *root, struct root_job *job);

/* host_lease.c */
void lease_contact(struct root *root, uint64_t said_ms);             /* elmer has answered what was said then */
bool lease_held(const struct root *root, int64_t lease_ms);          /* a job with such a lease may begin */
void leases_check(struct root *root);                                /* ends those whose time has come */
int64_t leases_next_ms(const struct root *root);                     /* until that is due; INT64_MAX: never */
int lease_keep(const struct root *root, const struct root_job *job); /* for the next root half */
void lease_recall(const struct root *root, struct root_job *job);
void lease_forget(const struct root *root, const struct root_job *job);

/* escapes.c: elmer-escapes runs */
void escapes_init(struct root *root, int64_t now);
void escapes_keep(struct root *root, int64_t now);

/* tickets.c: is what is asked what the job's user has asked for? */
bool tickets_let_open(const struct root *root, const struct wire_open *open, struct err *err);
/* A job that is here already, on so many processors. */
bool tickets_let_open_again(const struct root *root, const struct root_job *job, size_t cpus, struct err *err);
bool tickets_within(const struct root_job *job, size_t cpus);
void tickets_bound(const struct root *root, struct root_job *job); /* to those that it has, if it has no bound yet */
/* Good: the ticket is used from now on. */
bool tickets_let_start(const struct root *root, const struct root_job *job, const struct wire_start *start,
                       struct err *err);
/* After tickets_let_open() of this job: for as long as it is here, and for the next root half. 0 or -errno. */
int tickets_keep(const struct root *root, struct root_job *job, const char *ticket);
void tickets_begun(const struct root *root, struct root_job *job); /* a process of it is being started */
void tickets_recall(const struct root *root, struct root_job *job);
void tickets_forget(const struct root *root, struct root_job *job);

/* result.c: what became of a job, for the next root half */
int result_reserve(const struct root *root, const struct root_job *job); /* room for it; or a negative errno */
void result_keep(const struct root *root, struct root_job *job);
void result_drop(const struct root *root, const struct root_job *job);
/* Of a job that no supervisor answers for: false: nothing was kept, or it cannot be read and has been removed. */
bool result_recall(const struct root *root, struct root_job *job);
void results_recall(struct root *root); /* all others, as EMPTY jobs */

/* ranks.c: the order on real threads */
void ranks_apply_all(struct root *root);
void ranks_new(struct root *root, struct root_job *job);
void ranks_settle(struct root *root); /* say that an order is applied, and open what waits for the walks of one */
struct sched_target ranks_target(const struct root *root, const struct root_job *job);
void ranks_tell(struct root *root, struct root_job *job);               /* the supervisor: of processes to come */
void ranks_process(struct root *root, struct root_job *job, pid_t pid); /* reads all of its group */
void ranks_started(struct root *root, struct root_job *job, const struct job_process *process, bool first);
void ranks_prune_helpers(struct root_job *job);
void ranks_look(struct root_job *job); /* tell its processes whether it is alone; and the answer is how they wait */
void ranks_look_again(struct root_job *job); /* if it is not as it was told */
void ranks_sweep(struct root *root, int64_t now);
int64_t ranks_next(const struct root *root); /* when ranks_sweep has to be called next */

/* reading.c: output of jobs, read by their supervisors */
void reading_init(struct root *root);
void reading_ask(struct root *root, struct root_job *job, const struct wire_message *message);
void reading_refuse(struct root *root, const struct wire_message *message, const char *text);
void reading_told(struct root *root, struct root_job *job); /* the part has come */

/* walks.c: walks over threads within a budget */
void walks_init(struct root *root);
void walks_init_job(struct root_job *job);
void walk_begin(struct root_job *job, enum walk_why why); /* anew, but a sweep does not disturb what is under way */
void walk_stop(struct root_job *job);
void walks_run(struct root *root); /* what is due, for some milliseconds at most */
bool walks_of_order(const struct root *root);
/* Somebody above this job on processors of it has not got his rank yet. Who is above is not known without levels. */
bool walks_above(const struct root *root, const struct root_job *job);
void walks_fill(struct root *root, int64_t now); /* the budgets; and say which jobs are at the top */
enum payer walks_payer(const struct root *root, const struct root_job *job, bool order);
/* What was used since budget_own_ns() was so; job: NULL where it is not PAYER_TOP. */
void walks_charge(struct root *root, struct root_job *job, enum payer payer, int64_t since_ns);
/* When there is something to spend for it; not later: now. */
int64_t walks_paid_ms(const struct root *root, const struct root_job *job, bool order);
int64_t walks_next(const struct root *root);

/* weights.c: the controller cpu, where it is there */
void weights_apply(struct root *root, bool again); /* again: somebody may have changed what was set */
void weights_give_back(struct root *root);

/* death.c: signals and death of many */
void death_init(struct root *root);
void death_init_job(struct root_job *job);
bool death_at_own_rank(const struct root *root, const struct root_job *job);
void death_signal(struct root *root, struct root_job *job, int number);
/* Of a user, who asks as often as he likes: it may wait, for its turn (death_signals_next()) in death_signals(). */
void death_signal_asked(struct root *root, struct root_job *job, int number);
void death_signals(struct root *root, struct root_job *job, int64_t now);
int64_t death_signals_next(const struct root_job *job); /* INT64_MAX: none waits */
void death_begin(struct root_job *job, int64_t now);
void death_moved(struct root *root, struct root_job *job); /* by an order: it dies at another rank now */
/* Kill, raise, lower what is due. The result is that of the kill; *again_ms: when next, as long as any are left. */
int death_step(struct root *root, struct root_job *job, int64_t now, int64_t *again_ms);
void death_errand_forget(struct root_job *job);
void death_errand_done(struct root_job *job, int64_t now);

/* ending.c: from end to EMPTY */
void ending_begin(struct root *root, struct root_job *job, int64_t grace_ms);
void ending_step(struct root *root, struct root_job *job,
                 int64_t now); /* after events and deadlines; does nothing if nothing is due */
void ending_told(struct root *root, struct root_job *job); /* its supervisor has said all that it knows */
/* An earlier root half has put its result down, and perhaps not removed all of it: EMPTY follows. */
void ending_resume(struct root *root, struct root_job *job);
void ending_removed(struct root *root, struct root_job *job);
void job_ask_open(struct root_job *job, uint64_t id, uint64_t generation);
void job_try_opened(struct root *root, struct root_job *job);

#endif
