/* jobs.h - what the core does not know about a job: its submission, its user, wall-clock times, usage. */
#ifndef ELMER_ENGINE_JOBS_H
#define ELMER_ENGINE_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "elmer/engine/deadline.h"
#include "lib/digest/tree.h"
#include "lib/job/tasks.h"
#include "lib/memory/map.h"
#include "elmer/store/record.h"
#include "lib/wire/wire.h"

struct engine_job_end { /* what record_end() says of it */
    char environment_sha256[RECORD_DIGEST_SIZE];
    char *json; /* until jobs_note_ended(): what stays of its submission */
    unsigned minor;
};

struct engine_limits { /* limits.c: of a job that runs and has any */
    struct engine *engine;
    struct engine_job *job;
    int64_t began_ms;     /* of its wall clock, monotonic */
    int64_t uncounted_ms; /* of a notice: until elmer was back, which it asks */
    struct deadline deadline;
    bool warning, warned; /* the warning is due; and all hosts have it, since warned_ms */
    int64_t warned_ms;
    enum reason over; /* the limit that has been reached; REASON_NONE */
    bool *told;       /* [nprocs] the host of which this is the first processor has it */
    bool unheard;     /* it is over a limit, and when that was looked at last not all its hosts were up */
};

struct engine_polls {
    int host;
    uint32_t attempt;
    char *text; /* ranks, like "0-3,5" */
};

struct engine_job {
    uint64_t id;
    uint32_t uid;
    char *user;
    struct wire_message submission;             /* type submit, owned */
    char name[65];                              /* of the submission, which points here */
    bool stored;                                /* its submission has been given to the store */
    bool refused;                               /* its submission could not be stored: the token means nothing */
    bool ended;                                 /* DONE or CANCELLED has been put */
    bool settled;                               /* and is on disk; what comes later is usage */
    bool noted;                                 /* among those that have ended */
    int64_t submitted_ms, started_ms, ended_ms; /* Unix time; -1: not yet */
    struct record_usage *usage;                 /* host: the name in the core */
    size_t nusage, usage_capacity;
    size_t usage_next;          /* where the next host is looked for first: they report in one order */
    struct engine_polls *polls; /* polls.c: by host */
    size_t npolls, polls_capacity;
    char **missing; /* names of hosts that it may use, and that are not in the configuration: they stay in its record */
    size_t nmissing, missing_capacity;
    uint64_t put;               /* number of its last write */
    uint64_t first_put;         /* and of its first: it is accepted when that is on disk; 0: before elmer was started */
    size_t bytes;               /* of the submission, counted for its user until it has ended, then for all that have */
    struct engine_job_end *end; /* once its end has been put, of a task when it is on disk; NULL: not yet, or failed */
    enum job_state logged;
    struct engine_job *of;          /* its array, whose submission is its own, until it has ended; NULL: of none */
    struct engine_job_end *of_task; /* of an array: what the store has of the submission of each task; NULL: none yet */
    uint64_t begin_notice, end_notice; /* jobs that tell about it; 0: none */
    uint64_t array;                    /* of a task, also later: the array's id; 0: it is none */
    uint32_t task;                     /* its ordinal */
    char *line;                        /* of a task whose array has lines, also later; NULL: none */
    struct tree *lines;            /* of an array, made when the first task needs it; NULL: not yet, or it has none */
    struct engine_limits *limits;  /* NULL: none counts now */
    unsigned watchers;             /* who wait for its end, see engine_watch() */
    struct engine_job *same_token; /* next with this hash */
    struct engine_job *next_ended;
};
static inline const struct wire_submit *job_submit(const struct engine_job *job)
{
    return job->of ? &job->of->submission.u.submit : &job->submission.u.submit;
}

/* Of the submission that is shown of it. */
static inline size_t job_bytes(const struct engine_job *job)
{
    return job->of ? job->of->bytes : job->bytes;
}

/* Ended ones beyond either are dropped from memory and read from the store. */
enum { JOBS_ENDED_KEPT = 1000, JOBS_ENDED_BYTES = 16 << 20 };

