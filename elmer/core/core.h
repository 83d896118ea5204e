/* core.h - the scheduler as a pure function: core_step(state, event, actions).
 *
 * The core decides what happens to jobs; the engine around it (elmer/) makes it happen. It makes no system call, reads
 * no clock, and draws randomness from a seed in its own state: the same events give the same actions, always. Time
 * enters with each event. Actions are plain data, valid until actions_clear(), and are to be carried out in their
 * order.
 *
 * Rules of the cluster: doc/02-scheduling; source: S. Turner, dissertation, Michigan State University 1995, chapter 6.
 * The words job, processor, host, cluster, level, degree of multiprogramming, allocation are used as there.
 */
#ifndef ELMER_CORE_CORE_H
#define ELMER_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elmer/core/after.h"
#include "elmer/core/reach.h"
#include "elmer/core/restore.h"
#include "elmer/core/tasks.h"
#include "elmer/core/why.h"
#include "lib/job/fields.h"
#include "lib/memory/mem.h"

enum { CORE_MAX_LEVELS = 16, CORE_MAX_CPUS = 1024, CORE_NO_LEVEL = -1 };
/* Of a job with requeue: when this one has lost a host, the job is done. A job that takes its hosts with it must not go
 * round the cluster for ever. */
enum { CORE_MAX_ATTEMPTS = 10 };
/* Groups of past jobs that a host can say it has opened: it gets no new job before it has ended them. What it says it
 * holds when it comes up counts apart. */
enum { CORE_MAX_LEFTOVERS = 1024 };
/* Jobs that EVENT_TOP moves back, and tasks that leave arrays for it: each is a row to write. */
enum { CORE_MAX_TOP = 4096 };
/* Notices that run on a host at a time, and those of one user among them. */
enum { CORE_NOTICES_AT_ONCE = 8, CORE_NOTICES_OF_USER = 4 };
enum { CORE_BY_TEXT = 320 }; /* has room for the name of any user */

enum job_state {
    JOB_QUEUED,
    JOB_HELD,
    JOB_STARTING,
    JOB_RUNNING,
    JOB_ENDING,
    JOB_DONE,
    JOB_CANCELLED,
    JOB_STARTED, /* of an array: no task waits in it any more, and some have not ended */
    JOB_STATE_COUNT
};
const char *job_state_name(enum job_state state);
static inline bool job_state_has_cluster(enum job_state state)
{
    return state == JOB_STARTING || state == JOB_RUNNING || state == JOB_ENDING;
}

/* Why a queued job is not eligible (doc/02-scheduling.md, rule 4), or why a job ended. Codes are stable words, shown to
 * users and stored. */
enum reason {
    REASON_NONE,           /* "" */
    REASON_WAITING,        /* queued: eligible, waits for the allocator or behind the head */
    REASON_HELD,           /* queued: held by owner or administrator */
    REASON_AT_LIMIT,       /* queued: its user has as many jobs in clusters as he may (core_options.user_running) */
    REASON_TOO_FEW_UP,     /* queued: more processors asked than are up and undrained now (or than --hosts leaves) */
    REASON_LEASE,          /* queued: a lost host may still run the last attempt; see core_job.lost */
    REASON_AWAITING_HOSTS, /* queued: after a restart nothing is allocated before the hosts are back; see gather_ms */
    REASON_EXITED,         /* done: the command ended by itself (see exit status and signal) */
    REASON_KILLED,         /* done: ekill */
    REASON_CANCELLED,      /* cancelled: ecancel */
    REASON_HOST_LOST,      /* done: a host of its cluster went down */
    REASON_START_FAILED,   /* done: command, directory, output file, group...: the text says which */
    REASON_START_TIMEOUT,  /* done: not all hosts confirmed in time */
    REASON_HELPER_FAILED,  /* done: a helper that its launcher gives the command could not start, or died */
    REASON_LOST,           /* done: the host no longer knows the job (its supervisor was killed) */
    REASON_TIME_LIMIT,     /* done: it has run for as long as it may; with limit_requeue back into the queue */
    REASON_CPU_LIMIT,      /* done: the same, for its CPU time */
    REASON_AFTER,          /* queued: waits for other jobs, see core_after */
    REASON_NEVER,          /* queued, cancelled: what it waits for cannot happen any more */
    REASON_TASK_LIMIT,     /* queued: as many tasks of its array have clusters as may */
    REASON_TASKS_FAILED,   /* done: of an array, some of whose tasks have not ended well */
    REASON_MEMORY_LIMIT,   /* done: its processes on a host used more memory than was asked for */
    REASON_COUNT
};
const char *reason_name(enum reason reason);

