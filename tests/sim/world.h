/* world.h - a cluster in one process: the real core, model hosts and links that lose, delay and double messages, in
 * virtual time.
 *
 * The world plays the shell: it carries out the core's actions by messages to the model hosts, and turns their messages
 * into events. After every step it runs core_check() and its own judge (judge.c), which follows the core from outside.
 * Everything random comes from one seed, so a run can be repeated exactly.
 */
#ifndef ELMER_SIM_WORLD_H
#define ELMER_SIM_WORLD_H

#include "elmer/core/core.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SIM_HOSTS = 8,
    SIM_CPUS = 4,
    SIM_PROCS = SIM_HOSTS * SIM_CPUS,
    SIM_ENTRIES = SIM_CPUS * CORE_MAX_LEVELS,
    SIM_GROUPS = 128,
    SIM_AFTER = 4 /* jobs that one waits for */
};
enum { SIM_STATES = JOB_STATE_COUNT + 1 }; /* of a job that an event is about; the last: unknown */

struct sim_entry { /* of an order, as a host keeps it */
    uint64_t job;
    uint32_t attempt;
    int level;
    bool lowest;
    unsigned cpus; /* bit per CPU number */
};

struct sim_order {
    uint64_t generation;
    int n;
    struct sim_entry entries[SIM_ENTRIES];
};

struct sim_rank {
    uint32_t rank;
    bool exited, taken;
    int status, signal;
};

struct sim_group { /* a job's group and supervisor on a host */
    uint64_t job;
    uint32_t attempt;
    bool ending;
    int64_t lease_ms; /* 0: none */
    bool lapsed;      /* its lease has run out: it ends */
    int nranks;
    struct sim_rank ranks[SIM_CPUS];
};

struct sim_open { /* waits for its order */
    uint64_t job;
    uint32_t attempt;
    uint64_t generation;
    int64_t lease_ms;
};

struct sim_host {
    struct core_holding ended[SIM_GROUPS]; /* the last ones that END came for: an OPEN that arrives now is late */
    int nended;
    char name[16];
    int cpus[SIM_CPUS], ncpus;
    bool powered, connected, drained;
    uint64_t memory_bytes;
    bool listed;        /* in the configuration, which a restart reads again */
    bool old;           /* its rsd knows no leases */
    bool misfit;        /* its CPUs are not those of the configuration: it comes up closed */
    bool deaf;          /* scenario: does not answer OPEN */
    bool stubborn;      /* scenario: groups do not end */
    uint32_t epoch;     /* of its link; messages of earlier ones are lost */
    uint32_t ear;       /* of the link that it believes in: a half-open one may still bring late messages */
    int64_t contact_ms; /* when it said the last thing that was answered */
    int rate;           /* how fast its clock runs, in 1/1000 */
    uint32_t boot;
    /* what the shell knows */
    int64_t heard_ms;
    uint32_t known_boot; /* 0: none */
    struct sim_order order;
    struct sim_group groups[SIM_GROUPS];
    int ngroups;
    struct sim_open opens[SIM_GROUPS];
    int nopens;
};

enum message_kind {
    TO_HOST_ORDER,
    TO_HOST_OPEN,
    TO_HOST_END,
    TO_HOST_TAKEN,
    TO_HOST_CONTACT,
    TO_CORE_ORDERED,
    TO_CORE_OPENED,
    TO_CORE_OPEN_FAILED,
    TO_CORE_EXITED,
    TO_CORE_EMPTY,
    TO_CORE_LOST,
    TO_CORE_CONTACT,
    TO_CORE_REPORT,
    SHELL_START,
    SHELL_LAUNCHED,
    SHELL_TICK,
    SHELL_GIVE_UP,
    SHELL_HEARD,
    SHELL_COMMITTED,
    HOST_PROCESS_ENDS,
    HOST_EXIT_AGAIN,
    HOST_GROUP_GONE,
    HOST_CONTACT,
    HOST_LEASE,
    HOST_IDLE_REPORT
};

