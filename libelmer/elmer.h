/* elmer.h - submit, query, cancel, kill and wait for jobs of Elmer from a program.
 *
 * Calls block, but never beyond their timeout; those that end in _begin do not block at all. They print nothing, end
 * nothing, and install no signal handlers. A call whose connection breaks connects and asks again while time remains; a
 * submission that is sent twice makes one job, because it carries a token. Strings are UTF-8. One struct elmer belongs
 * to one thread at a time. Link with `pkg-config --libs elmer`.
 *
 * To look at a job's terminal takes encryption, which this library does not bring along: that is left to eattach(1).
 */
#ifndef LIBELMER_ELMER_H
#define LIBELMER_ELMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. */
enum elmer_result {
    ELMER_OK = 0,
    ELMER_REFUSED = 1, /* elmer does not do that */
    ELMER_USAGE = 2,   /* a value that no elmer would accept */
    ELMER_NO_SUCH_JOB = 3,
    ELMER_UNREACHABLE = 4,   /* no daemon, or no answer in time */
    ELMER_NOT_PERMITTED = 5, /* not the job's owner, and no administrator */
    ELMER_WRONG_STATE = 6,   /* the job is there, but not in a state for that */
    ELMER_FAILED = 7,        /* out of memory, another version, a malformed answer */
    ELMER_UNAVAILABLE = 8    /* elmer cannot do that now (its disk is full, it is short of memory): try again later */
};

/* For people: what, why, what to do. May hold bytes that came from elsewhere: make them printable before they reach a
 * terminal. */
struct elmer_error {
    char text[1024];
};

struct elmer_options {
    const char *socket; /* NULL: that of the local rsd, or elmer's own where there is no rsd */
    int patience_ms;    /* how long a call looks for a daemon that is not there; 0: 5000 */
    void (*on_wait)(
        const char *why,
        void *data); /* a call has found no daemon for half a second and goes on looking; once a call. NULL: none */
    void *data;
};

struct elmer;
/* Connects at the first call that needs it. options may be NULL. Returns ELMER_OK, ELMER_USAGE or ELMER_FAILED. error
 * may be NULL, here and below. */
int elmer_open(const struct elmer_options *options, struct elmer **elmer, struct elmer_error *error);
void elmer_close(struct elmer *elmer);

/* Beside a umask, which may then be 0: output files that all may write. */
enum { ELMER_UMASK_SET = 01000 };
/* Zero-initialise; then at least nprocs and command. Lists end with NULL. */
struct elmer_submission {
    /* clang-format off */
    /* from job.def: make update-elmer-h */
    uint32_t nprocs;
    const char *const *command;          /* and its arguments */
    bool each;                           /* run it on each processor */
    bool pvm;                            /* with a private PVM virtual machine */
    const char *name;                    /* NULL: the last part of the command's path */
    const char *dir;                     /* absolute; NULL: the current directory */
    const char *output;                  /* pattern with %j %u %x %r %A %a %%; NULL: elmer-%j.out (each: elmer-%j.%r.out, of a task: elmer-%A.%a.out) */
    const char *errors;                  /* the same; NULL: as output */
    const char *const *environment;      /* NAME=VALUE; NULL: none */
    const char *const *hosts;            /* only these; NULL: all */
    int umask;                           /* 0, -1: that of the calling process; with ELMER_UMASK_SET: this one */
    const char *token;                   /* NULL: the call makes one. The same token always means the same job */
    bool requeue;                        /* when a host is lost: back into the queue, and again from its beginning */
    const char *comment;                 /* a line for people, at most 200 bytes; NULL: none */
    uint32_t mesh_rows;                  /* of a mesh in a cube of hosts, nprocs / mesh_rows columns; 0: none is asked for */
    uint64_t time_limit_ms;              /* of its wall-clock time from its start; 0: none */
    uint64_t cpu_limit_ms;               /* of the CPU time of all its processes together; 0: none */
    bool limit_requeue;                  /* with requeue: also when a limit is reached */
    uint32_t warning_signal;             /* a signal to all its processes before a limit is reached; 0: none */
    uint64_t warning_ms;                 /* so long before */
    const char *const *after;            /* jobs that it waits for, like "ok:41": ok, fail, any or start; NULL: none */
    bool keep_never;                     /* when what it waits for cannot happen any more it stays in the queue, and is not cancelled */
    const char *tasks;                   /* an array of jobs with these indices, like "1-1000%8" for 8 at a time; NULL: one job */
    bool notice;                         /* run it beside the queue, without a processor, on the host where it is submitted, for a minute at most */
    const char *mail_at;                 /* at what its user gets mail: begin, end, fail, like "end,fail"; NULL: at nothing */
    const char *notify;                  /* a line of shell that runs here, when it has ended; NULL: none */
    const char *lines;                   /* of an array: a line of text for each task, {} is that and {1} {2} its columns; NULL: none */
    const char *terminal;                /* "pty": its command has a terminal (eattach(1)); "keep": which stays while nobody looks; NULL: none */
    uint64_t memory_bytes;               /* of memory for each processor, which its host must have left; 0: none is asked for */
    uint32_t per_host;                   /* processors of one host that it gets at most; 0: any number */
    /* end of what is from job.def */
    /* clang-format on */
};
struct elmer_submitted {
    uint64_t job;
    const char *state;        /* as in struct elmer_job */
    int level;                /* -1: none yet */
    uint32_t ahead;           /* jobs before it in the queue */
    const char *reason;       /* why it waits, for people; may be "" */
    const char *const *hosts; /* allocated, each once */
    size_t nhosts;
    const char *untold; /* for people: why nobody is told, of a job with mail_at or notify; "": its user will be */
};
/* The job is on elmer's disk when this returns ELMER_OK, and so is what mail_at and notify ask for, if untold is "":
 * that is done by elmer-notice, which the host has with the commands. Free the answer. */
