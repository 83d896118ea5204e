/* shrink.c - the file of the store gets smaller when much of it is free, while elmer runs.
 *
 * SQLite keeps the pages of rows that are gone for new ones. A file that knows who refers to a page (auto_vacuum) can
 * move those at its end into free ones, a few at a time, and be cut; each call is one transaction of bounded size. A
 * part stays free: what goes out of the history each day comes in again. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "elmer/store/sql.h"
#include "lib/base/log.h"

enum { AUTO_VACUUM_INCREMENTAL = 2, GIVE_PAGES = 128, FREE_MIN = 256, FREE_SHARE = 8 };

/* It must be said before the first table is made. */
int sql_shrinkable(sqlite3 *db, bool empty, bool small, struct err *err)
{
    int64_t mode = 0;
    int result = empty ? sql_execute(db, "PRAGMA auto_vacuum = INCREMENTAL", err)
                       : sql_integer(db, "PRAGMA auto_vacuum", &mode, err);
    if (result || empty || !small || mode == AUTO_VACUUM_INCREMENTAL)
        return result;
    struct err none = ERR_INIT;
    if (sql_execute(db, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM", &none)) /* no room for a copy: at the next start */
        log_debug("the store stays as large as it is: %s", none.text);
    return 0;
}

int sql_give_back(sqlite3 *db, bool *more, struct err *err)
{
    int64_t mode = 0, nfree = 0, all = 0;
    char sql[60];
    int result = sql_integer(db, "PRAGMA auto_vacuum", &mode, err);
    *more = false;
    if (!result)
        result = sql_integer(db, "PRAGMA freelist_count", &nfree, err);
    if (!result)
        result = sql_integer(db, "PRAGMA page_count", &all, err);
    int64_t too_many = nfree - FREE_MIN - (all - nfree) / FREE_SHARE;
    if (result || mode != AUTO_VACUUM_INCREMENTAL || too_many <= 0)
        return result;
    snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%" PRId64 ")", too_many < GIVE_PAGES ? too_many : GIVE_PAGES);
    result = sql_execute(db, sql, err);
    *more = !result && too_many > GIVE_PAGES;
    return result;
}
