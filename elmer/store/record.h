/* record.h - all that is kept of a job, as plain data: what the store writes and reads, and what the views of users are
 * made of. */
#ifndef ELMER_STORE_RECORD_H
#define ELMER_STORE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "elmer/core/core.h"
#include "lib/base/err.h"
#include "lib/job/fields.h"
#include "lib/memory/mem.h"
#include "lib/wire/wire.h"

#define RECORD_UNKNOWN_HOST "?" /* among those that are lost: was taken out of the configuration */

struct record_processor {
    const char *host;
    int cpu;
};

struct record_usage {
    const char *host;
    uint32_t attempt;
    double cpu_seconds;
    int64_t memory_peak_bytes; /* -1: not known */
};

#define RECORD_KEPT(name, type, record, ...) JOB_DECLARE(record, name)
/* Times are Unix time, -1: not yet; level: CORE_NO_LEVEL without a cluster; lease_ms 0: none. What counts up to
 * accounted_ms (level_ms) was accounted_mono_ms of the monotonic clock of this boot; boot 0: not known.
 * environment_sha256: see record_end(); "": the submission has its environment. */
struct record {
    struct arena memory;                        /* of everything below, except submission */
    JOB_FIELDS(JOB_NONE, RECORD_KEPT, JOB_NONE) /* the single values */
    const char *token;
    const struct wire_submit *submit; /* NULL in one that goes to the store */
    struct wire_message submission;   /* owned, of one that was read */
    const char *json;    /* what the store shall have of it now, see record_end(); NULL: what it has already */
    unsigned json_minor; /* see record_json() */
    const struct record_processor *processors;
    uint32_t nprocessors;
    const char *const *hosts; /* those that it may use; nhosts 0: all */
    uint32_t nhosts;
    const char *const *lost; /* hosts that may still have it, also such as are no longer in the configuration */
    uint32_t nlost;
    const struct core_after *after; /* what it waits for; of one that was read only the verdicts */
    uint32_t nafter;
    const struct core_range *gone; /* of an array, as in struct core_job */
    uint32_t ngone;
    const uint8_t *exited; /* as in struct core_job; NULL */
    size_t exited_size;
    int64_t level_ms[CORE_MAX_LEVELS];
    const struct record_usage *usage;
    size_t nusage;
    uint32_t mesh_rows;        /* of what several processors are in a cube until it has ended; 0: none; not stored */
    bool notice;               /* in one that goes to the store, which keeps what it tells about until it has ended */
    bool dropped;              /* its submission was refused: nothing of it stays in the store */
    bool refused;              /* it is next, and the allocator refuses it; not stored, as below ... */
    struct core_survey survey; /* ... as these processors take no job now */
};
#undef RECORD_KEPT

struct record *record_create(void);
void record_destroy(struct record *record);
/* A submission as the store has it, in the least minor of the protocol that has all that it says: an elmer of before
 * can read it, unless it asks for something that came later. json is the caller's. */
int record_json(const struct wire_message *submission, char **json, unsigned *minor, struct err *err);
/* What is kept of a submission when its job has ended: all but its ticket, and the environment, which may hold secrets,
 * and the SHA-256 of that, sorted and each with its NUL (env -0 | LC_ALL=C sort -z | sha256sum). json and
 * minor: as record_json() has them. */
enum { RECORD_DIGEST_SIZE = 65 };
int record_end(const struct wire_message *submission, char **json, unsigned *minor, char digest[RECORD_DIGEST_SIZE],
               struct err *err);
/* The distinct hosts of its cluster in rank order. */
struct wire_strs record_cluster_hosts(const struct record *record, struct arena *memory);
/* For others that wait for it; the job has ended. */
static inline enum core_end record_end_of(const struct record *r)
{
    return core_end_of(r->state, r->reason, r->exit_status, r->signal, r->ran);
}
static inline bool record_ended(const struct record *record)
{
    return record->state == JOB_DONE || record->state == JOB_CANCELLED;
}

#endif