/* Which processors a job gets: contract in alloc/alloc.h. */
enum core_allocator {
#define ALLOCATOR(constant, name, word) ALLOCATOR_##constant,
#include "elmer/core/alloc/alloc.def"
#undef ALLOCATOR
    ALLOCATOR_COUNT,
    ALLOCATOR_ANYWHERE = ALLOCATOR_CUBE_FL /* those before it need no topology */
};
int core_allocator_by_name(const char *name); /* -1: unknown */
const char *core_allocator_name(enum core_allocator allocator);
const char *core_allocator_names(void);                     /* all, for a sentence */
bool core_allocator_in_cube(enum core_allocator allocator); /* it needs TOPOLOGY_CUBE */

/* How the hosts are connected. CUBE: as a hypercube. The address of a host is its index; from the first ones, as many
 * as the largest power of two, at most 65536, each has one processor for jobs, its first one. Each job has the shape of
 * a mesh. */
enum { CORE_CUBE_HOSTS = 65536 };
enum core_topology { TOPOLOGY_NONE, TOPOLOGY_CUBE };

/* In which order the queue has its turns: contract in policy/policy.h. A test of policies brings a table of its own. */
#ifndef CORE_POLICIES
#define CORE_POLICIES "elmer/core/policy/policy.def"
#endif
enum core_policy {
#define POLICY(constant, name) POLICY_##constant,
#include CORE_POLICIES
#undef POLICY
    POLICY_COUNT
};
int core_policy_by_name(const char *name); /* -1: unknown */
const char *core_policy_name(enum core_policy policy);
const char *core_policy_names(void);

/* What administrators change while elmer runs. A value is a number of enum core_allocator, core_policy. */
enum core_setting { SETTING_ALLOCATOR, SETTING_POLICY, SETTING_COUNT };
enum { SETTING_UNSET = -1 }; /* as core_options say */
const char *core_setting_name(enum core_setting setting);
int core_setting_by_name(const char *name); /* -1: unknown */
const char *core_setting_names(void);       /* all, for a sentence */
const char *core_setting_value_name(enum core_setting setting, int value);
int core_setting_count(enum core_setting setting);                           /* values 0..count-1 */
int core_setting_value_by_name(enum core_setting setting, const char *name); /* -1: unknown */
const char *core_setting_value_names(enum core_setting setting);

struct core_options {
    int levels;                    /* D, 1..16 */
    enum core_allocator allocator; /* default ALLOCATOR_V2 */
    enum core_policy policy;       /* default POLICY_FCFS */
    enum core_topology topology;   /* default TOPOLOGY_NONE; with TOPOLOGY_CUBE D is 1 */
    double threshold;              /* t of v2, 0 < t < 1 */
    int64_t fresh_ms;              /* F: a report older than this does not count */
    int64_t settle_ms; /* S: the report's interval must begin this long after the processor's last change (launch, end,
                          level) */
    int64_t start_timeout_ms; /* all hosts must have opened and the launch must be done by then */
    int64_t resend_ms;        /* unconfirmed orders, opens and ends are sent again after this */
    uint32_t user_running;    /* jobs of one user that may have clusters at a time; 0: any number */
    int64_t lease_ms;         /* a host without contact for so long ends what runs there of a job with requeue */
    int64_t gather_ms; /* after a restart: so long nothing is allocated while hosts that were up before are awaited; 0:
                          at once */
    uint64_t seed;
};
/* D = 3, v2, fcfs, t = 0.75, F = 6 s, S = 2 s, start 30 s, resend 2 s, lease 120 s, gather 10 s. */
void core_options_default(struct core_options *options);
/* From the last contact with a lost host to the next attempt: the lease and a margin, for clocks that run unevenly
 * (together less than a tenth) and for the end itself. */