int elmer_submit(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                 struct elmer_submitted **submitted, struct elmer_error *error);
void elmer_submitted_free(struct elmer_submitted *submitted);

/* Zero-initialise. */
struct elmer_notices {
    const char *mail_at;            /* mail at these: begin, end and fail, like "end,fail"; NULL: none */
    const char *notify;             /* a line of shell that runs when the job has ended; NULL: none */
    const char *dir;                /* where it runs, absolute; NULL: the current directory */
    const char *const *environment; /* NAME=VALUE, of what tells; NULL: none */
};
/* Have the user told of a job of his that has been submitted, on this host: what elmer_submit() does by itself for one
 * with mail_at or notify, for one whose answer was untold, or that asked for nothing. The begin and the end of a job
 * are told by one each; the same call again changes nothing. */
int elmer_notify(struct elmer *elmer, uint64_t job, const struct elmer_notices *notices, int timeout_ms,
                 struct elmer_error *error);

struct elmer_rehearsed {
    const char *state;        /* that the job would have at once: queued, or starting */
    int level;                /* -1: none yet */
    uint32_t ahead;           /* jobs before it in the queue */
    const char *reason;       /* why it would wait, for people; may be "" */
    const char *const *ranks; /* the host of each rank */
    size_t nranks;
    const uint64_t *above; /* jobs that would be next above it on some processor; the first 64 */
    size_t nabove;
    uint64_t first;           /* the job before it that waits for processors; 0: none */
    const char *first_reason; /* what for, for people */
    const char *note;         /* what is not as it was asked for, for people; "": nothing */
};
/* What elmer_submit() would bring now, if nothing else happens: elmer decides it with a copy of its state, and nothing
 * is kept. A submission that would be refused is refused with the same words. Free the answer. */
int elmer_rehearse(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                   struct elmer_rehearsed **rehearsed, struct elmer_error *error);
void elmer_rehearsed_free(struct elmer_rehearsed *rehearsed);

/* What was asked for when a job of the caller's was submitted, without environment and token, which are not kept: NULL.
 * Of a task that is what was asked for its array. Free the answer. */
int elmer_asked(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_submission **asked,
                struct elmer_error *error);
void elmer_asked_free(struct elmer_submission *asked);

