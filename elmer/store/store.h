/* store.h - the jobs, the hosts, their certificates and what is set, on disk. The only user of SQLite; the contract of
 * this room.
 *
 * Writing: records are queued and written by a thread of the store's own, all that wait in one transaction (WAL,
 * synchronous=FULL). Reading while elmer runs goes through the loop's worker threads and a connection of its own.
 * Opening and loading happen before the loop runs and block.
 *
 * The store lives until store_close(). A record has one owner: store_put() takes it over, each() and an answer give it
 * to the caller. What cannot be opened or loaded is returned with a text; what cannot be written is told by
 * on_failure(), and tried again until it is. */
#ifndef ELMER_STORE_STORE_H
#define ELMER_STORE_STORE_H

#include <uv.h>

#include "elmer/store/boot.h"
#include "elmer/store/certificate.h"
#include "elmer/store/copy.h"
#include "elmer/store/decision.h"
#include "elmer/store/host_row.h"
#include "elmer/store/record.h"
#include "elmer/store/setting_row.h"
#include "lib/base/err.h"

/* 11: hosts that have joined by a token, and what persons have decided. 13: lines of tasks, notices */
enum { STORE_SCHEMA = 14 };

/* Of decisions: so many of administrators, and as many of users about their own, who must not push those out. */
enum { STORE_DECISIONS = 100000 };
/* Of the history: ended jobs beyond either are removed, the oldest first. Decisions are as old as jobs may be. Beyond
 * `bytes` (of what is in use of the file; 0: none) those go that have a large submission, the oldest first, because
 * without these it has room for all; but not while they have `large_bytes` or less, as then others fill it. */
enum { STORE_LARGE_BYTES = 16 << 10, STORE_OTHER_BYTES = 256 << 20, STORE_LARGE_ALL = 128 << 20 };
struct store_limits {
    int64_t jobs, age_ms, bytes, large_bytes;
};
static inline struct store_limits store_limits_of(int64_t jobs, int64_t age_ms)
{
    return (struct store_limits){jobs, age_ms, jobs * STORE_LARGE_BYTES + STORE_OTHER_BYTES, STORE_LARGE_ALL};
}

struct store;

struct store_callbacks {
    /* All records up to this number (of store_put) are on disk. */
    void (*on_commit)(uint64_t number, void *data);
    /* The last attempt to write failed, why and what to do in text; it is tried again every second. NULL: it works
     * again. */
    void (*on_failure)(const char *text, void *data);
    /* The file is damaged: found by the check of a large store, which runs after store_check(). */
    void (*on_damage)(const char *text, void *data);
};

/* Open or create the store. -EBUSY: another elmer has it; -EPROTO: of a newer version or not ours; -EUCLEAN: damaged;
 * else -errno. The text says what to do. */
int store_open(uv_loop_t *loop, const char *path, const struct store_callbacks *callbacks, void *data,
               struct store **store, struct err *err);
/* Writes what waits (gives up after a failure) and closes. Reads that have not been answered never are. */
void store_close(struct store *store);

/* What a restart needs; blocking, before the loop runs. each() takes over the record: all unfinished jobs, by id. */
int store_load(struct store *store, void (*each)(struct record *record, void *data), void *data, uint64_t *next_job,
               uint64_t *next_allocation, struct err *err);
/* How these jobs have ended, also FORGOTTEN; what is said of one that has not means nothing. Blocking, as above. */
int store_load_ends(struct store *store, const uint64_t *jobs, size_t count, enum core_end *ends, struct err *err);
/* All certificates; blocking, before the loop runs. */
int store_load_certificates(struct store *store, void (*each)(const struct certificate *certificate, void *data),
                            void *data, struct err *err);
/* All hosts that were ever written; blocking, before the loop runs. */
int store_load_hosts(struct store *store, void (*each)(const struct host_row *host, void *data), void *data,
                     struct err *err);
/* What administrators have set and not taken back; blocking, before the loop runs. */
int store_load_settings(struct store *store, void (*each)(const struct setting_row *setting, void *data), void *data,
                        struct err *err);
/* Check what store_open() had no time for, in a worker thread; a small store has been checked. */
void store_check(struct store *store);
/* Remove what is beyond the limits, and environments that an elmer of before has kept of jobs that have ended, and give
 * the room back to the file system: in the writer's thread when it has nothing else to do. */
void store_trim(struct store *store, const struct store_limits *limits);

/* Write the record (taken over) within a few milliseconds; what still waits of the same job is replaced. Returns its
 * number, counted from 1. */
uint64_t store_put(struct store *store, struct record *record);
/* The same of a certificate, which is copied. */
uint64_t store_put_certificate(struct store *store, const struct certificate *certificate);
/* The same of a host. */
uint64_t store_put_host(struct store *store, const struct host_row *host);
/* The same of a setting. */
uint64_t store_put_setting(struct store *store, const struct setting_row *setting);
/* The same of a decision. More than STORE_DECISIONS_WAITING while nothing can be written are in the log only. */
enum { STORE_DECISIONS_WAITING = 4096 };
uint64_t store_put_decision(struct store *store, const struct decision *decision);
/* Somebody waits for all up to this number: write it at once, or after a large batch within 3 ms. */
void store_want(struct store *store, uint64_t number);
/* While it is held nothing new is written: what is put then is on disk all together or not at all. For a moment only.
 */
void store_hold(struct store *store, bool hold);
uint64_t store_committed(const struct store *store);

/* Records of these jobs (in the order of ids; unknown ones left out), or of the job of (uid, token). The records belong
 * to the caller. error is NULL or says why nothing could be read. */
typedef void (*store_answer)(struct record **records, size_t count, const char *error, void *data);
void store_read(struct store *store, const uint64_t *ids, size_t count, store_answer answer, void *data);
void store_find(struct store *store, uint32_t uid, const char *token, store_answer answer, void *data);
/* Ended jobs with ids below before, the latest first, at most count; of this user, "" of all; not ended before
 * since_ms. */
void store_read_history(struct store *store, uint64_t before, const char *user, int64_t since_ms, size_t count,
                        store_answer answer, void *data);
/* Decisions with ids above after, not older than since_ms, in their order, at most count; they are good until answer()
 * returns. */
typedef void (*store_decisions)(const struct decision *decisions, size_t count, const char *error, void *data);
void store_read_decisions(struct store *store, int64_t since_ms, int64_t after, size_t count, store_decisions answer,
                          void *data);

#endif