int64_t core_lease_wait_ms(int64_t lease_ms);

struct core;
/* Returns NULL when an option is out of range. Memory that runs out ends the program (lib/memory/mem.h). */
struct core *core_create(const struct core_options *options);
void core_destroy(struct core *core);
/* Another core in the same state: the same events give the same actions from here on. Between steps only. */
struct core *core_copy(const struct core *core);

/* Hosts are added once each, in the order of the configuration, before the first event or at run time; the index is
 * their name in events and actions. They begin as not up. Returns the index, -EEXIST or -EINVAL. */
int core_add_host(struct core *core, const char *name);
int core_host_by_name(const struct core *core, const char *name);   /* -1: unknown */
int core_member_by_name(const struct core *core, const char *name); /* ... or retired */
/* How many processors a host has that has never been up, where the configuration says so (> 0). */
void core_expect_cpus(struct core *core, int host, int ncpus);
int core_host_count(const struct core *core);
uint64_t core_next_id(const struct core *core); /* of the next job */

/* ---- events ---- */
enum event_type {
    EVENT_SUBMIT,      /* client: a new job. Answered with ANSWER. */
    EVENT_CANCEL,      /* client: remove a queued or held job. Answered. */
    EVENT_KILL,        /* client: end a starting or running job. Answered. */
    EVENT_HOLD,        /* client: Answered. */
    EVENT_RELEASE,     /* client: Answered. */
    EVENT_TOP,         /* client: a queued or held job before all others of its owner that wait, see top.c. Answered. */
    EVENT_DRAIN,       /* administrator: host takes no new jobs. Answered. */
    EVENT_UNDRAIN,     /* Answered. */
    EVENT_SET,         /* administrator: another allocator or policy, from this step's decisions on. Answered. */
    EVENT_CONFIGURE,   /* other options, from this step's decisions on; who has a deeper level keeps it */
    EVENT_HOST_ADD,    /* the configuration, or a token, names one more host; or one that was retired again */
    EVENT_HOST_RETIRE, /* ... names this one no more: it gets no new jobs; when it has none any more: HOST_GONE */
    EVENT_HOST_UP,     /* an rsd has said hello: all facts of the host that decisions need, and what it has (jobs). On a
                          host that is up: its rsd     has reconnected; what the host no longer has is lost, what is not
                          confirmed is sent again */
    EVENT_HOST_SILENT, /* suspect: its link is cut, or says nothing; it is not given up yet. Takes no new jobs until
                          EVENT_HOST_UP or EVENT_HOST_HEARD, those that it has live on, and who needs it keeps his turn.
                          Nothing is sent to it */
    EVENT_HOST_HEARD,  /* a silent host is heard again over the same link */
    EVENT_HOST_DOWN, /* the host is given up (not: its link was cut), also one that does not come back after a restart:
                        its jobs end everywhere with REASON_HOST_LOST, those with requeue go back into the queue */
    EVENT_REPORT,    /* utilisation of a host */
    EVENT_ORDERED,   /* host has applied the order of this generation */
    EVENT_OPENED,    /* host has made the job's group */
    EVENT_OPEN_FAILED,   /* host could not (text says why) */
    EVENT_LAUNCHED,      /* all the job's processes are started */
    EVENT_LAUNCH_FAILED, /* it could not (reason, text) */
    EVENT_EXITED,        /* one of the job's processes (rank) ended: with each the rank of its processor, else 0 */
    EVENT_ABORT,  /* the job cannot go on (reason, text): says the engine (host -1), e.g. a helper died; or a host
                     of the job, e.g. its supervisor died */
    EVENT_EMPTY,  /* host: the job's group is empty and removed, or was never there. Unasked for a job that runs: it is
                     lost */
    EVENT_TICK,   /* the time asked for by ACTION_TIMER has come; harmless at any time */
    EVENT_GATHER, /* hosts that are awaited can link only from now on: gather_ms begin again */
    EVENT_TYPE_COUNT
};

