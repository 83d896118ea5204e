/* file.h - the files of the store as such: one elmer at a time, and whether what is there is what was written.
 *
 * SQLite takes an empty file for a new database, and the log (-wal) for ended where it is cut or damaged, as after a
 * power cut: it begins without what was committed, and says nothing. So the store counts its commits, and the lock file
 * beside it holds that number once it is on disk. A store with fewer commits is not what was there. Where the lock file
 * was removed, as one is told to who goes on with what is left, nobody knows what is missing: ids of jobs that may have
 * been given are left out (copy.c). */
#ifndef ELMER_STORE_FILE_H
#define ELMER_STORE_FILE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { STORE_PAGE = 4096, STORE_LOG_PAGES_MIN = 32, STORE_LOG_PAGES = 1000 };

struct store_file {
    int lock;         /* descriptor + 1, so that zeros are a file that is not open */
    uint64_t commits; /* of the store */
    uint64_t noted;   /* those that the lock file knew at the start, and whether it knew: */
    bool known;
};

/* -EBUSY: another elmer has it; -EUCLEAN: what is there cannot be a store. Before the store is opened. */
int store_file_lock(const char *path, struct store_file *file, struct err *err);
void store_file_unlock(struct store_file *file);
/* -EUCLEAN: commits are missing. After sql_prepare(). */
int store_file_check(const char *path, struct store_file *file, sqlite3 *db, struct err *err);
/* The most pages that the log (-wal) may have before it is put into the store: a quarter of what it can have on its
 * file system, but at least STORE_LOG_PAGES_MIN and at most STORE_LOG_PAGES. */
int store_file_log_pages(const char *path);
/* The lock file knows how many commits there are, on disk: an empty one after a power cut would leave out ids. What
 * cannot be noted is not missed either. */
void store_file_note(const struct store_file *file);
/* Another commit, with number commits + 1, is on disk. */
void store_file_committed(struct store_file *file);

#endif
