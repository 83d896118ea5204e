/* word.h - what root says to rsd at its start, where rsd is not root: elmer-rsd-begin (rsd-spawn.service) over the
 * socket that will be the line to elmer-spawn. It hears nothing from rsd: that it has connected is all that it can ask
 * for. */
#ifndef RSD_WORD_H
#define RSD_WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "rsd/config.h"
#include "rsd/root/root.h"

enum word_kind {
    WORD_LOG,     /* a line of the log: level, format, text */
    WORD_WAITS,   /* text: why rsd cannot begin yet; "": it can now */
    WORD_FAILED,  /* level: the exit status that rsd ends with */
    WORD_REACHED, /* text: JOB.ATTEMPT; a descriptor: connected to its supervisor */
    WORD_DONE, /* three descriptors: groups_fd and tmp_fd of the facts, and a sealed file in memory with the plan. What
                 comes from now on are answers of elmer-spawn */
};
/* What rsd goes on with. */
struct begin_plan {
    uint32_t size; /* of this struct: another one is of another build */
    char version[28];
    bool tickets;      /* elmer-tickets is there to be joined */
    char reason[1024]; /* why it is not */
    struct rsd_config config;
    struct rsd_facts facts; /* without descriptors */
};

/* ---- root's side. False: rsd has gone, or has not read for some seconds ---- */

/* First of all. */
bool word_open(int fd);
bool word_log(int fd, int level, const char *format, const char *text);
bool word_waits(int fd, const char *why);
bool word_failed(int fd, int status);
bool word_reached(int fd, const char *name, int supervisor);
bool word_done(int fd, struct begin_plan *plan);

/* ---- rsd's side ---- */

/* Hears and does what is said, until it is done: 0, with descriptors and supervisors in the facts; > 0: the exit
 * status; -errno with a sentence, if nothing comes for WORD_PATIENCE_MS, the other side ends, or is of another build.
 */
enum { WORD_PATIENCE_MS = 60000 };
int word_hear(int fd, struct begin_plan *plan, int patience_ms, struct err *err);

/* In the status of rsd's unit, which counts as started meanwhile: it may take long. NULL or "": no more. */
void word_show(const char *why);

#endif