struct core_report {  /* pointers are read during the step only */
    int64_t begin_ms; /* monotonic, elmer's clock: when the interval began */
    int64_t end_ms;   /* when it ended. One that is empty, ends in the future, or not after the one before is ignored */
    const double *busy; /* [ncpus] busy share of each cpu of the host, 0..1, in the order of EVENT_HOST_UP */
    const double *jobs; /* [ncpus] of that, the share that Elmer's jobs used */
    int ncpus;          /* as in EVENT_HOST_UP, else the report is ignored */
};

struct core_holding { /* what a host says it has when it comes up */
    uint64_t job;
    uint32_t attempt;
};

/* How a job has ended that is done or cancelled, as core_job() or the store says. */
static inline enum core_end core_end_of(enum job_state state, enum reason reason, int exit_status, int signal, bool ran)
{
    if (state == JOB_DONE && reason == REASON_EXITED && exit_status == 0 && signal == 0)
        return CORE_END_WELL;
    return ran ? CORE_END_BADLY : CORE_END_UNSTARTED;
}

struct event {
    enum event_type type;
    int64_t now_ms;   /* monotonic, >= 0; never runs backwards between events */
    uint64_t request; /* of the client, comes back in ANSWER; 0: nobody waits, no ANSWER */
    uint64_t job;
    uint32_t attempt;
    int host;
    union {
        struct {
            uint32_t uid;
            /* those of job.def. each: a process on each processor, nprocs exits to come; else one. requeue: a lost host
             * puts it back into the queue, with the next attempt; limit_requeue: REASON_TIME_LIMIT and REASON_CPU_LIMIT
             * do so, too, with requeue. notice: no job of the queue, of one processor on the one host of hosts, of
             * which it takes nothing; see notice.c */
            JOB_FIELDS(JOB_CORE_ASKED, JOB_NONE, JOB_NONE)
            const int *hosts; /* --hosts: indices allowed, in any order; NULL = all. Copied. */
            int nhosts;
            uint32_t needs; /* bits of core_host.offers: hosts that are known to lack one are not used */
            const struct core_after *after; /* all of them are to be met before it may have its turn. Copied. If one
                                               cannot be any more, it is cancelled, unless keep_never */
            int nafter;
            uint32_t ntasks;     /* > 0: an array of so many, at most CORE_MAX_TASKS */
            uint32_t task_limit; /* so many of them have clusters at a time; 0: any number */
        } submit;
        struct { /* CANCEL KILL HOLD RELEASE TOP */
            uint32_t uid;
            bool admin;
            char text[CORE_BY_TEXT];        /* CANCEL KILL HOLD: of the reason, for people; "": none */
            const struct core_range *tasks; /* of an array, increasing and apart; NULL: all of it */
            int ntasks;
        } by;
        struct {
            const int *cpus; /* [ncpus] CPU numbers on that host, increasing */
            int ncpus;
            uint64_t generation; /* the host's last applied one; later orders go above it */
            const struct core_holding *holdings;
            int nholdings;
            bool rebooted;   /* known to have been started again since it was last up: nothing of before runs there */
            bool closed;     /* takes no new jobs, those that it has go on */
            uint32_t offers; /* bits, whatever they mean to the engine: what jobs need (submit.needs) */
            uint64_t memory_bytes; /* that jobs may ask for there; 0: not known, so none */
            bool no_lease; /* its rsd cannot hold one: an attempt that uses it has none, and no other follows it */
        } up;
        struct {
            int64_t silence_ms; /* since the last contact: no later message of the host was answered */
            const char *what;   /* behind its name, for people, why its jobs end. Copied; NULL: it is down */
        } down;
        struct core_report report;
        struct {
            enum core_setting setting;
            int value; /* or SETTING_UNSET */
        } set;
        struct core_options configure; /* valid, of the same topology; its seed is not looked at */
        struct {
            const char *name; /* copied */
            int ncpus;        /* as core_expect_cpus() wants it; 0: any number */
            bool joined;      /* see core_host_row */
            bool drained;     /* the store says so of one that this core does not know */
        } add;
        uint64_t generation; /* ORDERED */
        int64_t stalled_ms;  /* TICK: for so many ms until now elmer did not run, or its store could not be written.
                                Deadlines of starts, and of hosts awaited after a restart, are put off by that */
        struct {
            enum reason reason;
            const char *text; /* for people: what, why, what to do. Copied; may be NULL */
        } failed;             /* OPEN_FAILED LAUNCH_FAILED ABORT */
        struct {
            uint32_t rank;
            int exit_status; /* -1: died by signal */
            int signal;      /* 0: exited */
        } exited;
    } u;
};

