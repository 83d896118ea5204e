/* log.c - SQLite's log before anything is in it.
 *
 * A commit waits for the disk. Where that makes the log longer, the file system has news of its own to write, with what
 * others have left to it, and threads of the kernel that do so: behind jobs that spin on all CPUs each of them waits
 * for its turn. In blocks that were written before, it is the data alone. */
#include "config.h"

#include "elmer/store/file.h"
#include "elmer/store/sql.h"

int sql_lengthen_log(sqlite3 *db, int pages, struct err *err)
{
    static const char nothing[31 * STORE_PAGE]; /* SQLite takes no more than 128 KiB */
    sqlite3_file *log = NULL;
    sqlite3_int64 size = 0, end = 32 + (sqlite3_int64)pages * (24 + STORE_PAGE); /* its headers */
    int code = sqlite3_file_control(db, NULL, SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (code != SQLITE_OK || !log || !log->pMethods)
        return sql_fail(db, code, "the log of the store", err);
    code = log->pMethods->xFileSize(log, &size);
    while (code == SQLITE_OK && size < end) {
        int amount = end - size < (sqlite3_int64)sizeof(nothing) ? (int)(end - size) : (int)sizeof(nothing);
        code = log->pMethods->xWrite(log, nothing, amount, size);
        size += amount;
    }
    if (code == SQLITE_OK)
        code = log->pMethods->xSync(log, SQLITE_SYNC_FULL);
    return code == SQLITE_OK ? 0 : sql_fail(db, code, "the log of the store", err);
}
