/* internal.h - the state of the core; for elmer/core and its tests only.
 *
 * Owners: the core owns hosts and jobs, a job its processors and parts, a host its table. A part links the two: the
 * share of one host in a job. Everything that has to be sent is first marked as owed (on a job, a host, a part) and
 * turned into actions at the end of the step (emit.c), so that a step sends each host one order however much has
 * changed.
 */
#ifndef ELMER_CORE_INTERNAL_H
#define ELMER_CORE_INTERNAL_H

#include "elmer/core/alloc/alloc.h"
#include "elmer/core/core.h"
#include "elmer/core/list.h"
#include "elmer/core/order.h"
#include "lib/memory/mem.h"

struct host;
struct job;
struct topology;

enum part_state {
    PART_OPENING, /* OPEN is not confirmed */
    PART_OPEN,    /* the host has made the group */
    PART_ENDING,  /* END is not confirmed */
    PART_EMPTY    /* the group is empty, or its host is down */
};

struct part {
    struct job *job;
    struct host *host;
    int first, ncpus; /* job->processors[first .. first + ncpus - 1] */
    enum part_state state;
    bool send;           /* OPEN or END is owed */
    struct node on_host; /* host->parts, in the order of allocation */
};

struct owner { /* a user of whom the core knows jobs */
    uint32_t uid;
    size_t njobs; /* ended ones as well */
    struct core_user has;
};

/* A lost host that may still have the last attempt of a job, see lease.c. */
struct claim {
    struct host *host; /* NULL: not in the configuration any more */
    int64_t until_ms;  /* INT64_MAX: it is up, and its EMPTY is waited for */
};

/* What only an array has, see array.c. */
struct array {
    struct core_range *gone; /* [info.ngone] */
    size_t gone_capacity;
    struct list waiters;    /* who waits for tasks that wait in it themselves */
    struct list tasks;      /* with jobs of their own that have not ended */
    uint32_t live, running; /* of these; with a cluster */
};

/* For another job. */
struct wait {
    struct job *job; /* who waits */
    struct core_after *what;
    struct node on_job; /* waiters of the other, while it is open */
};

struct job {
    struct core_job info; /* what core_job() shows; its pointers are owned here: */
    struct core_processor *processors;
    int *hosts;
    char *text; /* NULL: "" */
    uint8_t *exited;
    struct owner *user;   /* the core's */
    struct part *parts;   /* [nparts] in the order of hosts */
    struct claim *claims; /* [info.nlost] */
    int *lost;            /* their hosts, for info.lost */
    size_t claims_capacity;
    struct host **last;       /* with requeue: the hosts of the last attempt of this core, then NULL; NULL: none */
    struct core_after *after; /* [info.nafter], and beside it: */
    struct wait *waits;
    int nopen, nnever;     /* of them */
    struct list waiters;   /* who waits for this one */
    int nparts, last_part; /* last_part: that was looked for last */
    int unopened, unempty; /* parts not yet PART_OPEN, not yet PART_EMPTY */
    bool launched;         /* by this core */
    bool restored;         /* an earlier core may have known more of it than was on disk */
    bool in_heap;
    bool in_cube;       /* its processors are a cluster of the cube */
    bool shut_out;      /* ... or would be one, if others did not have some of its host cube, or a leftover across it */
    bool topped, given; /* in top.c only: it goes before the others; it has left its array for one that does */
    int64_t level_since_ms;
    int64_t deadline_ms;    /* STARTING */
    struct place in_queue;  /* core->queue */
    struct node in_active;  /* core->active */
    struct node in_start;   /* core->starting */
    struct node in_persist; /* core->persist */
    struct node in_launch;  /* core->launch */
    struct node in_leases;  /* core->leases */
    struct node in_doomed;  /* core->doomed */
    struct node in_notices; /* host->notices */
    struct array *array;    /* it is one; NULL: it is not */
    struct job *of;         /* it is a task of this one and has not ended; NULL: it is not, or has */
    struct node in_array;   /* of->array->tasks */
};

