/* sql.h - SQL of the store: schema, migrations, rows to records and back. One connection belongs to one thread at
 * a time. */
#ifndef ELMER_STORE_SQL_H
#define ELMER_STORE_SQL_H

#include <sqlite3.h>

#include "elmer/store/store.h"
#include "lib/base/err.h"

enum { SQL_BUSY_MS = 5000 };
int sql_open(const char *path, bool writer, sqlite3 **db, struct err *err);
/* Check whose file it is and bring the schema to this version. checked: it was small enough to be checked whole too. */
int sql_prepare(sqlite3 *db, const char *path, bool *checked, struct err *err);
/* -EUCLEAN: the file is damaged somewhere. Time is proportional to its size. */
int sql_check(sqlite3 *db, struct err *err);
/* What is wrong with the store at path and what to do, from the text of one of the others. Returns code. */
int sql_explain(const char *path, int code, struct err *err, const char *text);

struct sql_writer;
int sql_writer_create(sqlite3 *db, struct sql_writer **writer, struct err *err);
void sql_writer_destroy(struct sql_writer *writer);
struct sql_rows {
    struct record *const *records;
    size_t count;
    const struct certificate *certificates;
    size_t ncertificates;
    const struct host_row *hosts;
    size_t nhosts;
    const struct setting_row *settings;
    size_t nsettings;
    const struct decision *decisions;
    size_t ndecisions;
};
/* All of them or none; commits: how many there are then. */
int sql_write(struct sql_writer *writer, const struct sql_rows *rows, uint64_t commits, struct err *err);
/* Before anything waits for it: zeros behind what the log has, up to so many pages. */
int sql_lengthen_log(sqlite3 *db, int pages, struct err *err);
/* Pages in the log after the last commit. */
int sql_log_pages(const struct sql_writer *writer);
/* Put what is in the log into the store, as far as nobody reads it; waits for no reader. cut: and if that was all of
 * it, let the log have no space on the disk. */
int sql_checkpoint(struct sql_writer *writer, bool cut, struct err *err);
/* When the store was opened: by the clock, by the monotonic one, and when a job had ended last, 0: none. */
struct trim_clock {
    int64_t opened_ms, opened_mono_ms, last_end_ms;
};
/* How old the history may be now. If the clock was further than that past the last end when the store was opened, it
 * may have been set wrongly, by a power cut: then for a day nothing is too old, as the end of one job by such a clock
 * would make all others so. */
int64_t trim_age(const struct trim_clock *clock, int64_t age_ms, int64_t now_mono_ms);
enum { TRIM_LARGE = 32 }; /* large ones at a time: they may have 720 KiB each */
/* What is remembered of the large ones between two trims: how many bytes they have, and how many of the file were in
 * use when these were counted; 0: never. */
struct trim_large {
    int64_t bytes, counted_at;
};
/* Take some of the jobs that are beyond the limits out of the history. more: there may be others. */
int sql_trim(sqlite3 *db, const struct store_limits *limits, int64_t now_ms, struct trim_large *large, bool *more,
             struct err *err);
/* Take the environments of some jobs that have ended out of their submissions. more: there may be others. */
int sql_drop_environments(sqlite3 *db, bool *more, struct err *err);
/* Before anything is written: let the file be one that can be made smaller. One of before becomes it if it is small. */
int sql_shrinkable(sqlite3 *db, bool empty, bool small, struct err *err);
/* Give some of the free pages back to the file system, if there are many. more: there are. */
int sql_give_back(sqlite3 *db, bool *more, struct err *err);

/* A connection for reading, and its statements, each made when it is first needed. */
enum sql_which { SQL_UNFINISHED, SQL_BY_ID, SQL_BY_TOKEN, SQL_HISTORY, SQL_USAGE, SQL_END, SQL_WHICH_COUNT };
struct sql_reader {
    sqlite3 *db;
    sqlite3_stmt *statements[SQL_WHICH_COUNT];
};
void sql_reader_close(struct sql_reader *reader);
/* SQL_BY_ID: id; SQL_BY_TOKEN: id is the uid, text the token; SQL_HISTORY: ended jobs with smaller ids, the latest
 * first, of the user text ("": of all), not ended before since_ms, count at most. */
int sql_read(struct sql_reader *reader, enum sql_which which, uint64_t id, const char *text, int64_t since_ms,
             size_t count, void (*each)(struct record *record, void *data), void *data, struct err *err);
/* FORGOTTEN: there is no such job. */
int sql_end_of(struct sql_reader *reader, uint64_t job, enum core_end *end, struct err *err);
int sql_certificates(sqlite3 *db, void (*each)(const struct certificate *certificate, void *data), void *data,
                     struct err *err);
int sql_hosts(sqlite3 *db, void (*each)(const struct host_row *host, void *data), void *data, struct err *err);
int sql_settings(sqlite3 *db, void (*each)(const struct setting_row *setting, void *data), void *data, struct err *err);
/* At most count, with ids above after; see store_read_decisions(). */
int sql_decisions(sqlite3 *db, int64_t since_ms, int64_t after, size_t count,
                  void (*each)(const struct decision *decision, void *data), void *data, struct err *err);
int sql_counters(sqlite3 *db, uint64_t *next_job, uint64_t *next_allocation, struct err *err);
/* Leave out the ids that may have been given since the last one that the store knows (copy.c). */
int sql_skip_ids(sqlite3 *db, int64_t now_ms, uint64_t *next_job, struct err *err);

/* For the files of SQL: run; the error in words; a statement; the first column of the first row, 0 without one. */
int sql_execute(sqlite3 *db, const char *sql, struct err *err);
int sql_fail(sqlite3 *db, int code, const char *what, struct err *err);
int sql_fail_with(sqlite3 *db, int code, int system, const char *what, struct err *err); /* system: an errno, or 0 */
int sql_statement(sqlite3 *db, const char *sql, sqlite3_stmt **statement, struct err *err);
int sql_integer(sqlite3 *db, const char *sql, int64_t *value, struct err *err);

#endif