struct elmer_processor {
    const char *host;
    unsigned cpu;
};
struct elmer_usage {
    const char *host;
    double cpu_seconds;        /* -1: not known */
    int64_t memory_peak_bytes; /* -1: not known */
};
struct elmer_job {
    /* clang-format off */
    /* from job.def: make update-elmer-h */
    uint64_t id;
    uint32_t attempt;                    /* 0: never started; then 1, 2 .. */
    uint32_t uid;
    uint32_t nprocs;
    const char *name;
    const char *user;
    const char *dir;
    const char *state;                   /* queued held starting running ending done cancelled */
    int level;                           /* -1: none */
    const char *const *hosts; size_t nhosts; /* each once, in the order of the ranks */
    const struct elmer_processor *processors; size_t nprocessors; /* by rank */
    const char *const *command; size_t ncommand;
    int64_t submitted_ms;                /* Unix time, as the next two; -1: not known */
    int64_t started_ms;
    int64_t ended_ms;
    int exit_status;                     /* -1: none */
    int signal;                          /* 0 or -1: the job did not die by one */
    const char *reason_code;             /* a stable word: why it waits or ended */
    const char *reason;                  /* the same for people */
    uint32_t ahead;                      /* jobs before it in the queue */
    const struct elmer_usage *usage; size_t nusage;
    const double *level_seconds; size_t nlevels; /* time at each level */
    bool hidden;                         /* of another user: what only its owner may see is empty */
    const char *comment;                 /* as submitted; "": none */
    uint32_t mesh_rows;                  /* of its mesh, nprocs / mesh_rows columns: as submitted, or made of nprocs in a cube until it has ended; 0: none */
    uint64_t time_limit_ms;              /* as submitted; 0: none */
    uint64_t cpu_limit_ms;               /* as submitted; 0: none */
    const char *const *after; size_t nafter; /* as submitted */
    const char *const *waits_for; size_t nwaits_for; /* those of after that are not met */
    const char *output;                  /* where it goes, with %r for the rank and %%; see elmer_job_output() */
    const char *errors;                  /* the same; "": where output goes */
    bool each;                           /* as submitted: a process on each processor; else one, of rank 0 */
    const char *tasks;                   /* of an array or a task of one, as submitted; "": it is neither */
    uint64_t array;                      /* of which it is a task; 0: of none */
    int index;                           /* of a task; without array it is none */
    const char *tasks_waiting;           /* indices of an array's tasks that were not started yet */
    uint32_t ntasks;                     /* of an array; 0: it is none */
    uint32_t tasks_ok;                   /* of an array: have ended with status 0 */
    uint32_t tasks_failed;               /* ... have ended in another way */
    bool notice;                         /* as submitted: it tells about another job, or has read what it has left, and has no place in the queue */
    uint64_t begin_notice;               /* the job that tells its user when it begins; 0: none */
    uint64_t end_notice;                 /* ... when it has ended; 0: none */
    const char *mail_at;                 /* as submitted; "": none */
    const char *notify;                  /* as submitted; "": none */
    const char *polls;                   /* ranks that poll while they wait, like "0-3,5"; "": none is known */
    const char *line;                    /* of a task of an array with lines: its own; "": none */
    const char *terminal;                /* as submitted; "": none */
    uint64_t memory_bytes;               /* as submitted, for each processor; 0: none */
    uint32_t per_host;                   /* as submitted; 0: any number */
    uint32_t warning_signal;             /* as submitted; 0: none */
    uint64_t warning_ms;                 /* as submitted */
    /* end of what is from job.def */
    /* clang-format on */
};
struct elmer_jobs {
    const struct elmer_job *items;
    size_t count;
};
/* running: starting, running and ending jobs; queued: queued and held ones. With ids (nids > 0) only those, and with
 * neither running nor queued in any state, also ended. Ids of unknown jobs are left out. Free the answer. */
int elmer_query(struct elmer *elmer, bool running, bool queued, const uint64_t *ids, size_t nids, int timeout_ms,
                struct elmer_jobs **jobs, struct elmer_error *error);