struct leftover {
    struct core_holding what;
    bool send; /* END is owed */
};

enum { NO_HOST_BELOW = 0 }; /* this one is above all others */
struct host {
    struct core_host info; /* what core_host() shows */
    int index;
    char *name;
    uint64_t hash;                      /* of the name */
    int below[2];                       /* hosts whose hash is less, and those where it is not: of each the first */
    int *cpus;                          /* [info.ncpus], room for nslots */
    struct alloc_processor *processors; /* [nslots], by CPU number */
    struct job **table;                 /* [nslots][CORE_MAX_LEVELS]: who has this level on this processor */
    int nslots;
    struct alloc_host seen; /* what allocators see of it, with the last report */
    struct list parts;
    struct leftover *leftovers; /* [info.leftovers] */
    size_t leftovers_capacity;
    bool order, order_again; /* a new order is owed; the last one is owed again */
    struct node in_work;     /* core->work: something is owed to it */
    struct node in_waiting;  /* core->waiting: something may be unconfirmed */
    struct node in_rows;     /* core->rows: info.row is to be written */
    struct node in_retiring; /* core->retiring: it is retired, and not gone yet */
    struct list notices;     /* notice.c: notices that may start here, in the order in which they were ready */
    struct node in_noticing; /* core->noticing: one of these may start now */
    int told_cpus;           /* that it has; in a cube one is used */
    int configured_cpus;     /* while it is not known; 0: any number */
    int expected_cpus;       /* awaited: that it had before the restart for new jobs; -1: not known */
    int64_t check_ms;        /* when to check */
    int64_t contact_ms;      /* the last one before it went down */
};

/* The queue: QUEUED and HELD jobs in the order of the policy, and where the search for the next job to allocate stands.
 */
struct queue {
    struct order jobs;
    struct job *cursor;   /* all before it are not eligible; NULL: nobody is */
    bool refused;         /* the cursor is eligible, the allocator refuses it and nothing has changed since */
    uint32_t missing;     /* ... as so many processors were missing */
    struct order notices; /* those that wait, none of them awake: they have no turn (notice.c) */
};

struct index_entry {
    uint64_t id;
    struct job *job; /* NULL: forgotten */
};

struct lost_task { /* lost at a restart before its array was back */
    uint64_t array;
    uint32_t ordinal;
    int exit_status, signal;
};

struct reply { /* what the step owes to the sender of its event */
    bool answered, acknowledge;
    enum answer answer;
    uint64_t job;
};

struct core {
    struct core_options options;  /* in force */
    struct core_options defaults; /* as the core was made */
    int set[SETTING_COUNT];       /* what administrators have changed; SETTING_UNSET */
    bool owed[SETTING_COUNT];     /* settings that are to be written */
    struct topology *topology;    /* NULL: there is none */
    uint64_t random;
    int64_t now_ms;
    uint64_t next_job, next_allocation;
    int levels_used; /* D, or more where restored jobs sit deeper */

    struct host **hosts;
    int nhosts;
    size_t hosts_capacity;
    const struct alloc_host **view; /* room for all hosts, for one decision at a time ... */
    int nview;                      /* in it are the allocatable ones of all hosts; -1: no more */
    int *notes;                     /* as many */
    struct core_processor *choice;  /* ... and for what is chosen */
    size_t choice_capacity;
    int unknown_hosts;       /* never up so far, and nobody has said how many cpus they have */
    uint64_t known_cpus;     /* of all others */
    uint64_t supply_cpus;    /* of those that count for who may wait for them */
    int nawaited;            /* hosts for which an allocation waits after a restart ... */
    int64_t gather_until_ms; /* ... until then */

    struct index_entry *index; /* by id */
    size_t nindex, index_capacity, nforgotten;

    struct owner **users; /* by uid */
    size_t nusers, users_capacity;

