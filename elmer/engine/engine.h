/* engine.h - the core, fed with one event after the other, and its actions on their way: the contract of this room.
 *
 * An event comes in -> core_step() -> its actions in their order: ORDER goes to the hosts at once, PERSIST puts the
 * job's row to the store, and what must be true after a crash before anybody acts on it (ANSWER OPEN LAUNCH
 * ACKNOWLEDGE, END for a reason of our own, and what other rooms add with engine_after_commit()) waits until everything
 * put before it is on disk. A step is never entered again: an event that arises while actions are carried out waits
 * until they are done.
 *
 * What has to be done for an action belongs to rooms above, which connect themselves (engine_connect_*). Jobs belong to
 * the engine, which alone changes them; a pointer to one is good until the next turn of the loop at the latest, its id
 * always. Memory that runs out ends the daemon (lib/memory/mem.h). */
#ifndef ELMER_ENGINE_ENGINE_H
#define ELMER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "elmer/core/core.h"
#include "elmer/engine/deadline.h"
#include "elmer/engine/jobs.h"
#include "elmer/engine/launchers.h"
#include "elmer/store/decision.h"
#include "elmer/store/record.h"
#include "lib/base/err.h"

struct engine;
struct store;
struct certificate;

/* What each room above gets, beside its own settings; it outlives the rooms. */
struct room {
    uv_loop_t *loop;
    struct deadlines *deadlines;
    struct engine *engine;
};

struct engine_settings {
    struct core_options core;
    const char *store;                    /* file */
    int64_t history_jobs, history_age_ms; /* ended jobs beyond either are forgotten */
    /* Names of the hosts, in their order; NULL past the end. *ncpus: that the configuration gives it; 0: all it has. */
    const char *(*host)(int index, int *ncpus, void *data);
    void *data;
};

/* ---- its life ---- */

/* Makes the core with its hosts, opens the store and takes back what was there. Blocking, before the loop runs. 0, or
 * negative with the text of err (-EUCLEAN: the store is damaged, -EPROTO: of a newer version, -EBUSY: in use).
 * damaged() is called when the damage is found later. engine_destroy() is right after a failure, too. */
int engine_create(uv_loop_t *loop, struct deadlines *deadlines, const struct engine_settings *settings,
                  void (*damaged)(const char *text, void *data), void *data, struct engine **engine, struct err *err);
/* When all rooms are connected: the timers of what was taken back, the check of the store, the limits of the history.
 */
void engine_begin(struct engine *engine);
/* Writes what waits; nothing is carried out any more. */
void engine_close(struct engine *engine);
void engine_destroy(struct engine *engine); /* after the loop has ended */

/* ---- the rooms above ---- */

struct engine_hosts {
    void (*order)(const struct action *action, void *data); /* at once */
    void (*end)(const struct action *action, void *data);
    /* All that it follows from is on disk, and the job still starts in this attempt. */
    void (*open)(int host, const struct engine_job *job, const struct core_job *state, uint64_t generation, void *data);
    void (*acknowledge)(int host, uint64_t job, uint32_t attempt, uint32_t rank, void *data);
    void (*gone)(int host, void *data); /* it was retired, and has nothing any more */
    void (*signal)(int host, uint64_t job, uint32_t attempt, int number, void *data); /* to what runs of it there */
};
struct engine_launch {
    void (*begin)(const struct engine_job *job, void *data); /* all its hosts have opened */
    void (*end)(const struct engine_job *job, void *data);   /* it does not start or run any more */
};
struct engine_requests {
    void (*answered)(uint64_t number, enum answer answer, uint64_t job, void *data);
    /* What this request waits for cannot be written. accepted: its job is on disk, what fails is something else.
     * Returns whether the request was a submission that is refused now: then the job is undone. */
    bool (*failed)(uint64_t number, bool accepted, const char *text, void *data);
    void (*ended)(const struct engine_job *job, void *data); /* and its end is on disk */
};
/* As in engine_settings, from now on. */
void engine_limit_history(struct engine *engine, int64_t jobs, int64_t age_ms);
void engine_connect_hosts(struct engine *engine, const struct engine_hosts *hosts, void *data);
void engine_connect_launch(struct engine *engine, const struct engine_launch *launch, void *data);
void engine_connect_requests(struct engine *engine, const struct engine_requests *requests, void *data);

/* ---- events ---- */

int64_t engine_now_ms(void); /* of the events: monotonic */
/* Feed the core; now_ms is filled in. While a step is being carried out the event waits for its end (then pointers in
 * it, except failed.text, are not allowed). What comes from outside is checked before: an event that the core does not
 * take is a bug, and ends the daemon. */
void engine_event(struct engine *engine, struct event *event);
/* The same of what a person has decided. If the core takes it, it is a line of the log and a row of the store, which
 * are on disk together with what follows from it, before it is answered. It is copied. */