/* The same without ids, and of each job only what a list of jobs shows: id, name, user, state, level, nprocs, hosts,
 * processors, times, ahead, reason and hidden; the rest is empty, -1 or 0, and elmer_jobs_json() has no text for it.
 * Costs a tenth where the queue is long. Free the answer. */
int elmer_list(struct elmer *elmer, bool running, bool queued, int timeout_ms, struct elmer_jobs **jobs,
               struct elmer_error *error);
/* Ended jobs of the user (NULL: of all), the latest of at most count (0: all), in the order of their ids. Free the
 * answer. */
int elmer_history(struct elmer *elmer, const char *user, size_t count, int timeout_ms, struct elmer_jobs **jobs,
                  struct elmer_error *error);
/* The same of those that have not ended before since_ms (milliseconds since 1970). Of an elmer of before protocol 1.11
 * it may be fewer than there are: count is then without since_ms. */
int elmer_history_since(struct elmer *elmer, const char *user, int64_t since_ms, size_t count, int timeout_ms,
                        struct elmer_jobs **jobs, struct elmer_error *error);
/* Until the job has ended, or shortly before the timeout: then it returns ELMER_OK too, with the job as it is. Free the
 * answer. */
int elmer_wait(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_jobs **jobs, struct elmer_error *error);
/* The same until the first of 1 to 256 jobs has ended: *jobs has that one, of several that have ended the first as
 * they stand in ids; at the timeout one that has not. */
int elmer_wait_any(struct elmer *elmer, const uint64_t *ids, size_t nids, int timeout_ms, struct elmer_jobs **jobs,
                   struct elmer_error *error);
void elmer_jobs_free(struct elmer_jobs *jobs);
/* Leave out those for which passes() says false, in place. */
void elmer_jobs_keep(struct elmer_jobs *jobs, bool (*passes)(const struct elmer_job *job, void *data), void *data);
/* Leave out all but the last count of them. */
void elmer_jobs_last(struct elmer_jobs *jobs, size_t count);
/* Where the output of the command's process of this rank goes, or its error output, on the host of
 * processors[rank]: an absolute path, malloc'd. NULL: errno is ENOENT (it is not known, of another user's job, or there
 * is no process of this rank; without each there is rank 0 only) or ENOMEM. */
char *elmer_job_output(const struct elmer_job *job, uint32_t rank, bool errors);
/* done or cancelled: nothing about the job will change any more. */
bool elmer_job_ended(const struct elmer_job *job);
/* {"schema":"elmer.jobs/1","jobs":[...]}; malloc'd, NULL when out of memory. */
char *elmer_jobs_json(const struct elmer_jobs *jobs);

struct elmer_host_why {
    const char *host;
    const char *rule; /* the first that it fails, a stable word; "ok": none */
    uint32_t processors;
    uint32_t usable;  /* of these take a new job now */
    const char *text; /* the rule for people */
    const char *help; /* what would help, for people; may be "" */
};
struct elmer_explained {
    uint64_t job;
    const char *state; /* as in struct elmer_job, like the next four */
    int level;
    uint32_t nprocs;
    const char *reason_code;
    const char *reason;
    const char *help;         /* what would help, for people; may be "" */
    uint32_t ahead;           /* jobs before it in the queue */
    uint64_t first;           /* the job before it that waits for processors; 0: none */
    const char *first_reason; /* what for, for people */
    const uint64_t *above;    /* of one that runs: jobs next above it on some processor; the first 64 */
    size_t nabove;
    const struct elmer_host_why *hosts; /* of one that waits: what each host says to it */
    size_t nhosts;
};
/* Why a job waits: what keeps all of it, of each host the first rule that it fails, and what would help. A task of an
 * array is asked for by its own id. Free the answer. */
int elmer_explain(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_explained **explained,
                  struct elmer_error *error);
void elmer_explained_free(struct elmer_explained *explained);
/* {"schema":"elmer.why/1","jobs":[...]} with this one; malloc'd, NULL when out of memory. */
char *elmer_explained_json(const struct elmer_explained *explained);

