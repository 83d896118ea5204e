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

static int cannot_write(int result, struct err *err)
{
    return err_set(err, result, "the backup cannot be written: %s%s", strerror(-result),
                   result == -ENOSPC ? "; make room there, or name a file elsewhere" : "");
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

/* A restore would refuse it, perhaps when nothing else is left. How much comes as the store is up to elmer: what does
 * not fit must not fill root's disk before that is known. */
static int judge(const char *name, const char *bytes, ssize_t count, int64_t size, struct err *err)
{
    if (size > TAR_SIZE_MAX)
        return err_set(err, -EFBIG, "%s has more than 8 GB, which does not fit into a backup", name);
    if (strcmp(name, BACKUP_STORE) == 0)
        return 0;
    if (size > BACKUP_TEXT_MAX)
        return err_set(err, -EFBIG,
                       "%s has more than %d bytes, which does not fit into a backup: is it what it should be?", name,
                       BACKUP_TEXT_MAX);
    if (memchr(bytes, 0, (size_t)count))
        return err_set(err, -EINVAL, "%s is no text, and does not go into a backup: is it damaged?", name);
    return 0;
}

/* All that comes, behind the room for its header. */
static int put_bytes(const struct backup_out *out, const char *name, int from, int64_t *size, struct err *err)
{
    static char bytes[1 << 16];
    int result = 0;
    ssize_t n = 0;

    *size = 0;
    while (result == 0 && ((n = read(from, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))) {
        if (n < 0)
            continue;
        result = judge(name, bytes, n, *size + n, err);
        if (result == 0)
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
    tar_header_make(&header, path, size, out->made_s);
    result = put(out, &header, TAR_BLOCK, out->size, err);
    if (result == 0)
        result = put(out, zeros, (size_t)rest, out->size + TAR_BLOCK + size, err);
    return result;
}

/* What sha256sum(1) writes. */
static int note_sum(struct backup_out *out, const char *name, int64_t size, struct err *err)
{
    char digest[PKI_DIGEST_SIZE], line[PKI_DIGEST_SIZE + BACKUP_NAME_SIZE + 4];
    int result = pki_digest_part(out->fd, out->size + TAR_BLOCK, size, digest, err);
    size_t length;

    if (result < 0)
        return result;
    length = (size_t)snprintf(line, sizeof(line), "%s  %s\n", digest, name);
    if (out->sums_size + length >= out->sums_capacity) {
        size_t capacity = 2 * out->sums_capacity + sizeof(line);
        char *sums = realloc(out->sums, capacity);

        if (!sums)
            return err_set(err, -ENOMEM, "out of memory");
        out->sums = sums;
        out->sums_capacity = capacity;
    }
    memcpy(out->sums + out->sums_size, line, length + 1);
    out->sums_size += length;
    out->count++;
    return 0;
}

/* The list of sums is one, too. */
static int one_more(const struct backup_out *out, struct err *err)
{
    return out->count + 1 < BACKUP_MEMBERS
               ? 0
               : err_set(err, -E2BIG,
                         "there are more than %d files, which do not fit into a backup: are "
                         "there so many tokens that have been used?",
                         BACKUP_MEMBERS - 1);
}

int backup_out_add(struct backup_out *out, const char *name, int from, struct err *err)
{
    int64_t size = 0;
    int result = one_more(out, err);

    if (result == 0 && !backup_name_good(name))
        result = err_set(err, -EINVAL,
                         "a file of the name %s does not go into a backup: give it one of at most 64 characters of "
                         "ASCII without '\\'",
                         name);
    if (result == 0)
        result = put_bytes(out, name, from, &size, err);
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
    int result = one_more(out, err);

    if (result == 0)
        result = put_text(out, name, text, err);
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