void engine_decide(struct engine *engine, struct event *event, const struct decision *decision);
/* One that the core need not hear of. */
void engine_note(struct engine *engine, const struct decision *decision);
/* One that has its line already. */
void engine_keep(struct engine *engine, const struct decision *decision);
/* EVENT_SUBMIT with what the core does not keep; the message is taken over. The job's id is core_next_id() of before,
 * and the answer may come while this runs. NULL: the core refuses it. */
const struct engine_job *engine_submit(struct engine *engine, struct event *event, const char *user,
                                       struct wire_message *submission);
/* What engine_submit() would bring now, decided by a copy of the core; the message stays the caller's, nothing changes.
 * false: the core would refuse it. To be ended in any case; record points into the message. */
enum { REHEARSAL_ABOVE = 64 };
struct engine_rehearsal {
    struct record *record;           /* of the job, as it would be at once; NULL: refused */
    struct record *first;            /* of the job before it that waits for processors; NULL: none does */
    uint64_t above[REHEARSAL_ABOVE]; /* the jobs next above on its processors */
    size_t nabove;
    struct core *core; /* that has decided it; the records have names of its hosts */
};
void engine_rehearsal_fini(struct engine_rehearsal *rehearsal);
bool engine_rehearse(struct engine *engine, struct event *event, const char *user, struct wire_message *submission,
                     struct engine_rehearsal *rehearsal);
/* EVENT_EMPTY with what the job has used on the host, which is kept as far as it can be (usage.c). Returns whether the
 * host may forget the attempt as soon as this is on disk; false: it is told END again. */
bool engine_emptied(struct engine *engine, int host, uint64_t job, uint32_t attempt, double cpu_seconds,
                    int64_t memory_peak_bytes);

/* A host says what an attempt has used there so far, and which ranks there poll while they wait, like "0-3,5"; "":
 * none. */
void engine_used(struct engine *engine, int host, uint64_t job, uint32_t attempt, double cpu_seconds,
                 const char *polls);

/* A signal to what runs of the job. Returns to how many of its hosts, -1: it does not run, as no array does; *away:
 * hosts of it that are not up. */
int engine_signal(struct engine *engine, uint64_t job, int number, int *away);

/* ---- after the commit ---- */

enum engine_urgency {
    ENGINE_ANSWER, /* somebody waits: first of a commit */
    ENGINE_WORK,
    ENGINE_LINGER /* nobody notices whether it comes some milliseconds later */
};
/* It is copied; what its fields mean is up to run(), which owner must outlive. */
struct engine_wait {
    void (*run)(const struct engine_wait *wait);
    void *owner;
    enum engine_urgency urgency;
    bool unless_failing; /* where the store cannot be written it does not wait any longer */
    uint64_t number;     /* a request; failed() of engine_requests gets it, for ENGINE_ANSWER */
    enum answer answer;
    uint64_t job;
    uint32_t attempt, rank;
    int host;
};
/* Run it when all that has been put to the store is on disk, after what already waits: at once if it is. */
void engine_after_commit(struct engine *engine, const struct engine_wait *wait);
uint64_t engine_put_certificate(struct engine *engine, const struct certificate *certificate);

/* ---- queries ---- */

/* For questions only: core_job() and its like. */
const struct core *engine_core(const struct engine *engine);
const struct jobs *engine_jobs(const struct engine *engine);
struct store *engine_store(struct engine *engine); /* to read: the engine alone writes (tests/lint/rooms) */
const char *engine_host_name(const struct engine *engine, int host);
int engine_host_count(const struct engine *engine);
/* Who has drained it; NULL: it is not drained, or that is not known. */
const struct host_drain *engine_drain(const struct engine *engine, int host);
const char *engine_store_failure(const struct engine *engine); /* why it cannot be written; NULL: it can */

const struct engine_job *engine_job(const struct engine *engine, uint64_t id); /* NULL: none in memory */
/* Its submission is on disk. */
bool engine_job_accepted(const struct engine *engine, const struct engine_job *job);
/* Its last state is on disk. */
bool engine_job_settled(const struct engine *engine, const struct engine_job *job);
/* All that is known of a job that is in memory, to be shown; belongs to the caller. */
struct record *engine_record(struct engine *engine, const struct engine_job *job);
/* The same of a task that is no job there: as its array while it waits in it, else cancelled; whoever asks knows that
 * the store has no row of it. */
struct record *engine_task_record(struct engine *engine, const struct engine_job *array, uint32_t ordinal);
/* Somebody waits for the end of a job that is in memory, or no longer: meanwhile it stays there, and the end is written
 * at once. */
void engine_watch(struct engine *engine, uint64_t job);
void engine_unwatch(struct engine *engine, uint64_t job);

#endif
