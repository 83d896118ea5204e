#include "config.h"

#include "lib/base/journal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/log.h"

enum { FIELDS_MAX = 16, VALUE_MAX = 255, WORDS_MIN = 6 };

int journal_open(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, result = 0;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        result = -errno;
    if (result < 0)
        (void)close(fd);
    return result < 0 ? result : fd;
}

/* ---- which message ---- */

struct hash {
    uint64_t a, b; /* FNV-1a with two offsets */
    size_t words;  /* letters of the format's own */
};

static void add(struct hash *hash, char c)
{
    hash->a = (hash->a ^ (unsigned char)c) * 0x100000001b3u;
    hash->b = (hash->b ^ (unsigned char)c) * 0x100000001b3u;
}

/* The end of the conversion that begins at the %. */
static const char *skip_conversion(const char *at)
{
    at += 1 + strspn(at + 1, "-+ 0#");
    at += strspn(at, "0123456789.*");
    at += strspn(at, "hlzjt");
    return *at ? at + 1 : at;
}

void journal_id(const char *format, char id[JOURNAL_ID_SIZE])
{
    struct hash hash = {.a = 0xcbf29ce484222325u, .b = 0x6c62272e07bb0142u};

    for (const char *at = format; *at;) {
        if (at[0] == '%' && at[1] != '%') {
            add(&hash, '<');
            add(&hash, '>');
            at = skip_conversion(at);
            continue;
        }
        hash.words += isalpha((unsigned char)*at) != 0;
        add(&hash, *at);
        at += at[0] == '%' ? 2 : 1;
    }
    id[0] = '\0';
    if (hash.words >= WORDS_MIN)
        (void)snprintf(id, JOURNAL_ID_SIZE, "%016" PRIx64 "%016" PRIx64, hash.a, hash.b);
}

/* ---- fields ---- */

struct record {
    char *bytes;
    size_t size;
    unsigned fields;
};

static void put(struct record *record, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The whole of it, or nothing. */
static void put(struct record *record, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(record->bytes + record->size, JOURNAL_RECORD_MAX - record->size, format, args);
    va_end(args);
    if (length > 0 && (size_t)length < JOURNAL_RECORD_MAX - record->size)
        record->size += (size_t)length;
}

static void put_field(struct record *record, const char *name, const char *value, size_t length)
{
    if (length == 0 || length > VALUE_MAX || record->fields >= FIELDS_MAX)
        return;
    record->fields++;
    put(record, "%s=%.*s\n", name, (int)length, value);
}

/* A word like host=ws1, or hosts=ws1,ws2+3. */
static void put_word(struct record *record, const char *word, size_t length)
{
    static const char *const keys[][2] = {
        {"job=", "ELMER_JOB"}, {"host=", "ELMER_HOST"}, {"hosts=", "ELMER_HOST"}, {"user=", "ELMER_USER"}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        size_t key = strlen(keys[i][0]);

        if (length <= key || strncmp(word, keys[i][0], key) != 0)
            continue;
        for (const char *at = word + key, *end = word + length; at < end && *at != '+';) {
            size_t one = strcspn(at, ",+ ");

            one = one < (size_t)(end - at) ? one : (size_t)(end - at);
            put_field(record, keys[i][1], at, one);
            at += one + (at + one < end && at[one] == ',' ? 1 : 0);
        }
    }
}

static void put_words(struct record *record, const char *text)
{
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " ");

        if (strcspn(at, ":\"(") < length)
            return;
        put_word(record, at, length);
        at += length + strspn(at + length, " ");
    }
}

size_t journal_record(const char *program, int priority, const char *format, const char *text,
                      char bytes[JOURNAL_RECORD_MAX])
{
    struct record record = {.bytes = bytes};
    char id[JOURNAL_ID_SIZE] = "";

    put(&record, "PRIORITY=%d\nSYSLOG_IDENTIFIER=%s\nSYSLOG_FACILITY=3\n", priority, program);
    if (priority <= LOG_LEVEL_WARNING)
        journal_id(format, id);
    if (id[0])
        put(&record, "MESSAGE_ID=%s\n", id);
    put_words(&record, text);
    put(&record, "MESSAGE=%s\n", text);
    return record.size;
}

bool journal_send(int fd, const char *record, size_t size)
{
    return send(fd, record, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}
