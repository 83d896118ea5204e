/* columns.h - the columns of the store's table `state`, from job.def. */
#ifndef ELMER_STORE_COLUMNS_H
#define ELMER_STORE_COLUMNS_H

#include <sqlite3.h>

#include "elmer/store/record.h"

struct column {
    const char *name;
    int64_t schema; /* it came with this one */
    const char *declaration;
    /* From the record into the parameter with that number, which is NULL before. */
    void (*bind)(sqlite3_stmt *statement, int at, const struct record *record);
    /* From the column with that number into the record. 0, or -EBADMSG: no elmer has written that. */
    int (*read)(sqlite3_stmt *statement, int at, struct record *record);
};
/* All but the first, which is the job's id, in the order of job.def. */
extern const struct column columns[];
extern const size_t ncolumns;

/* Their names, or nothing, with `before` in front of each; malloc'd. */
char *columns_list(const char *before, bool named);

/* For what is read by hand: a copy, "" for NULL; and a number, -1 for NULL. */
const char *column_text(sqlite3_stmt *statement, int at, struct arena *memory);
int64_t column_known(sqlite3_stmt *statement, int at);

#endif