struct elmer_host {
    const char *host;
    const char *state;  /* up leaving suspect down drained unusable never-seen */
    const char *reason; /* of its state, for people; may be "" */
    uint32_t processors;
    uint32_t jobs;            /* that have processors there */
    const char *mode;         /* how it keeps levels: rt, idle or none; "": not known */
    const char *const *lacks; /* what jobs have to do without there, for people */
    size_t nlacks;
    double busy;      /* share of its processors in the last report; -1: not known, as the next three */
    double busy_jobs; /* of that by Elmer's jobs */
    int64_t memory_bytes;
    int64_t memory_free_bytes;      /* of it, available to programs */
    uint64_t memory_for_jobs_bytes; /* that jobs may ask for there; 0: not known */
    uint64_t memory_asked_bytes;    /* of that, what jobs there have asked for */
};
struct elmer_host_list {
    const struct elmer_host *items;
    size_t count;
};
/* The hosts of the cluster. The jobs on one are those of elmer_list() with processors there. Free the answer. */
int elmer_query_hosts(struct elmer *elmer, int timeout_ms, struct elmer_host_list **hosts, struct elmer_error *error);
void elmer_host_list_free(struct elmer_host_list *hosts);
/* {"schema":"elmer.hosts/1","hosts":[...]}; malloc'd, NULL when out of memory. Each host names those of the jobs that
 * have processors there: the running ones of elmer_list(); NULL: none. */
char *elmer_host_list_json(const struct elmer_host_list *hosts, const struct elmer_jobs *jobs);

struct elmer_part {
    int64_t offset, size; /* of the part; of the whole file now */
    const char *bytes;    /* [count] any bytes; 0: nothing is there */
    size_t count;
};
/* A part of what the command's process of this rank has written, as its job runs, at most 16 KiB from offset on;
 * negative: from so far before the end. It is read on its host, as the job's user; only he may ask. Free the answer. */
int elmer_read_output(struct elmer *elmer, uint64_t job, uint32_t rank, bool errors, int64_t offset, int timeout_ms,
                      struct elmer_part **part, struct elmer_error *error);
void elmer_part_free(struct elmer_part *part);

/* The same of a job that runs or has ended: a job of the caller's reads on that host, which does nothing else, takes no
 * processor and no turn, and is in no list. The first read submits it, and it is ended when the output is closed. It
 * lives for a minute; a later read submits another one. An output belongs to its struct elmer: it is closed before that
 * one, and has one call at a time. */
struct elmer_output;
/* Asks nobody. job, which may go then, is one of elmer_query() or elmer_wait(). ELMER_NOT_PERMITTED: of another user;
 * ELMER_REFUSED: no such rank, or it is not known where it writes; ELMER_WRONG_STATE: it has not begun;
 * ELMER_FAILED. */
int elmer_output_open(struct elmer *elmer, const struct elmer_job *job, uint32_t rank, bool errors,
                      struct elmer_output **output, struct elmer_error *error);
/* As elmer_read_output(). ELMER_UNAVAILABLE: try again a moment later, also as long as what reads has not begun, which
 * is not waited for here; ELMER_REFUSED: it cannot. A file that is not there any more is made, empty. */
int elmer_output_read(struct elmer_output *output, int64_t offset, int timeout_ms, struct elmer_part **part,
                      struct elmer_error *error);
/* The job that reads; 0: none yet. */
uint64_t elmer_output_reader(const struct elmer_output *output);
/* Free it, and end what reads by the timeout; else that ends by itself. NULL is none. */
void elmer_output_close(struct elmer_output *output, int timeout_ms);

/* Remove a job that has not started. text (may be NULL) receives elmer's answer for people. */
int elmer_cancel(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text,
                 struct elmer_error *error);
/* End a job that has. It is on its way to its end when this returns. */
int elmer_kill(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text, struct elmer_error *error);

/* Send a signal (1..64) to all processes of a job that runs. When elmer has been away meanwhile it may come twice. */
int elmer_signal(struct elmer *elmer, uint64_t job, int number, int timeout_ms, struct elmer_error *text,
                 struct elmer_error *error);

/* Keep a job that waits from having its turn, until it is released; its place in the queue stays. Of one's own jobs,
 * administrators of all. As often as one likes. */
