/* machine.h - adapter of libpvm3: the job's virtual machine, as its hoster and as the collector of its tasks' output.
 * No other file of the agent includes a PVM header. libpvm3 keeps one connection per process, so there is one machine.
 * It prints to stderr as it likes: give it a stderr that nobody reads. */
#ifndef RSD_PVM_MACHINE_H
#define RSD_PVM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

enum { MACHINE_HOSTS_MAX = 4094, MACHINE_ANSWER_MAX = 1024 };

/* A daemon that PVM wants started. The callee fills in answer: the first line that the daemon printed, or one of PVM's
 * names for an error ("PvmCantStart", "PvmNoHost"). */
struct machine_spawn {
    const char *host, *command;
    char answer[MACHINE_ANSWER_MAX + 1];
};

/* What the machine tells; called from within machine_add_hosts() and machine_receive(). */
struct machine_handlers {
    void *context;
    /* Start daemons on hosts, all in parallel; return when all answers are filled in. It must not take for ever. */
    void (*spawn)(void *context, struct machine_spawn *spawns, size_t count);
    void (*task_began)(void *context, int tid);
    void (*task_output)(void *context, int tid, const char *text, size_t size);
    void (*task_ended)(void *context, int tid); /* no more output of it */
};

/* Enrol with the master daemon (PVMSOCK), become collector of all output, then hoster. 0, or -EPROTO and a sentence. */
int machine_enrol(const struct machine_handlers *handlers, struct err *err);

/* Add hosts, all at once; a specification is "NAME[ ip=ADDRESS][ wd=DIRECTORY]". Blocks until PVM has its answer for
 * each: codes[i] is negative for a host that could not join. Returns how many have joined, or -EPROTO and a sentence.
 */
int machine_add_hosts(char **specifications, size_t count, int *codes, struct err *err);

/* PVM's own words for a negative code. */
const char *machine_error(int code);
/* What to do about it when a host could not join. */
const char *machine_advice(int code);

/* The descriptors to poll for reading; the array belongs to libpvm3 and is valid until the next call. Negative: the
 * machine is gone. */
int machine_descriptors(const int **descriptors);

/* Take in what has come, without waiting. 0, or -EPIPE: the machine is gone, and no call but machine_error() may
 * follow. */
int machine_receive(void);

/* Halt the whole machine and wait until the master daemon has let go: every daemon and task ends. The master sends
 * SIGTERM to the caller too. */
void machine_halt(void);

#endif
