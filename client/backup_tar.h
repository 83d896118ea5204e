/* backup_tar.h - what of the format of tar (POSIX.1-1988, ustar) a backup uses: plain files. */
#ifndef CLIENT_BACKUP_TAR_H
#define CLIENT_BACKUP_TAR_H

#include "client/backup_file.h"

#define TAR_PREFIX "elmer-backup/"
enum { TAR_BLOCK = 512 };
#define TAR_SIZE_MAX INT64_C(8589934591) /* 11 octal digits */

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
        user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "ustar has headers of 512 bytes");

void tar_header_make(struct tar_header *header, const char *path, int64_t size, int64_t mtime_s);
/* False: it is not the header of a plain file of a backup. name: without the prefix. */
bool tar_header_read(const struct tar_header *header, char name[BACKUP_NAME_SIZE], int64_t *size);
/* What a file of so many bytes takes with its header. */
static inline int64_t tar_room(int64_t size)
{
    return TAR_BLOCK + (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

#endif
