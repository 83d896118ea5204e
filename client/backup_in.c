/* backup_in.c - reading a backup: see backup_file.h. It is judged as if a stranger had written it, because root writes
 * what is in it to places that its names decide. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/backup_tar.h"
#include "lib/base/str.h"
#include "lib/pki/digest.h"

enum { ABOUT_MAX = 8192, SUMS_MAX = BACKUP_MEMBERS * 200, PART_MAX = 64 };

/* ---- names ---- */

static bool is_word(const char *word)
{
    size_t length = strlen(word);

    return length > 0 && length <= PART_MAX && word[0] != '.' &&
           strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == length;
}

/* As elmer reads them, but for what an administrator cannot see, and what sha256sum(1) writes in another way. */
static bool is_fragment(const char *name)
{
    size_t length = strlen(name);

    for (const char *at = name; *at; at++)
        if (*at < ' ' || *at > '~' || *at == '/' || *at == '\\')
            return false;
    return length <= PART_MAX && name[0] != '.' && length > 5 && strcmp(name + length - 5, ".conf") == 0;
}

bool backup_name_good(const char *name)
{
    static const char *const whole[] = {BACKUP_ABOUT,       BACKUP_STORE,   BACKUP_SUMS,      "ca/ca.key",  "ca/ca.crt",
                                        "ca/elmer.counter", "ca/elmer.crt", "etc/elmer.conf", "etc/ca.conf"};

    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        if (strcmp(name, whole[i]) == 0)
            return true;
    if (strncmp(name, "ca/used/", 8) == 0)
        return is_word(name + 8);
    return strncmp(name, "etc/elmer.conf.d/", 17) == 0 && is_fragment(name + 17);
}

/* ---- headers ---- */

static unsigned sum_of(const struct tar_header *header)
{
    struct tar_header copy = *header;
    const unsigned char *bytes = (const unsigned char *)&copy;
    unsigned sum = 0;

    memset(copy.checksum, ' ', sizeof(copy.checksum));
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += bytes[i];
    return sum;
}

/* n digits and no NUL, as fields of tar may be. */
static void put_octal(char *to, int digits, uint64_t value)
{
    for (int i = digits - 1; i >= 0; i--, value >>= 3)
        to[i] = (char)('0' + (value & 7));
}

static bool get_octal(const char *from, int digits, int64_t *value)
{
    *value = 0;
    for (int i = 0; i < digits; i++) {
        if (from[i] < '0' || from[i] > '7')
            return false;
        *value = *value * 8 + (from[i] - '0');
    }
    return true;
}

void tar_header_make(struct tar_header *header, const char *path, int64_t size, int64_t mtime_s)
{
    *header =
        (struct tar_header){.type = '0', .magic = "ustar", .version = {'0', '0'}, .user = "root", .group = "root"};
    memcpy(header->name, path, strnlen(path, sizeof(header->name)));
    put_octal(header->mode, 7, 0600);
    put_octal(header->uid, 7, 0);
    put_octal(header->gid, 7, 0);
    put_octal(header->size, 11, (uint64_t)size);
    put_octal(header->mtime, 11, (uint64_t)(mtime_s > 0 ? mtime_s : 0));
    put_octal(header->checksum, 6, sum_of(header));
}

bool tar_header_read(const struct tar_header *header, char name[BACKUP_NAME_SIZE], int64_t *size)
{
    int64_t sum;
    size_t prefix = strlen(TAR_PREFIX);

    if (memcmp(header->magic, "ustar", 5) != 0 || header->type != '0' || !get_octal(header->checksum, 6, &sum) ||
        sum != (int64_t)sum_of(header) || !get_octal(header->size, 11, size) ||
        strncmp(header->name, TAR_PREFIX, prefix) != 0)
        return false;
    snprintf(name, BACKUP_NAME_SIZE, "%.*s", (int)(sizeof(header->name) - prefix), header->name + prefix);
    return backup_name_good(name);
}

/* ---- members ---- */

