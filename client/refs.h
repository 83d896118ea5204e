/* refs.h - which jobs are meant: 57 a job, or all of an array; 57[12], 57[3-9,12] and 57[*] tasks of one. */
#ifndef CLIENT_REFS_H
#define CLIENT_REFS_H

#include <stddef.h>

#include "client/common.h"

struct ref {
    uint64_t id;
    char *tasks; /* "3-9,12"; "*": each of them; NULL: the job, or the array as one */
};
/* false: it has said what is wrong. To be freed by refs_fini(). */
bool ref_parse(const char *text, struct ref *ref);
void refs_fini(struct ref *refs, size_t count);
/* The ids of all these, each task its own, and those that are not named twice; malloc'd. An exit code, or -1: they are
 * there. At most REFS_IDS. Elmer is asked once, or while it is away until that time (mono_now()): of no answer by then
 * nothing is said. */
enum { REFS_IDS = 100000, REFS_ONCE = 0 };
int refs_ids(struct elmer *elmer, const struct ref *refs, size_t count, int64_t until_ms, uint64_t **ids, size_t *nids);
/* Which of these ids are among the jobs; malloc'd. */
bool *refs_found(const uint64_t *ids, size_t count, const struct elmer_jobs *jobs);

#endif