/* ---- actions ---- */
enum action_type {
    ACTION_ANSWER,  /* tell the client: result, job */
    ACTION_PERSIST, /* the job's row has changed: write what core_job() says now. ANSWER, OPEN, LAUNCH and ACKNOWLEDGE
                       wait for the commit of every PERSIST before them, also of earlier steps; ORDER and END do not.
                       Those of a step are committed together */
    ACTION_PERSIST_HOST,    /* the host's row has changed: write core_host()->row. Counts as a PERSIST */
    ACTION_PERSIST_SETTING, /* write what core_setting_stored() says of it. Counts as a PERSIST */
    ACTION_ORDER,           /* host: the whole list, generation. Answered by ORDERED; sent again until then */
    ACTION_OPEN,   /* host: make the job's group on these cpus; only when an order >= generation is applied. Answered by
                      OPENED or OPEN_FAILED, also when it is open already; sent again until then */
    ACTION_LAUNCH, /* all hosts have opened: start the job's processes, those that core_job() does not count as exited.
                      Once per attempt; after a restart of the core perhaps again, so start orders carry (job, attempt)
                      and are idempotent */
    ACTION_END, /* host: TERM, grace, kill; report EMPTY. Also for a job that the core no longer knows, and for one that
                   the host does not know: EMPTY at once. Final on that host: an OPEN of the same attempt that arrives
                   later is answered EMPTY. Sent again until EMPTY */
    ACTION_ACKNOWLEDGE, /* host: the exit of this rank is recorded, or of no interest: forget it */
    ACTION_HOST_GONE,   /* the retired host has nothing any more: its link may end */
    ACTION_TIMER,       /* send EVENT_TICK at at_ms (replaces an earlier one) */
    ACTION_TYPE_COUNT
};

enum answer {
    ANSWER_OK,
    ANSWER_REFUSED_SIZE,
    ANSWER_REFUSED_HOSTS,
    ANSWER_NO_SUCH_JOB,
    ANSWER_WRONG_STATE,
    ANSWER_NOT_PERMITTED,
    ANSWER_TOO_MANY, /* TOP: more than CORE_MAX_TOP of its owner's are before it; of tasks: CORE_MAX_SPLIT,
                        CORE_MAX_GONE */
    ANSWER_COUNT
};

struct order_entry {
    uint64_t job;
    uint32_t attempt;
    int level;
    bool lowest;     /* lowest on every processor that it holds on this host: SCHED_OTHER there */
    const int *cpus; /* [ncpus] CPU numbers on that host */
    int ncpus;
};