static int get(const struct backup_in *in, void *bytes, size_t size, int64_t at, struct err *err)
{
    char *to = bytes;

    while (size > 0) {
        ssize_t n = pread(in->fd, to, size, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? err_set(err, -errno, "cannot be read: %s", strerror(errno))
                         : err_set(err, -EINVAL, "it is not whole");
        to += n;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

const struct backup_member *backup_in_find(const struct backup_in *in, const char *name)
{
    for (size_t i = 0; i < in->count; i++)
        if (strcmp(in->members[i].name, name) == 0)
            return &in->members[i];
    return NULL;
}

static int add_member(struct backup_in *in, const struct backup_member *member, struct err *err)
{
    if (in->count == BACKUP_MEMBERS)
        return err_set(err, -EINVAL, "it has too many files");
    if ((in->count & (in->count - 1)) == 0) { /* there is room for the next power of two */
        struct backup_member *more = reallocarray(in->members, in->count > 0 ? 2 * in->count : 1, sizeof(*more));

        if (!more)
            return err_set(err, -ENOMEM, "out of memory");
        in->members = more;
    }
    in->members[in->count++] = *member;
    return 0;
}

/* Up to the list of sums, which is the last. */
static int read_members(struct backup_in *in, int64_t bytes, struct err *err)
{
    struct backup_member member = {.at = TAR_BLOCK};
    struct tar_header header;
    int result;

    do {
        result = get(in, &header, TAR_BLOCK, member.at - TAR_BLOCK, err);
        if (result == 0 && !tar_header_read(&header, member.name, &member.size))
            result = err_set(err, -EINVAL, "it is no backup of eadmin, or damaged");
        if (result == 0 && member.at + member.size > bytes)
            result = err_set(err, -EINVAL, "it is not whole");
        if (result == 0)
            result = add_member(in, &member, err);
        member.at += tar_room(member.size);
    } while (result == 0 && strcmp(member.name, BACKUP_SUMS) != 0);
    return result;
}

int backup_in_text(const struct backup_in *in, const struct backup_member *member, size_t max, char **text,
                   struct err *err)
{
    size_t size = (size_t)member->size;
    int result;

    *text = (uint64_t)member->size <= max ? malloc(size + 1) : NULL;
    if (!*text)
        return err_set(err, -EFBIG, "%s is too long", member->name);
    (*text)[size] = '\0';
    result = get(in, *text, size, member->at, err);
    if (result == 0 && strlen(*text) != size)
        result = err_set(err, -EINVAL, "%s is damaged", member->name);
    if (result < 0) {
        free(*text);
        *text = NULL;
    }
    return result;
}

int backup_in_copy(const struct backup_in *in, const struct backup_member *member, int to, struct err *err)
{
    static char bytes[1 << 16];
    int64_t done = 0;

    while (done < member->size) {
        int64_t left = member->size - done;
        size_t size = left < (int64_t)sizeof(bytes) ? (size_t)left : sizeof(bytes);
        int result = get(in, bytes, size, member->at + done, err);

        if (result < 0)
            return result;
        for (size_t sent = 0; sent < size;) {
            ssize_t n = write(to, bytes + sent, size - sent);

            if (n < 0 && errno != EINTR)
                return err_set(err, -errno, "%s cannot be passed on: %s", member->name, strerror(errno));
            sent += n > 0 ? (size_t)n : 0;
        }
        done += (int64_t)size;
    }
    return 0;
}

/* ---- what it says ---- */

/* The list has a line for each of the others, in their order. */
static int check_sums(const struct backup_in *in, struct err *err)
{
    char *sums = NULL, *at, digest[PKI_DIGEST_SIZE], line[PKI_DIGEST_SIZE + BACKUP_NAME_SIZE + 4];
    int result = backup_in_text(in, &in->members[in->count - 1], SUMS_MAX, &sums, err);

    at = sums;
    for (size_t i = 0; result == 0 && i + 1 < in->count; i++) {
        const struct backup_member *member = &in->members[i];

        result = pki_digest_part(in->fd, member->at, member->size, digest, err);
        snprintf(line, sizeof(line), "%s  %s\n", digest, member->name);
        if (result == 0 && strncmp(at, line, strlen(line)) != 0)
            result = err_set(err, -EINVAL, "%s in it is damaged", member->name);
        at += result == 0 ? strlen(line) : 0;
    }
    free(sums);
    return result;
}

/* Lines "WORD VALUE"; an unknown one is of a later eadmin, and means nothing here. */
static void read_line(struct backup_in *in, const char *line)
{
    uint64_t ms;

    if (strncmp(line, "host ", 5) == 0)
        snprintf(in->host, sizeof(in->host), "%s", line + 5);
    else if (strncmp(line, "store ", 6) == 0)
        snprintf(in->store, sizeof(in->store), "%s", line + 6);
    else if (strncmp(line, "made_ms ", 8) == 0 && str_to_u64(line + 8, &ms) && ms < INT64_MAX)
        in->made_ms = (int64_t)ms;
}

static int read_about(struct backup_in *in, struct err *err)
{
    static const char *const needed[] = {BACKUP_ABOUT, BACKUP_STORE, "ca/ca.key", "ca/ca.crt"};
    char *text, *rest, *line;
    int result;

    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        if (!backup_in_find(in, needed[i]))
            return err_set(err, -EINVAL, "it has no %s", needed[i]);
    result = backup_in_text(in, backup_in_find(in, BACKUP_ABOUT), ABOUT_MAX, &text, err);
    if (result < 0)
        return result;
    rest = text;
    line = strsep(&rest, "\n");
    if (strcmp(line, "elmer backup 1") != 0)
        result = err_set(err, -EPROTO, "it is of a newer elmer: restore it with that");
    while (result == 0 && (line = strsep(&rest, "\n")))
        read_line(in, line);
    if (result == 0 && (!str_valid_hostname(in->host) || in->store[0] != '/' || in->made_ms == 0))
        result = err_set(err, -EINVAL, "what it says of itself cannot be understood");
    free(text);
    return result;
}

int backup_in_open(struct backup_in *in, const char *path, struct err *err)
{
    struct stat st;
    int result = 0;

    *in = (struct backup_in){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (in->fd < 0 || fstat(in->fd, &st) < 0)
        result = err_set(err, -errno, "cannot be opened: %s", strerror(errno));
    else if (!S_ISREG(st.st_mode))
        result = err_set(err, -EINVAL, "it is no file");
    if (result == 0)
        result = read_members(in, st.st_size, err);
    if (result == 0)
        result = check_sums(in, err);
    if (result == 0)
        result = read_about(in, err);
    if (result < 0) {
        err_prefix(err, "the backup %s cannot be used", path);
        backup_in_close(in);
    }
    return result;
}

void backup_in_close(struct backup_in *in)
{
    if (in->fd >= 0)
        close(in->fd);
    free(in->members);
    *in = (struct backup_in){.fd = -1};
}
