/* internal.h - what the files of this room share. */
#ifndef ELMER_ENGINE_INTERNAL_H
#define ELMER_ENGINE_INTERNAL_H

#include "elmer/engine/engine.h"
#include "elmer/store/store.h"
#include "lib/base/log.h"

struct engine {
    struct core *core;
    struct store *store;
    struct deadlines *deadlines;
    struct jobs jobs;
    struct store_limits limits;
    char *store_failure;
    struct pending_event *events, **last_event;
    const struct decision *decision; /* of the event that is being decided; NULL */
    struct host_drain *drains;       /* [ndrains] by host; at_ms 0: not drained, or not known by whom */
    size_t ndrains, drains_room;
    struct host_row *past; /* [npast] drained ones that the core does not know */
    size_t npast, past_room;
    uint64_t last_put; /* number of the last write */
    bool stepping, closed;
    struct waiting *waiting, **last_waiting; /* commit.c */
    int64_t stalled_ms, counted_ms;          /* commit.c: not told to the core yet; counted until then */
    struct deadline tick, tidy, trim;
    void (*damaged)(const char *text, void *data);
    void *damaged_data;
    struct engine_hosts hosts;
    struct engine_launch launch;
    struct engine_requests requests;
    struct log_limit limit; /* usage.c */
    void *hosts_data, *launch_data, *requests_data;
};

/* engine.c: the events that have waited; nothing while a step is being carried out. */
void engine_run_events(struct engine *engine);
/* Drop what is no longer needed, in a later turn of the loop. */
void engine_tidy_soon(struct engine *engine);

/* persist.c: write the job's row as it is now; returns the number of the write. As ACTION_PERSIST and
 * ACTION_PERSIST_HOST want it. */
uint64_t engine_persist(struct engine *engine, struct engine_job *job);
/* The notice is refused: the job that it was to tell about can have another one. */
void engine_take_back_notice(struct engine *engine, const struct engine_job *notice);
/* The record is the last one of the job: what the store shall have of its submission then. end->json is the caller's.
 * false: it cannot be made, as a line in the log says, and the store keeps what it has. */
bool engine_end_record(struct record *record, const struct wire_message *submission, struct engine_job_end *end);
void engine_persist_job(struct engine *engine, uint64_t id);
void engine_persist_host(struct engine *engine, int host);
void engine_persist_setting(struct engine *engine, enum core_setting setting);

/* decide.c: the line of the log, as snprintf() writes it. */
int decision_line(const struct decision *decision, char *line, size_t size);
/* The present decision is taken: log it, and put it into the store. */
void decide_taken(struct engine *engine);
/* What the store says of a host that was drained before the restart. */
void decide_restore(struct engine *engine, int host, const struct host_drain *drain);
/* The same of one that is no host of the cluster, for the time when it is one again. */
void decide_keep(struct engine *engine, const struct host_row *row);
/* The next host that the core gets has this name: whether it was drained. */
bool decide_meet(struct engine *engine, const char *name);

/* usage.c: whether the host can know what this attempt has used there; then more than can be is cut, with a line in the
 * log. */
bool usage_judge(struct engine *engine, int host, const struct core_job *state, double *cpu_seconds,
                 int64_t *memory_peak_bytes);

/* limits.c: the job's row is as the state says. */
void limits_note(struct engine *engine, struct engine_job *job, const struct core_job *state);
/* The job was running when elmer ended, as the record says, whose times count up to until_ms of engine_now_ms(). */
void limits_resume(struct engine *engine, struct engine_job *job, const struct record *record, int64_t until_ms);
/* Its limits do not count any more. */
void limits_clear(struct engine *engine, struct engine_job *job);
/* When the job has started, by the clock that says wall_ms at until_ms. */
int64_t limits_started_ms(const struct engine_job *job, int64_t until_ms, int64_t wall_ms);

/* commit.c: the callbacks of the store, data is the engine. */
void commit_done(uint64_t number, void *data);
void commit_failed(const char *text, void *data);
/* For so many ms since it was asked last, what waits for a commit has waited for a store that hangs or cannot be
 * written: no host was asked for anything in that time. */
int64_t commit_stalled_ms(struct engine *engine);
/* The store is in such a state, and the same waits already: what hosts do not answer is said again and again. */
bool commit_is_asked_again(const struct engine *engine, const struct engine_wait *wait);
void commit_fini(struct engine *engine);

/* recover.c: the state of the last run, from the store back into the core and the table of jobs. */
int recover(struct engine *engine, struct err *err);

#endif