struct sim_row { /* of the store; its pointers are owned */
    struct core_job job;
};

struct message {
    int64_t at_ms;
    uint64_t sequence; /* breaks ties */
    enum message_kind kind;
    int host;
    uint32_t epoch;
    uint64_t job;
    uint32_t attempt;
    uint64_t generation;
    uint32_t rank;
    int status, signal;
    struct sim_order *order; /* owned */
    struct sim_row *row;     /* owned */
    int64_t lease_ms, said_ms;
    int64_t begin_ms, end_ms;
    struct core_host_row host_row; /* SHELL_COMMITTED with a host */
    enum core_setting setting;     /* SHELL_COMMITTED with neither host nor row */
    int value;
    double busy[SIM_CPUS], jobs[SIM_CPUS];
    int ncpus;
};

struct sim_faults { /* in 1/1000 */
    int lost, doubled, open_fails, launch_fails, never_launched, vanishes;
    int late_launched; /* that its processes have been started is heard seconds later */
    int late;          /* takes seconds */
    int delay_ms;      /* messages take 1..delay_ms */
    int disk_ms;       /* a commit takes 0..disk_ms */
};

struct sim_coverage {
    uint64_t walks, stimuli, steps;
    uint64_t events[EVENT_TYPE_COUNT], actions[ACTION_TYPE_COUNT];
    uint64_t pairs[EVENT_TYPE_COUNT][SIM_STATES];
    uint64_t reasons[REASON_COUNT], answers[ANSWER_COUNT];
    uint64_t lost, doubled, restarts, moves_up, moves_up_far, shared, owners_refused;
    uint64_t allocators[ALLOCATOR_ANYWHERE]; /* jobs allocated by each */
    uint64_t topped;                         /* places that were changed */
    uint64_t roomy;                          /* jobs allocated that had asked for memory, or for few of a host */
    uint64_t waited, never, kept; /* jobs that ran after others, were cancelled as they never could, stayed */
    uint64_t accepted, ended, undone, again, lease_waits, lapses, half_open, rsd_restarts, reboots;
};

/* What the judge remembers of a job between steps. */
struct seen_job {
    uint64_t id;
    uint32_t attempt, uid;
    uint64_t allocation;
    enum job_state state;
    int level;
    uint32_t nprocs;
    struct core_processor processors[SIM_PROCS];
    bool restricted;
    unsigned hosts; /* bit per host of --hosts */
    uint64_t memory_bytes;
    uint32_t per_host;
    unsigned opened; /* bit per host that has said so */
    unsigned gone;   /* bit per host that has said that it has nothing of it */
    bool each, requeue, claimed;
    bool killed; /* it was said that it is */
    struct core_after after[SIM_AFTER];
    int nafter;
    bool keep_never;
    uint64_t place; /* as the judge deals them */
    uint32_t launches;
    bool judged; /* its allocation was looked at */
    bool timed;  /* lived under this core since allocated_ms */
    int64_t allocated_ms;
};

struct seen_host {
    bool up, silent, drained, closed, retired;
    bool awaited; /* since the last restart */
    int expected; /* processors of an awaited one; -1: not known */
    int ncpus, cpus[SIM_CPUS];
    uint64_t memory_bytes;
    bool reported;
    int64_t report_begin_ms, report_end_ms;
    double busy[SIM_CPUS], foreign[SIM_CPUS]; /* by position in cpus */
    int64_t changed_ms[32];                   /* by CPU number */
    struct core_holding dirty[SIM_GROUPS];    /* leftovers that it has not reported empty */
    int ndirty;
    struct sim_order last; /* the last order sent */
};

struct sim_ran { /* the last attempt that was started somewhere, and its ranks */
    uint32_t attempt;
    uint64_t ranks;
};

struct sim_fate { /* of a job, as far as others may wait for it */
    bool ran, ended, well;
    bool forgotten; /* by the history: it has ended, nobody knows how */
};

enum { SEEN_JOBS = 512, SIM_IDS = 4096 };