struct action {
    enum action_type type;
    uint64_t request;
    enum answer answer;
    uint64_t job;
    uint32_t attempt;
    int host;                  /* -1 where there is none */
    enum core_setting setting; /* PERSIST_SETTING */
    uint32_t rank;
    uint64_t generation;               /* ORDER OPEN */
    const struct order_entry *entries; /* ORDER, from the top level down; owned by the actions */
    int nentries;
    const int *cpus; /* OPEN */
    int ncpus;
    int64_t lease_ms; /* OPEN: 0: none */
    int64_t at_ms;    /* TIMER */
};

struct actions {
    struct action *items;
    size_t count, capacity;
    struct arena memory; /* what the items point to */
};
void actions_init(struct actions *actions);
void actions_clear(struct actions *actions);
void actions_fini(struct actions *actions);

/* The one entry. Appends to actions. Returns 0, or -EINVAL with state and actions unchanged for an event that no shell
 * may send (a bug of the caller). Events about jobs, attempts or generations that are past are ignored, or answered
 * with what makes the sender stop (END, ACKNOWLEDGE). Events of a host that is not up are ignored (it says everything
 * again after its next HOST_UP). Never re-entered. */
int core_step(struct core *core, const struct event *event, struct actions *actions);

/* ---- queries of the state (pointers valid until the next step) ---- */
struct core_processor {
    int host;
    int cpu; /* CPU number on the host */
};

/* Single values: those of job.def with CORE. text: "" or for people. level: CORE_NO_LEVEL without a cluster.
 * exit_status: -1: none yet, or died by signal; with each that of the lowest rank that failed so far, else 0. signal 0:
 * exited. exits: ranks that have exited. failed_rank: that exit_status and signal belong to; UINT32_MAX: no rank has
 * failed. attempt, allocation: 0 while it was never allocated, then 1..; allocation increases over all jobs. launched:
 * LAUNCH was decided for this attempt, it may have run. ahead: eligible or not, jobs before it in the queue. lease_ms:
 * that the hosts of this attempt were granted; 0: none. ran: its processes were started, in this attempt or an earlier
 * one. ntasks: of an array (array.c), of which all tasks before next_task wait no more; tasks_ok, tasks_failed: have
 * ended. array, task: of a task, the array's id and its ordinal + 1. place: in the queue, among those of all jobs; that
 * of its id, unless its owner has changed the order of his. In: 0: of its id. lost_ms: from now until no lost host can
 * have this attempt any more, at the latest; -1: until a host that is up has ended it. */
struct core_job {
    JOB_FIELDS(JOB_CORE_ASKED, JOB_CORE_KEPT, JOB_NONE)
    const struct core_processor *processors; /* [nprocs] in rank order: hosts in the order of the configuration, then
                                                cpus; in a cube the nodes of its mesh, row by row. Those of a host
                                                stand together. NULL without a cluster. A DONE job keeps them. */
    const uint8_t *exited; /* bit rank%8 of byte rank/8 (one rank unless each); NULL without a cluster */
    const int *hosts;      /* --hosts, increasing; NULL: all */
    int nhosts;            /* 0 with hosts: it was restored, and none of them is in the configuration any more */
    const struct core_after *after;
    int nafter;
    const struct core_range *gone; /* of an array: those that wait in it no more, though they were never started there:
                                      cancelled, or with a row of their own; increasing and apart */
    int ngone;
    const int *lost; /* lost hosts that may still have this attempt: the next one waits for them. -1: one that is no
                        longer in the configuration */
    int nlost;
    int64_t level_ms[CORE_MAX_LEVELS]; /* time from its allocation spent at each level ... */
    int64_t level_until_ms;            /* ... up to then, the last step */
};
/* An array that is behind the places of its tasks, and not where it was moved to as a whole. */
static inline bool core_at_own_place(const struct core_job *array)
{
    return array->ntasks > 0 && array->place == array->id + array->ntasks;
}
/* Ended jobs are forgotten by core_forget() only. NULL: unknown. */
const struct core_job *core_job(const struct core *core, uint64_t id);
/* The job that is next above on the processor of this rank; 0: none, or the job has no cluster. */
uint64_t core_above(const struct core *core, uint64_t id, uint32_t rank);
/* The host is or was in the cluster of the job's last attempt, as far as this core knows. */
bool core_had_part(const struct core *core, uint64_t id, int host);
/* Jobs in the order of ids; *cursor starts at 0. NULL at the end. */
const struct core_job *core_next_job(const struct core *core, uint64_t *cursor);
/* Drop a DONE or CANCELLED job (its row is in the store). */
void core_forget(struct core *core, uint64_t id);