    struct queue queue;
    struct list active; /* jobs with a cluster, in the order of allocation */
    size_t nactive;
    struct list starting; /* in the order of deadlines */
    struct job **heap;    /* level.c */
    size_t nheap, heap_capacity;

    struct list persist, launch, work, waiting, rows, retiring;
    struct list doomed;     /* they can never run, and are to be cancelled */
    struct list leases;     /* jobs with claims */
    struct list noticing;   /* hosts where a notice may start */
    int64_t lease_check_ms; /* no claim ends earlier */
    bool arrays_restored;   /* some may have no task any more */
    struct lost_task *lost_tasks;
    size_t nlost_tasks, lost_tasks_capacity; /* 0 once all are back */
    int64_t timer_ms;                        /* of the last ACTION_TIMER; INT64_MAX: none */
    struct reply reply;
};

/* ---- job.c: one job, its moves, the index of ids ---- */
struct job *job_create(uint64_t id, uint32_t uid, const int *hosts, int nhosts); /* nothing is asked for yet */
void job_take_submitted(struct job *job, const struct event *event);             /* what job.def has as asked */
void job_take_asked(struct job *job, const struct core_job *from);               /* the same, of an array or a row */
void job_destroy(struct job *job);
/* Copies at most JOB_TEXT_MAX bytes; NULL and "" give NULL. */
enum { JOB_TEXT_MAX = 1000 };
char *job_copy_text(const char *text);
void job_set_text(struct job *job, char *text); /* takes text */
/* The only way to change a state; asserts that the move is allowed. */
void job_move(struct core *core, struct job *job, enum job_state state);
bool job_has_cluster(const struct job *job);       /* its entries are in the table */
uint32_t job_ranks(const struct job *job);         /* processes whose exits are to come in all */
void job_account(struct job *job, int64_t now_ms); /* adds the time at its level */
struct part *job_part(struct job *job, int host);  /* NULL: not there */
struct job *index_find(const struct core *core, uint64_t id);
struct job *index_array_of(const struct core *core, uint64_t id); /* see core_array_of() */
struct job *index_from(const struct core *core, uint64_t id);     /* the first one from this id on, or NULL */
void index_insert(struct core *core, struct job *job);            /* the id is not in it */

/* ---- queue.c: who is next ---- */
static inline bool job_is_waiting(const struct job *job)
{
    return job->info.state == JOB_QUEUED || job->info.state == JOB_HELD;
}
void queue_init(struct core *core);
void queue_add(struct core *core, struct job *job);
void queue_remove(struct core *core, struct job *job);
bool queue_eligible(const struct core *core, const struct job *job);
enum reason queue_reason(const struct core *core, const struct job *job); /* why a QUEUED one is still there */
void queue_changed_job(struct core *core, struct job *job);               /* held, released, or without a claim */
void queue_changed_supply(struct core *core);                             /* hosts up, down, drained, undrained */
void queue_changed_space(struct core *core, uint32_t gained); /* the allocator might take this many processors more */
void queue_changed_rows(struct core *core, uint32_t changed); /* so many have lost a job, and with it its memory */
/* These get these places, in the order of the queue, of the same user. */
void queue_move(struct core *core, struct job *const *jobs, const uint64_t *places, size_t count);
void queue_sort(struct core *core); /* by the policy, which is another one */
void queue_run(struct core *core);
uint32_t queue_ahead(const struct job *job);

/* ---- top.c: the order of one's own jobs ---- */
/* Moves this waiting job, which is no array, before all others of its user that wait. Those that were before it move
 * back, among the places that he has. TOO_MANY: nothing is changed, as more than CORE_MAX_TOP rows would be. */
enum answer top_job(struct core *core, struct job *job);
/* The tasks of these ordinals, or all of the array, in their order. */
enum answer top_array(struct core *core, struct job *array, const struct core_range *ranges, int count, bool all);