struct world {
    struct core_options options;    /* in force: an administrator may have set another allocator */
    struct core_options configured; /* what the core is made with */
    int settings[SETTING_COUNT];    /* committed; SETTING_UNSET */
    struct core *core;
    struct actions actions;
    int64_t now_ms;
    uint64_t random;
    struct sim_faults faults;
    struct sim_host hosts[SIM_HOSTS];
    int nhosts;
    bool frozen;    /* processes do not end by themselves */
    int64_t run_ms; /* they end within this; 0: only when told to */
    int64_t timer_ms;
    struct message *heap;
    int nheap, heap_capacity;
    uint64_t sequence, requests, steps;
    struct seen_job seen[SEEN_JOBS]; /* in the order of ids */
    int nseen;
    struct seen_host seen_hosts[SIM_HOSTS];
    struct sim_row *rows[SIM_IDS];             /* committed, by id; not of ended jobs */
    struct core_host_row host_rows[SIM_HOSTS]; /* committed */
    int64_t gather_from_ms;                    /* of the last restart, or when hosts could link; -1: never */
    bool ended[SIM_IDS];
    struct sim_fate fates[SIM_IDS], stored_fates[SIM_IDS]; /* by id: as they are; as they are on disk */
    struct sim_ran ran[SIM_IDS];
    int64_t commit_ms; /* of the last row put */
    uint64_t put_step; /* ... in this step */
    uint64_t hash;     /* of all events and actions so far */
    struct sim_coverage *coverage;
    int answered, taken; /* in this step */
    enum answer answer;  /* the last one */
    uint64_t answer_job;
    char error[512]; /* "" or the first rule that was broken */
    bool keep_ended; /* do not forget ended jobs */
    /* called if not NULL */
    void (*on_event)(struct world *world, const struct event *event);
    void (*on_action)(struct world *world, const struct action *action);
    void (*on_change)(struct world *world, const struct seen_job *before, const struct core_job *now);
    void (*on_lapse)(struct world *world, int host, const struct sim_group *group);
    void *user;
};

/* Returns 0, or -1 without memory. */
int world_init(struct world *world, const struct core_options *options, uint64_t seed, struct sim_coverage *coverage);
void world_fini(struct world *world);
/* copy.c: core_step(). */
int world_decide(struct world *world, const struct event *event);
void world_add_host(struct world *world, const char *name, int ncpus, int first_cpu); /* before the first event */
void world_make_host(struct world *world, const char *name, int ncpus); /* the host, without the core's knowing */
void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool world_failed(const struct world *world);
uint32_t world_random(struct world *world, uint32_t n); /* 0..n-1 */
bool world_chance(struct world *world, int per_mille);

/* Sends the event now. Clients' events get a request. */
void world_step(struct world *world, struct event *event);
/* Delivers what is due until then, and makes that the time. */
void world_run_until(struct world *world, int64_t at_ms);

void world_connect(struct world *world, int host);
void world_cut(struct world *world, int host, int64_t give_up_after_ms); /* the link; -1: never given up */
void world_power_off(struct world *world, int host, int64_t give_up_after_ms);
/* The core's side closes the link and gives the host up; the host does not notice, and what is under way still comes.
 */
void world_cut_half(struct world *world, int host, int64_t give_up_after_ms);
void world_suspect(struct world *world, int host, int64_t heard_after_ms); /* the link says nothing for a while */
void world_restart_rsd(struct world *world, int host);
void world_report(struct world *world, int host, const double *busy, const double *jobs, int64_t interval_ms);
void world_restart_core(struct world *world);
bool world_set(struct world *world, const char *setting, const char *value); /* by name; false: there is no such */
void world_configure(struct world *world, const struct core_options *options);
void world_retire(struct world *world, int host);
/* A new one, with so many CPUs, or one of before again; joined: it is not in the configuration. */
void world_host_add(struct world *world, const char *name, int ncpus, bool joined);
void world_end_process(struct world *world, uint64_t job, uint32_t rank, int status, int signal);
void world_lose_group(struct world *world, int host, int group);
void world_start_idle_reports(struct world *world);

