/* life.h - the life of a job's terminal: what follows from who looks at it, from time, and from the end of its command.
 * Pure: what is to be done is the answer. holder.c does it.
 *
 * WAITS (its command begins with the first who looks, with the size of his terminal) -> RUNS (with keep at once) ->
 * HUNG (its command has got HUP: who looked has gone for good, and KILL comes after LIFE_HANG_MS; or the job is to end,
 * and its supervisor says when) -> LAST (its command has ended: what it has printed last is shown) -> OVER. Who looks
 * may come and go in each but the last.
 */
#ifndef RSD_COURIER_LIFE_H
#define RSD_COURIER_LIFE_H

#include <stdbool.h>
#include <stdint.h>

enum life_state { LIFE_WAITS, LIFE_RUNS, LIFE_HUNG, LIFE_LAST, LIFE_OVER };
enum life_do {
    LIFE_NOTHING,
    LIFE_START,   /* the command */
    LIFE_HANG_UP, /* HUP to it and to what is in the foreground */
    LIFE_KILL
};
enum {
    LIFE_HANG_MS = 5000, /* from HUP to KILL */
    LIFE_LAST_MS = 10000 /* for who looks to take the next piece of what was printed last */
};

struct life {
    enum life_state state;
    bool keep, shown; /* shown: somebody looks */
    bool returns;     /* LAST: who has looked may come back for the rest */
    bool stopped;     /* HUNG: by TERM, which may not have been the end: its command may go on, while somebody looks */
    int64_t deadline_ms; /* of life_time(); INT64_MAX: none */
};

enum life_do life_begin(struct life *life, bool keep, int64_t now);
/* Somebody looks, perhaps in the place of another. */
enum life_do life_looked(struct life *life, int64_t now);
/* His connection is lost. */
enum life_do life_lost(struct life *life, int64_t now);
/* He goes because he wants to. */
enum life_do life_left(struct life *life, int64_t now);
/* The job is to end. */
enum life_do life_stop(struct life *life);
/* The command has ended. */
void life_exited(struct life *life, int64_t now);
/* He has taken something. */
void life_taken(struct life *life, int64_t now);
/* LAST: who looks has had all of it, or there was nothing to show and nobody to show it to. */
void life_told(struct life *life);
/* For so long this process has got no CPU, as behind a job that spins: nobody could come meanwhile. */
void life_starved(struct life *life, int64_t ms);
/* deadline_ms is over. */
enum life_do life_time(struct life *life, int64_t now);

#endif
