/* launcher.h - what a launcher is: a row of functions, one for each step from the opened hosts of a job to its end.
 *
 * launch.c keeps what is the same for all: which process may be where, ranks and their exits, the moves of a launch,
 * its deadline, acknowledging exits, sending starts again to a host that has linked again. A launcher starts what the
 * command needs beside itself (helpers) and says when the command can begin. A new one is a kind in engine/launchers.h,
 * a file in launchers/ and a row in launchers/table.c.
 *
 * Life: PREPARING (begin() of the launcher; launch_command() ends it) -> COMMAND (the ranks are being started) ->
 * LAUNCHED (all have) -> the last rank has exited: the core is told, or HELD (the launcher wants to finish first;
 * launch_release() tells the core) -> OVER. launch_fail() leads from anywhere to OVER.
 *
 * Numbers of processes: ranks are 0..ranks-1, the launcher's helper h is nprocs + h. */
#ifndef ELMER_LAUNCH_LAUNCHER_H
#define ELMER_LAUNCH_LAUNCHER_H

#include "elmer/launch/launch.h"
#include "lib/job/role.h"
#include "lib/memory/map.h"

enum launch_state { LAUNCH_PREPARING, LAUNCH_COMMAND, LAUNCH_LAUNCHED, LAUNCH_HELD, LAUNCH_OVER, LAUNCH_STATE_COUNT };

struct launches {
    struct room room;
    const struct launch_settings *settings;
    struct hosts *hosts;
    struct map by_job;
    launches_on_reached on_reached;
    void *on_reached_data;
    struct launch *dead; /* to be freed in a later turn of the loop */
    struct deadline sweep;
};

struct launch {
    struct launches *launches;
    const struct launcher *launcher;
    void *own; /* the launcher's part of it: own_size bytes, zeroed at first, freed with memory */
    const struct engine_job *job;
    uint32_t attempt;
    enum launch_state state;
    struct arena memory;
    uint32_t nprocs, ranks;            /* ranks: processes of the command, as the core counts them */
    int64_t index;                     /* of a task; -1: it is none */
    uint32_t mesh_rows;                /* 0: the job has no shape */
    struct core_processor *processors; /* [nprocs] */
    const char **names;                /* [nprocs] */
    int *hosts;                        /* [nhosts] distinct, in rank order; the index of one is its place */
    int nhosts;
    const char *tmpdir;
    bool *started, *exited; /* [ranks] */
    uint32_t nstarted, nexited;
    struct event last_exit; /* HELD: for the core */
    struct deadline deadline;
    struct courier *couriers; /* [nhosts + 1]; NULL: nobody has asked for one, nor is there a terminal */
    struct launch *next_dead;
};

/* A process to be started. */
struct launch_process {
    uint32_t number;
    enum job_role role; /* its host treats helpers otherwise than the command */
    int place;
    uint32_t rank; /* for ELMER_RANK and names of files; 0 for helpers */
    int cpu;       /* the only one that it may use; -1: all that the job has on the host */
    struct wire_strs argv;
    const char *output, *errors;
    bool capture;
};

/* A function that is NULL has nothing to do at its step. Functions with a place get that of a host of the job. None is
 * called once the job has ended, except as said. */
struct launcher {
    const char *name;   /* in the log */
    enum reason failed; /* why a job ends whose hosts lack what launcher_needs() names */
    size_t own_size;
    const char *const *reserved; /* [..NULL] variables that are the launcher's, whatever the user sets */

    /* ---- before the start ---- */

    /* All hosts have opened, and have what it needs: start helpers, or launch_command(). Not NULL. */
    void (*begin)(struct launch *l);
    /* In place of begin(): the command has been running since before elmer was started. */
    void (*resume)(struct launch *l);

    /* ---- processes ---- */

    /* The CPU that a rank is bound to, -1: all that the job has there; the pattern of its output file if the user gives
     * none. Not NULL. */
    int (*cpu)(const struct launch *l, uint32_t rank);
    const char *(*output)(const struct launch *l);
    /* Add to the environment of a process, NAME=VALUE each; count is what there is room for, and then what there is. */
    void (*environment)(const struct launch *l, const struct launch_process *p, struct arena *memory,
                        struct wire_strs *list);
    /* The place of a helper of that number; -1: there is none. NULL: it has no helpers. */
    int (*place)(const struct launch *l, uint64_t helper);
    void (*started)(struct launch *l, uint64_t helper);
    void (*start_failed)(struct launch *l, uint64_t helper, const char *text);
    /* The first line of a helper that was started with capture. Also in OVER. */
    void (*line)(struct launch *l, uint64_t helper, const char *line);
    void (*exited)(struct launch *l, uint64_t helper, const struct wire_exited *exited);

    /* ---- hosts ---- */

    /* A message of the launcher's own, from a host of the job. Also in OVER. */
    void (*message)(struct launch *l, int place, const struct wire_message *message);
    /* The host has linked again: send again what it has not confirmed. Ranks are not the launcher's care. */
    void (*host_up)(struct launch *l, int place);

    /* ---- the end ---- */

    /* The last rank has exited: for how many ms at most its exit is held, so that the launcher can finish; 0: not at
     * all. */
    int64_t (*last_exit)(struct launch *l);
    /* What launch_wait() was given has passed. Not NULL in a launcher that waits, or holds exits. */
    void (*time)(struct launch *l);
    /* The launch is OVER: nothing more is begun. */
    void (*over)(struct launch *l);
};

/* ---- launchers/table.c ---- */
const struct launcher *launcher_by_kind(enum launcher_kind kind);

/* ---- launch.c: what launchers call ---- */

/* The command can start. */
void launch_command(struct launch *l);
/* Tell the core that the job cannot go on: OVER. */
void launch_fail(struct launch *l, enum event_type type, enum reason reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* time() comes after so long, and not what was to come before. */
void launch_wait(struct launch *l, int64_t ms);
/* HELD: tell the core now of the last exit. */
void launch_release(struct launch *l);
const char *launch_host(const struct launch *l, int place);
/* The job's host of that index in the core; -1: not one of its hosts. */
int launch_place(const struct launch *l, int host);
void launch_send(struct launch *l, int place, const struct wire_message *message);

/* ---- courier.c ---- */

/* It was about a courier. */
bool couriers_message(struct launches *launches, int host, const struct wire_message *message);
void couriers_host_up(struct launch *l, int place);
/* What holds the job's terminal has said where it listens, or why not. */
void couriers_terminal_line(struct launch *l, const char *line);
/* ... has ended, and its command with it. */
void couriers_terminal_exited(struct launch *l);
/* Who waits is told. */
void couriers_end(struct launch *l);

/* ---- start.c ---- */

/* The address of a job's host as the others see it; "": not known. */
const char *launch_address(const struct launch *l, int place);

/* Send the start of a process. Without a link it is lost; see host_up(). */
void launch_start(struct launch *l, const struct launch_process *p, struct arena *memory);
/* The output files of a rank; false: the launch has failed. */
bool launch_files(struct launch *l, uint32_t rank, struct arena *memory, const char **output, const char **errors);
/* Send the start of a rank; of one that has been started, to be told again what it has said. */
void launch_rank(struct launch *l, uint32_t rank);

#endif