/* world.c, for deliveries.c */
struct message world_take(struct world *world); /* the next one; there is one */
int64_t world_delay(struct world *world);       /* how long a message takes */
void world_commit(struct world *world, struct message *message);
void world_free_row(struct sim_row *row); /* NULL is fine */

/* model.c: the host's side */
void model_init(struct world *world, int host);
void model_deliver(struct world *world, const struct message *message); /* TO_HOST_* and HOST_* */
struct sim_group *model_group(struct sim_host *host, uint64_t job, uint32_t attempt);
bool model_start(struct world *world, const struct core_job *job);            /* all processes; false: a host cannot */
void world_post(struct world *world, struct message *message, int64_t at_ms); /* sure */
bool world_waits_for_commit(const struct world *world, const struct message *message);
void world_send(struct world *world, struct message *message); /* over the host's link */

/* judge.c, judge_orders.c */
void judge_before(struct world *world, const struct event *event);
void judge_action(struct world *world, const struct action *action);
void judge_after(struct world *world, const struct event *event);
void judge_group(struct world *world, int host, uint64_t job, uint32_t attempt);      /* it is made now */
void judge_start(struct world *world, uint64_t job, uint32_t attempt, uint32_t rank); /* a process begins */
void judge_committed(struct world *world, const struct core_job *row);
void judge_all_ended(struct world *world); /* what was accepted */
void judge_restart(struct world *world);
void judge_quiet(struct world *world); /* nothing is under way: hosts equal the table */
const struct seen_job *judge_find(const struct world *world, uint64_t job);
/* Of so many processors of a host, those that the job may have, one after the other, where so much memory is left. */
uint32_t judge_room(const struct seen_job *job, uint32_t cpus, uint64_t bytes);

/* judge_after.c: who waits for others */
void judge_fate(struct sim_fate *fate, const struct core_job *job); /* what it says of the job's */
enum core_verdict judge_verdict(const struct sim_fate *fate, enum after_kind kind);
bool judge_met(const struct sim_fate *fates, const struct seen_job *job); /* all that it waits for */
void judge_never(struct world *world, const struct seen_job *seen, const struct core_job *job); /* after each step */
void judge_top(struct world *world, uint64_t job); /* who has which place then; before the jobs are looked at */
/* What the shell knows of a job that the core may have forgotten; false: it has not ended. */
bool world_end_of(const struct world *world, uint64_t job, enum core_end *end);
/* A stored job, where it waits for others with how those have ended. */
const struct core_job *world_with_ends(const struct world *world, struct core_job *job);
struct core_after world_after(const struct world *world, const char *kind, uint64_t job); /* kind: a word */

/* settings.c: nobody of the cluster has it any more. */
void judge_gone(struct world *world, int host);
void judge_configuration(struct world *world, const struct core_options *options); /* from now on */
/* The allocator or policy is this from now on. */
void judge_setting(struct world *world, enum core_setting setting, int value);

/* judge_choice.c: whether the processors of a new job are what its allocator promises */
void judge_choice(struct world *world, const struct seen_job *job);

/* stimuli.c: one thing happens, drawn from the seed. */
void walk_stimulate(struct world *world);

/* walk.c, scenario.c: the commands, which return the exit status, and the tests, which print TAP from first_test on */
enum { WALK_KINDS = 4 * ALLOCATOR_ANYWHERE, WALK_TESTS = WALK_KINDS + 1 + 2 }; /* D = 1..4 with each allocator */
int walk_main(int argc, char **argv);
bool walk_tests(uint64_t walks, uint64_t events, int first_test);
int scenario_main(int argc, char **argv);
int scenario_tests(const char *folder, int first_test, bool *good); /* returns how many */

/* cube.c: walks of a core in a hypercube; prints the line of one test. */
bool cube_tests(uint64_t walks, int number);
/* arrays.c: the same with arrays of jobs. */
bool arrays_tests(uint64_t walks, int number);

#endif
