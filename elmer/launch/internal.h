/* internal.h - what launch.c and pvm.c share. */
#ifndef ELMER_LAUNCH_INTERNAL_H
#define ELMER_LAUNCH_INTERNAL_H

#include "elmer/launch/launch.h"
#include "lib/memory/map.h"

enum launch_state {
    LAUNCH_MASTER,
    LAUNCH_AGENT,
    LAUNCH_SLAVES,
    LAUNCH_COMMAND,
    LAUNCH_LAUNCHED,
    LAUNCH_HALTED,
    LAUNCH_FINISHING,
    LAUNCH_OVER,
    LAUNCH_STATE_COUNT
};

struct slave {
    bool asked, answered;
    uint32_t request;
    char *command;
};

struct launches {
    struct room room;
    const struct launch_settings *settings;
    struct hosts *hosts;
    struct map by_job;
    struct launch *dead; /* to be freed in a later turn of the loop */
    struct deadline sweep;
};

struct launch {
    struct launches *launches;
    struct job *job;
    uint32_t attempt;
    enum launch_state state;
    struct arena memory;
    uint32_t nprocs, ranks;            /* ranks: processes of the command */
    struct core_processor *processors; /* [nprocs] */
    const char **names;                /* [nprocs] */
    int *hosts;                        /* [nhosts] distinct, in rank order */
    int nhosts;
    struct slave *slaves; /* [nhosts]; 0 is not used */
    const char *tmpdir;
    const char *pvmsock;
    bool *started, *exited; /* [ranks] */
    uint32_t nstarted, nexited;
    struct event last_exit; /* FINISHING: for the core */
    bool agent_gone, master_gone;
    char halted[300]; /* HALTED: what has ended, should the command not follow */
    struct deadline deadline;
    struct launch *next_dead;
};

struct process {
    uint32_t number;
    const char *role;
    int place;
    struct wire_strs argv;
    const char *output, *errors;
    bool capture;
    const char *pvmsock;
    uint32_t rank;
};

/* Numbers of the helpers. */
static inline uint32_t pvm_master(const struct launch *l)
{
    return l->nprocs;
}

static inline uint32_t pvm_agent(const struct launch *l)
{
    return l->nprocs + 1;
}

static inline uint32_t pvm_slave(const struct launch *l, int place)
{
    return l->nprocs + 1 + (uint32_t)place;
}

/* ---- launch.c ---- */
void launch_move(struct launch *l, enum launch_state state);
/* Tell the core that the job cannot go on, and do nothing more. */
void launch_fail(struct launch *l, enum event_type type, enum reason reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The job's host of that index, -1: not one of its hosts. */
int launch_place(const struct launch *l, int host);
const char *launch_host(const struct launch *l, int place);
/* Send the start of a process. */
void launch_start(struct launch *l, const struct process *p, struct arena *memory);
/* The output files of a rank; false: the launch has failed. */
bool launch_files(struct launch *l, uint32_t rank, struct arena *memory, const char **output, const char **errors);

/* ---- pvm.c ---- */
bool pvm_everywhere(struct launch *l); /* false: the launch has failed */
void pvm_start_master(struct launch *l);
void pvm_start_agent(struct launch *l);
void pvm_start_slave(struct launch *l, int place);
/* The agent asks for a daemon; the answer to it. */
void pvm_spawn(struct launch *l, const struct wire_pvm_spawn *spawn);
void pvm_spawned(struct launch *l, uint32_t request, const char *line);

#endif