struct jobs {
    struct map by_id, by_token;
    struct map bytes;    /* by uid, see jobs_bytes() */
    size_t bytes_of_all; /* users */
    uint64_t salt;
    struct engine_job *ended, **last_ended; /* in the order of their end */
    size_t nended, ended_bytes;
};

void jobs_init(struct jobs *jobs);
void jobs_fini(struct jobs *jobs);
/* Takes over submission (moved) and copies user. */
struct engine_job *jobs_add(struct jobs *jobs, uint64_t id, uint32_t uid, const char *user,
                            struct wire_message *submission);
/* A task of this array has become a job, or was restored: the submission stays where it is, and no copy of it is made
 * before the task has ended. */
struct engine_job *jobs_add_task(struct jobs *jobs, uint64_t id, struct engine_job *array);
/* What is stored as the submission of each task of this array, made once; the array's. */
const struct engine_job_end *jobs_task_end(struct engine_job *array);
/* The line of a task of this array, in memory; "": it has none. */
const char *jobs_line(struct engine_job *array, uint32_t ordinal, struct arena *memory);
/* What shows a host that the line of a task that has not ended is that one (lib/ticket/ticket.h): digests in
 * hexadecimal; "": it has no line. */
const char *jobs_line_proof(const struct engine_job *task, struct arena *memory);
/* That each task is counted with for its user, see jobs_bytes(). */
size_t jobs_task_bytes(const struct engine_job *array);
/* The index of a task; -1: it is none. */
static inline int64_t job_index(const struct engine_job *job)
{
    struct tasks tasks;
    char why[TASKS_WHY];
    if (!job->array || tasks_parse(job_submit(job)->tasks, true, &tasks, why) || job->task >= tasks.count)
        return -1;
    return tasks_index(&tasks, job->task);
}
/* Of the submissions of the user's jobs that have not ended. */
size_t jobs_bytes(const struct jobs *jobs, uint32_t uid);
size_t jobs_bytes_of_all(const struct jobs *jobs);
void jobs_remove(struct jobs *jobs, struct engine_job *job); /* as if it had never been */
struct engine_job *jobs_find(const struct jobs *jobs, uint64_t id);
const struct engine_job *jobs_by_token(const struct jobs *jobs, uint32_t uid, const char *token);
/* The job has ended (once per job): its submission is kept without the environment. */
void jobs_note_ended(struct jobs *jobs, struct engine_job *job);
/* The oldest ended job if there are more than are kept, or their submissions are too large together, else NULL.
 * jobs_drop() takes it from memory. */
struct engine_job *jobs_oldest(const struct jobs *jobs, size_t kept);
void jobs_drop(struct jobs *jobs, struct engine_job *job);
/* Record usage on a host; replaces that of the same attempt there. */
void job_set_usage(struct engine_job *job, const char *host, uint32_t attempt, double cpu_seconds,
                   int64_t memory_peak_bytes);
/* polls.c: which ranks poll while they wait, as a host says; what is none, as "", takes back what it has said. */
void polls_note(struct engine_job *job, int host, uint32_t attempt, const char *text);
void polls_clear(struct engine_job *job);
/* Of all hosts; "": none. In the arena, or static. */
const char *polls_text(const struct engine_job *job, uint32_t attempt, struct arena *memory);
/* A host that it may use, and that the core does not have. Copies the name. */
void job_add_missing(struct engine_job *job, const char *host);
/* A record without memory of its own, for a moment: it points into the job and the state, and has neither
 * processors, hosts nor usage. */
void job_glance(const struct core *core, const struct engine_job *job, const struct core_job *state,
                struct record *record);
/* The lost hosts that may still have it, into the record. */
void job_name_lost(const struct core *core, const struct core_job *state, struct arena *memory, struct record *record);
/* All that is kept of it. with_json: the submission for the store. */
struct record *job_record(const struct core *core, const struct engine_job *job, const struct core_job *state,
                          bool with_json);

#endif
