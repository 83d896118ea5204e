/* backup_out.c - writing a backup: see backup_file.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/backup_tar.h"
#include "lib/base/str.h"
#include "lib/pki/digest.h"

static int cannot_write(int code, struct err *err)
{
    return err_set(err, code, "the backup cannot be written: %s%s", strerror(-code),
                   code == -ENOSPC ? "; make room there, or name a file elsewhere" : "");
}

static int put(const struct backup_out *out, const void *bytes, size_t size, int64_t at, struct err *err)
{
    const char *from = bytes;

    while (size > 0) {
        ssize_t n = pwrite(out->fd, from, size, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return cannot_write(n < 0 ? -errno : -ENOSPC, err);
        from += n;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

/* All that comes, behind the room for its header. */
static int put_bytes(const struct backup_out *out, int from, int64_t *size, struct err *err)
{
    static char bytes[1 << 16];
    int result = 0;
    ssize_t n = 0;

    *size = 0;
    while (result == 0 && ((n = read(from, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))) {
        if (n < 0)
            continue;
        result = put(out, bytes, (size_t)n, out->size + TAR_BLOCK + *size, err);
        *size += n;
    }
    return result == 0 && n < 0 ? err_set(err, -errno, "the backup cannot be made: %s", strerror(errno)) : result;
}

static int put_header(struct backup_out *out, const char *name, int64_t size, struct err *err)
{
    char path[sizeof(TAR_PREFIX) + BACKUP_NAME_SIZE];
    struct tar_header header;
    static const char zeros[TAR_BLOCK];
    int64_t rest = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
    int result;

    snprintf(path, sizeof(path), TAR_PREFIX "%s", name);
    if (size > TAR_SIZE_MAX)
        return err_set(err, -EFBIG, "%s has more than 8 GB, which does not fit into a backup", name);
    tar_header_make(&header, path, size, out->made_s);
    result = put(out, &header, TAR_BLOCK, out->size, err);
    if (result == 0)
        result = put(out, zeros, (size_t)rest, out->size + TAR_BLOCK + size, err);
    return result;
}

/* What sha256sum(1) writes. */
static int note_sum(struct backup_out *out, const char *name, int64_t size, struct err *err)
{
    char digest[PKI_DIGEST_SIZE], *sums;
    int result = pki_digest_part(out->fd, out->size + TAR_BLOCK, size, digest, err);

    if (result < 0)
        return result;
    sums = str_format("%s%s  %s\n", out->sums ? out->sums : "", digest, name);
    if (!sums)
        return err_set(err, -ENOMEM, "out of memory");
    free(out->sums);
    out->sums = sums;
    return 0;
}

int backup_out_add(struct backup_out *out, const char *name, int from, struct err *err)
{
    int64_t size = 0;
    int result = backup_name_good(name) ? put_bytes(out, from, &size, err)
                                        : err_set(err, -EINVAL,
                                                  "a file of the name %s does not go into a backup: letters, digits, "
                                                  "'-', '_' and '.', at most 64",
                                                  name);

    if (result == 0)
        result = put_header(out, name, size, err);
    if (result == 0)
        result = note_sum(out, name, size, err);
    if (result == 0)
        out->size += tar_room(size);
    return result;
}

static int put_text(struct backup_out *out, const char *name, const char *text, struct err *err)
{
    int64_t size = (int64_t)strlen(text);
    int result = put(out, text, (size_t)size, out->size + TAR_BLOCK, err);

    return result == 0 ? put_header(out, name, size, err) : result;
}

int backup_out_text(struct backup_out *out, const char *name, const char *text, struct err *err)
{
    int64_t size = (int64_t)strlen(text);
    int result = put_text(out, name, text, err);

    if (result == 0)
        result = note_sum(out, name, size, err);
    if (result == 0)
        out->size += tar_room(size);
    return result;
}

int backup_out_end(struct backup_out *out, struct err *err)
{
    static const char end[2 * TAR_BLOCK];
    int result = put_text(out, BACKUP_SUMS, out->sums ? out->sums : "", err);

    if (result == 0)
        result = put(out, end, sizeof(end), out->size + tar_room((int64_t)strlen(out->sums)), err);
    if (result == 0 && fsync(out->fd) < 0)
        result = cannot_write(-errno, err);
    return result;
}

void backup_out_fini(struct backup_out *out)
{
    free(out->sums);
    out->sums = NULL;
}
