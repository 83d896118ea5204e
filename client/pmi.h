/* pmi.h - what ranks of MPICH ask of who has started them, in PMI 1: a line of words KEY=VALUE, and a line as its
 * answer.
 *
 * Values that ranks put are there for all of them at once, and a barrier is over when all ranks are in it. Pure: text
 * in, text out. Nothing that a rank says is believed: it has a size, and so has all that ranks put together. A rank
 * speaks when it has been answered: what it says before (a line while it is in a barrier) waits until then. */
#ifndef CLIENT_PMI_H
#define CLIENT_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PMI_LINE_MAX = 1024, /* MPICH's own */
    PMI_NAME_MAX = 64,   /* of the store; with their NUL, as the next two */
    PMI_KEY_MAX = 64,
    PMI_VALUE_MAX = 800,
    PMI_STORE_BYTES = 64 << 20 /* what ranks put */
};

/* What follows for all of them. */
enum pmi_result {
    PMI_GOES_ON,
    PMI_SPAWNS, /* it was told that there is no way to do that */
    PMI_ABORTS,
    PMI_WRONG /* it says what it must not; nothing more can be asked of the server */
};
struct pmi_said {
    uint32_t rank;
    int code;       /* PMI_ABORTS */
    char text[160]; /* PMI_WRONG: what it has said */
};
struct pmi_answer {
    uint32_t rank;
    const char *bytes; /* until the next call; none where a rank has said a part of a line */
    size_t size;
};
enum pmi_state { PMI_NOT_BEGUN, PMI_BEGUN, PMI_FINISHED };

/* Which ranks share a host, as ranks may ask for it by the key PMI_process_mapping: hosts[rank] is 0 for that of rank
 * 0, and the next number for each that comes later. False: it takes more room; then ranks find it out themselves. */
bool pmi_mapping(const size_t *hosts, size_t nranks, char *text, size_t size);

/* name: of the store, another one for each start; mapping: NULL where there is none. Both are copied. */
struct pmi *pmi_create(size_t nranks, const char *name, const char *mapping);
void pmi_destroy(struct pmi *pmi);

/* A rank has said this: up to RUN_PMI_PIECE bytes, and once until pmi_next() has had an answer to it. */
enum pmi_result pmi_hear(struct pmi *pmi, uint32_t rank, const void *bytes, size_t size, struct pmi_said *said);
/* The next answer that is ready: one to each piece. Up to RUN_PMI_ANSWER bytes. */
bool pmi_next(struct pmi *pmi, struct pmi_answer *answer);

/* A rank has ended: how far it had come. */
enum pmi_state pmi_ended(struct pmi *pmi, uint32_t rank);
/* Some are in a barrier, for ever, because this one has ended. */
bool pmi_stuck(const struct pmi *pmi, uint32_t *rank);

#endif