int elmer_hold(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text, struct elmer_error *error);
int elmer_release(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text,
                  struct elmer_error *error);
/* Put a job that waits before all others of its owner that do, into the first of the places that these jobs hold. The
 * others follow in their order; jobs of other users stay where they are. */
int elmer_top(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text, struct elmer_error *error);

/* The same for tasks of an array, which are named by their indices as in a submission, without %: "3-9,12". Done is
 * what can be done to some of them; if it can be to none, ELMER_WRONG_STATE. With the functions above an array's id
 * means all its tasks. A task is a job, too: its id is that of its array + 1 + its place among the array's indices,
 * from 0. */
int elmer_cancel_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_error *text,
                       struct elmer_error *error);
int elmer_kill_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_error *text,
                     struct elmer_error *error);
int elmer_hold_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_error *text,
                     struct elmer_error *error);
int elmer_release_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms,
                        struct elmer_error *text, struct elmer_error *error);
int elmer_top_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_error *text,
                    struct elmer_error *error);
/* tasks NULL: all. Each gets the signal by itself, in their order, as far as it runs; a failure other than that it does
 * not ends that. */
int elmer_signal_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int number, int timeout_ms,
                       struct elmer_error *text, struct elmer_error *error);

struct elmer_ids {
    const uint64_t *items;
    size_t count;
};
/* The ids of these tasks, or of all (NULL), in the order of their indices, whether they are started or not: for
 * elmer_query() and the like. Free the answer. */
int elmer_task_ids(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_ids **ids,
                   struct elmer_error *error);
void elmer_ids_free(struct elmer_ids *ids);

/* ---- in a program with an event loop of its own ----
 *
 * A call is begun, which never blocks, and ends in some elmer_step(); many may be outstanding. Their connections,
 * repetitions, deadlines and results are those of the functions above. The loop waits until elmer_fd() is readable, or
 * elmer_timeout_ms() is over, calls elmer_step(), and takes what elmer_next_ended() gives until that is NULL. on_wait()
 * of the options comes from these functions, too, and calls none of the library. */
struct elmer_call;

/* A descriptor for poll(2), epoll(7) and the like: readable when there is something for elmer_step() to do. The same
 * until elmer_close(), which closes it; nothing else is done with it. -1: errno says why. */
int elmer_fd(struct elmer *elmer);
/* Milliseconds after which elmer_step() is to be called even so; -1: never. Ask again after each begin, each step and
 * each elmer_call_free(). */
int elmer_timeout_ms(const struct elmer *elmer);
/* Do what there is to do, without blocking. What fails is in the calls that it ends. May be called at any time. */
void elmer_step(struct elmer *elmer);
/* A call that has ended, each once, in the order of their ends; NULL: none has. */
struct elmer_call *elmer_next_ended(struct elmer *elmer);

/* Begin what the function without _begin does. The arguments may go when this returns. ELMER_OK: *call is to be freed;
 * else it is NULL, nothing was begun, and error says why: ELMER_USAGE, ELMER_REFUSED, ELMER_FAILED. */
int elmer_submit_begin(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                       struct elmer_call **call, struct elmer_error *error);
int elmer_notify_begin(struct elmer *elmer, uint64_t job, const struct elmer_notices *notices, int timeout_ms,
                       struct elmer_call **call, struct elmer_error *error);
int elmer_asked_begin(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_call **call,
                      struct elmer_error *error);
int elmer_rehearse_begin(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                         struct elmer_call **call, struct elmer_error *error);
int elmer_query_begin(struct elmer *elmer, bool running, bool queued, const uint64_t *ids, size_t nids, int timeout_ms,
                      struct elmer_call **call, struct elmer_error *error);
int elmer_list_begin(struct elmer *elmer, bool running, bool queued, int timeout_ms, struct elmer_call **call,
                     struct elmer_error *error);
int elmer_history_begin(struct elmer *elmer, const char *user, size_t count, int timeout_ms, struct elmer_call **call,
                        struct elmer_error *error);
int elmer_history_since_begin(struct elmer *elmer, const char *user, int64_t since_ms, size_t count, int timeout_ms,
                              struct elmer_call **call, struct elmer_error *error);