struct core_survey { /* the processors that a job may use, and why they take none now */
    uint32_t up, full;
    uint32_t unheard, beyond;  /* their host is suspect, or was up before a restart; has no room for it, see room.c */
    uint32_t busy, unmeasured; /* v2: above the threshold; no report that counts yet */
    enum core_allocator allocator; /* who says so */
};
/* The head of the eligible, if the allocator refuses it; 0: there is none. */
uint64_t core_refused(const struct core *core);
/* Whether the job is that one; then survey says why. */
bool core_survey(const struct core *core, uint64_t id, struct core_survey *survey);

struct core_host_row { /* what a restarted core must know of a host */
    bool up;           /* up or suspect, not given up: it is expected to come back */
    bool drained;
    bool joined; /* it is a host of the cluster because it has joined, not because it is configured */
    int ncpus;   /* with up: that new jobs may use when it comes */
};

/* What is known of it from its link. */
enum core_host_state {
    CORE_HOST_DOWN,    /* given up, or never heard of */
    CORE_HOST_AWAITED, /* was up before a restart, or has restored jobs, and has been neither up nor down since */
    CORE_HOST_UP,
    CORE_HOST_SILENT, /* suspect: its link is cut or says nothing; not given up, but it gets no new jobs */
    CORE_HOST_STATE_COUNT
};

struct core_host {
    const char *name;
    struct core_host_row row; /* to be stored; changes are told by ACTION_PERSIST_HOST */
    enum core_host_state state;
    bool drained, retired, joined; /* retired: no host of the cluster any more; joined: see core_host_row */
    bool closed;                   /* came up so */
    bool known;                    /* has been up since the core was made: its cpus are known */
    bool no_lease;                 /* as it said when it came up */
    uint32_t offers;               /* ... too; 0: not known */
    const int *cpus;
    int ncpus;
    int leftovers;       /* groups of past jobs that it has not reported empty; takes no new jobs until 0 */
    uint64_t generation; /* of the last order sent */
    uint64_t applied;    /* of the last one confirmed */
};
const struct core_host *core_host(const struct core *core, int host); /* NULL past the end */
bool core_host_gone(const struct core *core, int host);               /* it is retired, and has nothing any more */
/* It is there, as far as anybody knows. */
static inline bool core_host_up(const struct core_host *host)
{
    return host->state == CORE_HOST_UP || host->state == CORE_HOST_SILENT;
}

int core_setting_value(const struct core *core, enum core_setting setting);   /* in force */
int core_setting_default(const struct core *core, enum core_setting setting); /* of core_options */
/* With this core's topology; value: one of those that there are, or SETTING_UNSET. */
bool core_setting_possible(const struct core *core, enum core_setting setting, int value);
int core_setting_stored(const struct core *core, enum core_setting setting); /* that was set, or SETTING_UNSET */

/* Put back what an administrator has set; before the first event. Returns 0, or -EINVAL. What else comes back after a
 * restart: restore.h. */
int core_restore_setting(struct core *core, enum core_setting setting, int value);

/* ---- for tests: returns 0, or -1 with the broken rule in text ---- */
int core_check(const struct core *core, char *text, size_t size);

#endif
