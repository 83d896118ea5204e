/* internal.h - what the files of this room share: the store itself, and who may touch what of it. */
#ifndef ELMER_STORE_INTERNAL_H
#define ELMER_STORE_INTERNAL_H

#include "elmer/store/file.h"
#include "elmer/store/sql.h"
#include "elmer/store/store.h"
#include "lib/memory/map.h"

enum { BATCH_FULL = 256 }; /* more of them are not waited for */

struct batch {
    struct record **items;
    size_t count, capacity;
    struct map places; /* job -> index + 1 */
    struct certificate *certificates;
    size_t ncertificates, room;
    struct host_row *hosts;
    size_t nhosts, hosts_room;
    struct setting_row *settings;
    size_t nsettings, settings_room;
    struct decision *decisions;
    size_t ndecisions, decisions_room, decisions_lost;
};

struct read {
    struct read *next;
    struct store *store;
    enum sql_which which;
    uint64_t *ids; /* SQL_BY_ID */
    size_t nids;
    uint64_t id; /* see sql_read() */
    char *text;
    int64_t since_ms;
    size_t limit;
    struct record **records;
    size_t count, capacity;
    struct err err;
    int result;
    store_answer answer;
    store_decisions decided; /* in its place, of store_read_decisions() */
    struct decision *decisions;
    void *data;
};

/* Has a connection of its own, and may outlive a store that is closed. */
struct check {
    struct store *store; /* NULL: closed meanwhile */
    char *path;
    struct err err;
    int result;
    uv_work_t work;
};

struct store {
    uv_loop_t *loop;
    struct store_callbacks callbacks;
    void *data;
    struct store_file file;
    sqlite3 *db;
    struct sql_reader reader; /* of the worker, or of the loop before it runs */
    struct sql_writer *writer;
    uint64_t put, committed; /* loop only */
    /* shared with the thread, under mutex */
    uv_mutex_t mutex;
    uv_cond_t wake;
    uv_async_t async;
    uv_thread_t thread;
    struct batch waiting;
    uint64_t waiting_number, written_number, wanted; /* the last put, committed, that somebody waits for */
    bool stop, failing, news, trim, gathering, holding;
    struct store_limits limits;
    struct trim_clock clock; /* the thread's */
    struct trim_large large; /* the thread's */
    struct err failure;
    bool was_failing; /* loop only */
    char *path;
    bool checked;
    struct check *check;             /* the one that runs */
    struct read *reads, **last_read; /* that wait */
    struct read *running;            /* that the worker has */
    uv_work_t work;
    bool closing;
};

/* writer.c: the thread; what is added to a batch, with the mutex. */
void store_writer(void *data);
void batch_add(struct batch *batch, struct record *record);
void batch_add_certificate(struct batch *batch, const struct certificate *certificate);
void batch_add_host(struct batch *batch, const struct host_row *host);
void batch_add_setting(struct batch *batch, const struct setting_row *setting);
void batch_add_decision(struct batch *batch, const struct decision *decision);
void batch_clear(struct batch *batch);

/* How long a batch may grow while somebody waits for it. One of eight records or more shows that more will come soon;
 * one with two new jobs that several submit at a time, so that a new job waits for others. Who submits one after the
 * other has never two in a batch, and the start and the end of a job do not wait for new ones. Times are of
 * uv_hrtime(); zeros: nothing is known. */
struct pace {
    uint64_t many_until, several_until;
};
void pace_note(struct pace *pace, size_t count, size_t new_jobs, uint64_t now); /* of a batch that is written now */
/* So many nanoseconds at most, for one that has so many new jobs yet and begins now. */
uint64_t pace_gather(const struct pace *pace, size_t new_jobs, bool wanted, uint64_t now);

/* reader.c; the last read that ends after store_close() closes the connections. */
void read_free(struct read *read);
void store_close_when_idle(struct store *store); /* store.c */

#endif