/* ---- after.c: who waits for others ---- */
bool after_valid(const struct core_after *after, int n, uint64_t before); /* all are of jobs before this one */
void after_take(struct core *core, struct job *job, const struct core_after *after, int n); /* before it is queued */
void after_ran(struct core *core, struct job *job);   /* its processes have been started; its row is owed already */
void after_ended(struct core *core, struct job *job); /* it is done or cancelled */
void after_task_gone(struct core *core, struct wait *wait); /* a task that waited in its array never will be a job */
void after_drop(struct job *job);                           /* it waits for nothing any more */
void after_free(struct job *job);
bool after_met(const struct job *job);
bool after_never(const struct job *job);
void after_cancel_doomed(struct core *core); /* some of them */
/* after_check.c: what is wrong, or NULL; whether all is met. */
const char *check_after(const struct core *core, const struct job *job);
bool check_after_met(const struct job *job);

/* ---- array.c: many jobs that are one until they start ---- */
void array_create(struct job *job, uint32_t ntasks, uint32_t limit);
void array_free(struct job *job);
bool array_at_limit(const struct job *job); /* a task of this array, or this task, may have no cluster now */
struct job *array_take_task(struct core *core, struct job *array); /* the next one, as a job that is in no queue yet */
void array_task_clusters(struct core *core, struct job *task, bool has); /* it has a cluster from now on, or no more */
void array_count_failed(struct job *array, uint32_t ordinal, int exit_status, int signal); /* one more task */
void array_task_ended(struct core *core, struct job *task);
/* The list of those who wait for the job, or the task of an array, that has this id and has not ended; NULL: it has, or
 * is not known. on: the job; NULL: it is a task that waits in its array. */
struct list *array_waiters(const struct core *core, uint64_t id, struct job **on);
/* The task of this id, which has no job here, waits in its array no more and never was a job, as far as is known. */
bool array_task_never(const struct core *core, uint64_t id);
/* Those who wait for tasks that waited and have gone, or for any when the array has ended. */
void array_tell_waiters(struct core *core, struct job *array);
void array_link(struct core *core, struct job *job); /* after a restart: with its tasks, or with its array */
void array_settle_restored(struct core *core);       /* when all are back */
int array_verb(struct core *core, struct job *array, const struct event *event); /* what a client wants of it */
uint32_t array_count_waiting(const struct job *array, const struct core_range *ranges, int count);
/* The tasks of these ordinals that wait in the array, each as a job of its own from now on; as the array they are held
 * or not. */
void array_split(struct core *core, struct job *array, struct core_range range);
/* So many of those that wait in it, from the last one on, become jobs at their places, given. Returns how many did. */
size_t array_let_go(struct core *core, struct job *array, size_t count);
/* array_leave.c: out of the queue, if it is there; those that share its place get one each. */
void array_leave(struct core *core, struct job *array);
/* array_check.c: what is wrong, or NULL. */
const char *check_array(const struct core *core, const struct job *job);

/* ---- notice.c: jobs without a processor ---- */
void notice_changed(struct core *core, struct job *job); /* of one that waits: whether it may start */
void notice_leave(struct job *job);                      /* it waits no more */
void notice_look(struct core *core, struct host *host);  /* one may start there now */
void notice_run(struct core *core);
struct host *notice_host(const struct core *core,
                         const struct job *job);    /* NULL: it is no host of the cluster any more */
char *notice_homeless_text(void);                   /* why one is cancelled then */
const char *check_notices(const struct core *core); /* notice_check.c: what is wrong, or NULL */

/* ---- reach.c: where a job may ever run ---- */
enum answer reach_judge(const struct core *core, uint32_t nprocs, uint32_t mesh_rows, const struct core_demand *demand,
                        bool notice, const int *hosts, int nhosts, uint32_t needs, int **chosen,
                        int *nchosen); /* OK: its hosts, to be freed, or NULL: all. Else REFUSED_* */

int reach_copy_hosts(const int *hosts, int n, int **copy); /* increasing, each once, to be freed; returns how many */

