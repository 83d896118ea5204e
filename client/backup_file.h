/* backup_file.h - the file that eadmin backup writes: an archive of tar (ustar), so that an administrator can look into
 * it, and take a file out in need, with what every system has. Its first member says what it is, its last one is a list
 * as of sha256sum(1) of all others: a file without it, or with another sum, is none.
 *
 *   elmer-backup/ABOUT                 when, of which host, where the store was
 *   elmer-backup/elmer.db              the store
 *   elmer-backup/ca/NAME               the CA's files, tokens that were used in ca/used/ID
 *   elmer-backup/etc/elmer.conf ..     the configuration, its fragments in etc/elmer.conf.d/NAME.conf
 *   elmer-backup/SHA256SUMS
 */
#ifndef CLIENT_BACKUP_FILE_H
#define CLIENT_BACKUP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

#define BACKUP_ABOUT "ABOUT"
#define BACKUP_STORE "elmer.db"
#define BACKUP_SUMS  "SHA256SUMS"

/* Names without "elmer-backup/": one of those above, and nothing that leads elsewhere. */
bool backup_name_good(const char *name);

/* What a restore takes: files, and bytes of each but the store, which are text. */
enum { BACKUP_MEMBERS = 65536, BACKUP_TEXT_MAX = 1 << 20 };

/* ---- writing: an open, empty file ---- */

struct backup_out {
    int fd;
    int64_t size, made_s;
    size_t count; /* files */
    char *sums;
    size_t sums_size, sums_capacity;
};
/* All that comes from a descriptor; a text. -ENOSPC and so on, with text; also for what could not be restored. */
int backup_out_add(struct backup_out *out, const char *name, int from, struct err *err);
int backup_out_text(struct backup_out *out, const char *name, const char *text, struct err *err);
/* The list of sums, and everything on disk. */
int backup_out_end(struct backup_out *out, struct err *err);
void backup_out_fini(struct backup_out *out);

/* ---- reading ---- */

enum { BACKUP_NAME_SIZE = 101 };
struct backup_member {
    char name[BACKUP_NAME_SIZE];
    int64_t at, size;
};
struct backup_in {
    int fd;
    struct backup_member *members;
    size_t count;
    int64_t made_ms;
    char host[256], store[4096];
};
/* Checks all of it: names, sums, that it is whole, that there are a store and a CA. Then nothing is open or kept where
 * it is not 0. */
int backup_in_open(struct backup_in *in, const char *path, struct err *err);
void backup_in_close(struct backup_in *in);
/* NULL: there is none. */
const struct backup_member *backup_in_find(const struct backup_in *in, const char *name);
/* A member of at most max bytes without NUL, malloc'd. */
int backup_in_text(const struct backup_in *in, const struct backup_member *member, size_t max, char **text,
                   struct err *err);
/* The member into another descriptor. */
int backup_in_copy(const struct backup_in *in, const struct backup_member *member, int to, struct err *err);

#endif