int elmer_explain_begin(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_call **call,
                        struct elmer_error *error);
int elmer_query_hosts_begin(struct elmer *elmer, int timeout_ms, struct elmer_call **call, struct elmer_error *error);
int elmer_read_output_begin(struct elmer *elmer, uint64_t job, uint32_t rank, bool errors, int64_t offset,
                            int timeout_ms, struct elmer_call **call, struct elmer_error *error);
/* Answered by a part, too. The output stays until the call has ended, or is freed. */
int elmer_output_read_begin(struct elmer_output *output, int64_t offset, int timeout_ms, struct elmer_call **call,
                            struct elmer_error *error);
/* The output is freed when this returns, whatever that is. *call is NULL with ELMER_OK, too, where nothing reads. */
int elmer_output_close_begin(struct elmer_output *output, int timeout_ms, struct elmer_call **call,
                             struct elmer_error *error);
int elmer_signal_begin(struct elmer *elmer, uint64_t job, int number, int timeout_ms, struct elmer_call **call,
                       struct elmer_error *error);
int elmer_signal_tasks_begin(struct elmer *elmer, uint64_t array, const char *tasks, int number, int timeout_ms,
                             struct elmer_call **call, struct elmer_error *error);
int elmer_task_ids_begin(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms,
                         struct elmer_call **call, struct elmer_error *error);
/* Also for one job. At most 48 of these are outstanding. */
int elmer_wait_any_begin(struct elmer *elmer, const uint64_t *ids, size_t nids, int timeout_ms,
                         struct elmer_call **call, struct elmer_error *error);
/* tasks: of an array; NULL: the job, or all its tasks. */
int elmer_cancel_begin(struct elmer *elmer, uint64_t job, const char *tasks, int timeout_ms, struct elmer_call **call,
                       struct elmer_error *error);
int elmer_kill_begin(struct elmer *elmer, uint64_t job, const char *tasks, int timeout_ms, struct elmer_call **call,
                     struct elmer_error *error);
int elmer_hold_begin(struct elmer *elmer, uint64_t job, const char *tasks, int timeout_ms, struct elmer_call **call,
                     struct elmer_error *error);
int elmer_release_begin(struct elmer *elmer, uint64_t job, const char *tasks, int timeout_ms, struct elmer_call **call,
                        struct elmer_error *error);
int elmer_top_begin(struct elmer *elmer, uint64_t job, const char *tasks, int timeout_ms, struct elmer_call **call,
                    struct elmer_error *error);

/* What the call has ended with, an enum elmer_result, and the sentence for people if that is not ELMER_OK; -1: it has
 * not ended yet. */
int elmer_call_result(const struct elmer_call *call, struct elmer_error *error);
/* The answer of a call that has ended with ELMER_OK, once; it is the caller's to free, as above. NULL: it has none of
 * this kind. */
struct elmer_submitted *elmer_call_submitted(struct elmer_call *call);
struct elmer_rehearsed *elmer_call_rehearsed(struct elmer_call *call);
struct elmer_submission *elmer_call_asked(struct elmer_call *call);
struct elmer_jobs *elmer_call_jobs(struct elmer_call *call);
struct elmer_explained *elmer_call_explained(struct elmer_call *call);
struct elmer_host_list *elmer_call_hosts(struct elmer_call *call);
struct elmer_ids *elmer_call_ids(struct elmer_call *call);
struct elmer_part *elmer_call_part(struct elmer_call *call);
/* elmer's answer for people to cancel, kill, hold, release, top and signal; "": none. It lives as long as the call. */
const char *elmer_call_text(const struct elmer_call *call);
/* A pointer of the caller's; NULL at first. */
void elmer_call_set_data(struct elmer_call *call, void *data);
void *elmer_call_data(const struct elmer_call *call);
/* Ended or not: one that has not is given up, and whether its request is carried out is not known. NULL is none.
 * elmer_close() frees all calls that are left. */
void elmer_call_free(struct elmer_call *call);

#ifdef __cplusplus
}
#endif

#endif