/* ---- room.c: how many processors of a host a job may have ---- */
extern const struct core_demand room_nothing;
struct core_demand room_demand(const struct job *job);
uint64_t room_in(uint64_t cpus, const struct core_demand *demand, uint64_t bytes); /* of cpus on a host with so much */
uint64_t room_supply(const struct host *host, const struct core_demand *demand);   /* as host_supply(), of these */
void room_promise(const struct part *part);                                        /* its job has it from now on ... */
void room_take_back(const struct part *part);                                      /* ... and no more */

/* ---- user.c: what a user has ---- */
void user_enter(struct core *core, struct job *job);            /* sets job->user, who is made with his first job */
void user_leave(struct core *core, struct job *job);            /* it is forgotten; he with his last one */
struct owner *user_find(const struct core *core, uint32_t uid); /* NULL: has no job */
void users_free(struct core *core);
bool user_at_limit(const struct core *core, const struct owner *user);
void user_takes(struct owner *user);                    /* one of his jobs gets a cluster */
void user_gives(struct core *core, struct owner *user); /* ... has it no more */

/* ---- cluster.c: the D x P table ---- */
struct job **cluster_row(const struct host *host, int cpu); /* [CORE_MAX_LEVELS] */
void cluster_enter(struct core *core, struct job *job, int level);
void cluster_leave(struct core *core, struct job *job);
void cluster_change_level(struct core *core, struct job *job, int level);
void cluster_touch(struct core *core, const struct job *job); /* now is the last change of its processors */
void cluster_count_starting(struct core *core, const struct job *job, int by);
struct job *cluster_above(const struct core *core, const struct job *job,
                          const struct core_processor *at); /* NULL: none */
struct job *cluster_below(const struct core *core, const struct job *job, const struct core_processor *at);

/* ---- level.c ---- */
int level_of(const struct core *core, const struct job *job); /* what rule 2 says */
/* Takes leaving out of the table, moves up all below. Returns of how many processors a row is another one, at most. */
uint32_t level_close_gap(struct core *core, struct job *leaving);

/* ---- allocate.c ---- */
/* Gives the job a cluster and starts it. Returns 0, or how many processors are missing: refused. */
uint32_t alloc_try(struct core *core, struct job *job);
struct alloc_request alloc_request_of(const struct job *job);
/* Processors that take a job now; 0 if reports do not change that. */
uint32_t alloc_count_host(const struct core *core, const struct host *host);
/* No host comes twice, with others between. */
bool alloc_together(const struct core_processor *processors, uint32_t n);
/* Cuts processors into one part per host, by the order of hosts; returns their number. */
int alloc_make_parts(struct core *core, const struct core_processor *processors, uint32_t n, struct part **parts);
int compare_ints(const void *a, const void *b); /* for qsort(3) */

/* ---- setting.c ---- */
int setting_set(struct core *core, const struct event *event);
void setting_new_defaults(struct core *core, const struct core_options *options);

/* ---- configure.c ---- */
bool options_valid(const struct core_options *options);
int configure(struct core *core, const struct event *event);
int configure_add(struct core *core, const struct event *event);
int configure_retire(struct core *core, const struct event *event);
void configure_joined(struct core *core, struct host *host, bool joined); /* or it is configured */
void configure_watch(struct core *core,
                     struct host *host); /* it may have something; if it is retired HOST_GONE follows */

