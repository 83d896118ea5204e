/* fake_engine.h - in place of the rooms engine and core: events are written down, jobs and hosts are what a test says,
 * and what waits for the commit waits until a test says so. */
#ifndef TESTS_UNIT_ELMER_FAKES_FAKE_ENGINE_H
#define TESTS_UNIT_ELMER_FAKES_FAKE_ENGINE_H

#include "elmer/engine/engine.h"
#include "elmer/store/certificate.h"

enum { FAKE_HOSTS = 400, FAKE_JOBS = 1000, FAKE_EVENTS = 600, FAKE_WAITS = 64 };

struct fake_job {
    struct core_job state; /* of a job that is in the table: id, and what a test fills in */
    struct engine_job job;
    bool accepted, settled;
};

struct fake_event {
    struct event event; /* without pointers, but for the text */
    char text[1000];
};

extern struct fake_engine {
    struct room room;
    struct core_host hosts[FAKE_HOSTS]; /* [nhosts] */
    int nhosts;
    struct fake_job *jobs[FAKE_JOBS]; /* [njobs], in the order of ids */
    size_t njobs;
    uint64_t next_id;
    uint32_t queued;       /* jobs in the queue, of any user */
    uint32_t splits;       /* what core_top_splits() says of a job */
    size_t bytes;          /* jobs_bytes() of any user */
    size_t bytes_of_all;   /* jobs_bytes_of_all() */
    const char *failure;   /* of the store */
    bool refuse;           /* each submission, by the core */
    int64_t rehearsal_ms;  /* that engine_rehearse() takes */
    uint64_t memory_bytes; /* of each host; of all but the first half of it is promised */
    struct core_reach reach;
    uint32_t cube;                        /* hosts that a job needs as a cube; 0: there is no topology */
    struct core_host_why why[FAKE_HOSTS]; /* what core_why() says of each */
    uint64_t refused, above;              /* core_refused(); core_above() of a running job's ranks but the first */
    int signals, away;                    /* what engine_signal() returns of a job that runs, and says; the last one: */
    int signalled, nsignalled;            /* and how many there were */
    uint64_t signalled_job;
    bool may_forget; /* what engine_emptied() returns */
    bool held;       /* what is put is not on disk: waits wait */
    /* Called with each event before it is written down; its pointers are valid. */
    void (*on_event)(const struct event *event);
    struct fake_event events[FAKE_EVENTS]; /* [nevents], the first is the oldest that was not looked at */
    size_t nevents;
    struct fake_event last; /* the one that fake_event() returned */
    struct engine_wait waits[FAKE_WAITS];
    size_t nwaits;
    struct certificate certificates[FAKE_WAITS]; /* that were put */
    size_t ncertificates;
    struct decision decision; /* the last one */
    struct host_drain drains[FAKE_HOSTS];
    char user[256]; /* of the last submission */
    unsigned watchers;
    /* of those who are connected */
    struct engine_hosts orders;
    struct engine_requests requests;
    void *orders_data, *requests_data;
} fake_engine;

/* With time from its beginning, no hosts, no jobs, and nothing in its room. */
void fake_engine_begin(void);
void fake_engine_end(void); /* all events must have been looked at */
int fake_engine_add_host(const char *name);
struct fake_job *fake_engine_add_job(uint64_t id, uint32_t uid, enum job_state state);
void fake_engine_drop_job(uint64_t id);
struct fake_job *fake_engine_find(uint64_t id); /* NULL: none */
/* The next event must be of this type; the event after it is the next then. */
const struct event *fake_event(enum event_type type);
void fake_no_event(void);
/* What waited runs. */
void fake_engine_commit(void);

#endif
