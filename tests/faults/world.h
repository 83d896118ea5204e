/* world.h - elmer and the rsds of two hosts as processes of this machine, in namespaces and groups of their own.
 *
 * Each world is a process with its own mounts, network, pids and name, in which /mnt holds everything; nothing is left
 * of it when it ends. Host a is watched by the shim, host b is there so that jobs have a second host. */
#ifndef TESTS_FAULTS_WORLD_H
#define TESTS_FAULTS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "tests/faults/control.h"

#define WORLD         "/mnt"
#define WORLD_STORE   WORLD "/store/elmer.db"
#define WORLD_MARKERS WORLD "/work/markers"
enum {
    HOSTS = 2,
    WORLD_ELMER_USER = 1, /* daemon: every Debian has it */
    WORLD_USER = 65534    /* nobody: submits and runs the jobs */
};

/* Of the network halves. */
extern const char *const world_host_users[HOSTS];

struct world {
    struct control *control;
    pid_t elmer, rsd[HOSTS], user; /* 0: has ended */
    int user_status;               /* of the user's program, from waitpid() */
    char groups[HOSTS][4200];      /* control groups of the hosts' jobs */
    const char *settings;          /* more lines for elmer.conf */
    const char *elmer_address;     /* that rsd is told; NULL: elmer's socket */
    bool tickets;                  /* are required on both hosts: world_with_tickets() */
    bool rsd_may_end;              /* by itself with status 1: it is started again, as systemd does */
    /* seen */
    unsigned elmer_starts, rsd_starts;
    int64_t answer_ms; /* from the start of elmer to its first answer; -1: not measured yet */
    struct err err;    /* the first thing that went wrong */
};

/* 0, or 77 with the reason on stderr: this machine cannot do it. Also finds the programs. */
int world_possible(void);
/* Run body in a new world, whose output goes to a file; returns its exit status, 128 + signal, or 124 after seconds. */
int world_run(int (*body)(struct world *world, void *data), void *data, const char *log, unsigned seconds);

/* In the world: */
void world_configure(const struct world *world);
/* Before the daemons are started: each host has a key that one CA has certified, its jobs need tickets, and the user
 * finds the rsd of host a, and who signs for him, where libelmer looks for them. */
void world_with_tickets(struct world *world);
void world_start_elmer(struct world *world);
void world_start_rsd(struct world *world, int host);
/* All of them, elmer first; returns when elmer answers. */
bool world_start(struct world *world);
/* Signal and wait. */
void world_stop_elmer(struct world *world, int signal);
void world_stop_rsd(struct world *world, int host, int signal);
/* Reap who has ended. Start again whom the shim has ended, and who has ended for that; anything else is an error. */
bool world_tend(struct world *world);
/* Run a command of Elmer as the user, on host a or (at_elmer) at elmer's own socket; out is what it printed on both
 * outputs. Returns its exit status, or 124 after 20 s. The last argument is NULL. */
int world_command(struct world *world, bool at_elmer, char *out, size_t size, const char *const *argv);
/* An answer of elmer's own socket within ms. */
bool world_answers(struct world *world, int ms);
/* Nothing of any job is left within ms. */
bool world_is_clean(struct world *world, int ms);
/* The logs of all, to stdout. */
void world_show_logs(void);
/* Whether a line of this daemon's log ("elmer", "rsd-a") has this text. */
bool world_logged(const char *daemon, const char *text);
bool world_await_log(struct world *world, const char *daemon, const char *text, int ms);

int64_t world_now_ms(void);
void world_pause(void);

#endif
