/* store.h - the jobs on disk. The only user of SQLite.
 *
 * Writing: records are queued and written by a thread of the store's own, all that wait in one transaction (WAL,
 * synchronous=FULL). Reading while elmer runs goes through the loop's worker threads and a connection of its own.
 * Opening and loading happen before the loop runs and block. */
#ifndef ELMER_DAEMON_STORE_H
#define ELMER_DAEMON_STORE_H

#include <uv.h>

#include "elmer/record.h"
#include "libelmer/base/err.h"

enum { STORE_SCHEMA = 1 };

struct store;

struct store_callbacks {
    /* All records up to this number (of store_put) are on disk. */
    void (*on_commit)(uint64_t number, void *data);
    /* The last attempt to write failed, why and what to do in text; it is tried again every second. NULL: it works
     * again. */
    void (*on_failure)(const char *text, void *data);
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
/* (uid, token) of every finished job. */
int store_load_tokens(struct store *store, void (*each)(uint32_t uid, const char *token, void *data), void *data,
                      struct err *err);

/* Write the record (taken over); what still waits of the same job is replaced. Returns its number, counted from 1. */
uint64_t store_put(struct store *store, struct record *record);
uint64_t store_committed(const struct store *store);

/* Records of these jobs (in the order of ids; unknown ones left out), or of the job of (uid, token). The records belong
 * to the caller. error is NULL or says why nothing could be read. */
typedef void (*store_answer)(struct record **records, size_t count, const char *error, void *data);
void store_read(struct store *store, const uint64_t *ids, size_t count, store_answer answer, void *data);
void store_find(struct store *store, uint32_t uid, const char *token, store_answer answer, void *data);

#endif