/* ---- host.c ---- */
void host_destroy(struct host *host);
void host_take_out(struct core *core, const struct host *host); /* around each change of what is counted and stored */
void host_put_in(struct core *core, struct host *host);
void host_make_slots(struct host *host, int nslots); /* that many at least */
void host_owe_order(struct core *core, struct host *host);
void host_owe(struct core *core, struct host *host); /* something marked on its parts or leftovers */
int host_up(struct core *core, const struct event *event);
char *host_lost_text(const struct host *host, const char *what);                   /* "NAME what", to be freed */
void host_reconcile(struct core *core, struct host *host, const struct event *up); /* reconcile.c */
int host_silent(struct core *core, const struct event *event);
int host_heard(struct core *core, const struct event *event);
int host_down(struct core *core, const struct event *event);
int host_drain(struct core *core, const struct event *event);
int host_report(struct core *core, const struct event *event);
int host_ordered(struct core *core, const struct event *event);
uint64_t
host_supply(const struct host *host);      /* processors that a job may wait for: up or suspect or awaited, undrained */
bool host_usable(const struct host *host); /* up, heard and undrained */
void host_await(struct core *core, struct host *host); /* after a restart; nothing for one that is up */
bool host_gathering(const struct core *core);          /* nothing is allocated yet */
bool host_allocatable(const struct host *host);        /* ... and without leftovers */
/* Those of the allowed ones (NULL: of all) into core->view; returns how many. */
int host_gather(struct core *core, const int *allowed, int nallowed);
void host_add_leftover(struct core *core, struct host *host, uint64_t job,
                       uint32_t attempt); /* sends END until it is empty */
void host_drop_leftover(struct core *core, struct host *host, uint64_t job, uint32_t attempt);
void host_check_confirmed(struct core *core); /* marks what has waited too long as owed again */

/* ---- life.c: from allocation to the end ---- */
void life_start(struct core *core, struct job *job, struct core_processor *processors, struct part *parts, int nparts,
                uint8_t *exited);
void life_link_cluster(struct core *core, struct job *job, struct part *parts, int nparts);
void life_end(struct core *core, struct job *job, enum reason reason, char *text); /* takes text */
void life_part_opened(struct core *core, struct part *part);
void life_part_empty(struct core *core, struct part *part);
void life_part_lost(struct core *core, struct part *part);
void life_part_end_again(struct core *core, struct part *part);
void life_launched(struct core *core, struct job *job);
void life_exited(struct core *core, struct job *job, uint32_t rank, int exit_status, int signal);
bool life_part_exited(const struct part *part);              /* every rank of the job there; also where there is none */
void life_put_off(struct core *core, int64_t ms);            /* the deadlines of starts */
void life_host_linked(struct core *core, struct host *host); /* one that was awaited */
void life_check_deadlines(struct core *core);

/* ---- lease.c: what lost hosts may still have ---- */
int64_t lease_for(const struct core *core, const struct job *job, const struct part *parts, int nparts); /* 0: none */
int64_t lease_left_ms(const struct core *core, const struct job *job); /* for core_job.lost_ms */
bool lease_allows(enum reason reason, bool limit_requeue);             /* another attempt, as it was submitted */
bool lease_goes_again(const struct job *job);                          /* ENDING, and back into the queue then */
void lease_claim(struct core *core, struct job *job, struct host *host, int64_t until_ms);
void lease_claim_lost(struct core *core, struct part *part);                  /* its host has gone down */
void lease_drop(struct core *core, struct job *job, const struct host *host); /* if there is one */
void lease_drop_all(struct job *job);                                         /* no next attempt */
void lease_host_up(struct core *core, const struct host *host,
                   bool (*held)(const struct host *host, const struct job *job));
void lease_host_down(struct core *core, const struct host *host);
void lease_note_hosts(struct job *job); /* its parts are those of an attempt */
bool lease_was_there(const struct job *job, const struct host *host);
void lease_opened_past(struct core *core, struct job *job, struct host *host); /* it has it after all */
void lease_check(struct core *core);                                           /* ends those whose time has come */

/* ---- emit.c: owed things become actions ---- */
void emit_owe_persist(struct core *core, struct job *job);
void emit_owe_row(struct core *core, struct host *host);
void emit_owe_setting(struct core *core, enum core_setting setting);
void emit_all(struct core *core, const struct event *event, struct actions *actions);

/* ---- actions.c ---- */
struct action *actions_push(struct actions *actions, enum action_type type);

#endif
