/* ini.c - adapter of inih.
 *
 * inih asks our reader for each line, so the reader counts lines, refuses what inih would cut or misread (long lines,
 * binary bytes, long section headers), and takes the indentation away (inih would glue an indented line to the value
 * before). The handler looks the key up in the caller's table. After the first error the reader reports the end of the
 * file; the first error is returned. inih reports its own syntax errors only at the end: the one with the lower line
 * number wins. */
#include "config.h"

#include "lib/config/ini.h"

#include <errno.h>
#include <ini.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

enum {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    LINE_BYTES = 1024, /* sanitizers make large buffers slow, and no input of a fuzzer is so long */
#else
    LINE_BYTES = 256 * 1024, /* a line may name thousands of hosts */
#endif
    SECTION_BYTES = 48 /* inih cuts longer ones */
};

struct seen {
    int line;
    char key[]; /* section and name */
};

struct ini_reading {
    FILE *file;
    char *text; /* [LINE_BYTES + 1] the line being read */
    const struct ini_key *keys;
    void *config;
    void *seen; /* tsearch(3) tree of struct seen */
    struct err *err;
    int line, code;
};

static int fail(struct ini_reading *reading, int code)
{
    if (reading->code == 0)
        reading->code = code;
    return 0; /* inih's word for an error */
}

static const char *check_line(char *text, size_t length)
{
    const char *first = text + strspn(text, " \t");
    const char *end;

    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7F)
            return "a control character";
    if (!str_valid_utf8(text, length))
        return "bytes that are not UTF-8";
    if (*first == '[' && (end = strchr(first, ']')) != NULL && end - first - 1 > SECTION_BYTES)
        return "a section header of more than 48 bytes";
    return NULL;
}

/* One line into buffer, without indentation; NULL at the end of the file or after an error. */
static char *read_line(char *buffer, int size, void *stream)
{
    struct ini_reading *reading = stream;
    char *line = reading->text;
    size_t length = 0, limit = size - 3 < LINE_BYTES ? (size_t)(size - 3) : LINE_BYTES, indent;
    const char *wrong;
    int c;

    if (reading->code != 0 || (c = getc(reading->file)) == EOF)
        return NULL;
    reading->line++;
    for (; c != EOF && c != '\n'; c = getc(reading->file)) {
        if (length >= limit) {
            (void)fail(reading, err_set(reading->err, -EINVAL, "the line has more than %zu bytes", limit));
            return NULL;
        }
        line[length++] = (char)c;
    }
    if (length > 0 && line[length - 1] == '\r')
        length--;
    line[length] = '\0';
    if ((wrong = check_line(line, length)) != NULL) {
        (void)fail(reading, err_set(reading->err, -EINVAL, "the line contains %s", wrong));
        return NULL;
    }
    indent = strspn(line, " \t");
    if (reading->line == 1 && strncmp(line, "\xEF\xBB\xBF", 3) == 0)
        indent = 3;
    (void)snprintf(buffer, (size_t)size, "%s\n", line + indent);
    return buffer;
}

static int compare_seen(const void *a, const void *b)
{
    return strcmp(((const struct seen *)a)->key, ((const struct seen *)b)->key);
}

static struct seen *make_seen(const char *section, const char *name)
{
    size_t size = strlen(section) + strlen(name) + 3, word = strcspn(section, " \t");
    struct seen *seen = malloc(sizeof *seen + size);
    const char *subsection = section + word + strspn(section + word, " \t");

    if (seen != NULL)
        (void)snprintf(seen->key, size, "%.*s%s%s]%s", (int)word, section, *subsection == '\0' ? "" : " ", subsection,
                       name);
    return seen;
}

static int note_seen(struct ini_reading *reading, const char *section, const char *name)
{
    struct seen *seen = make_seen(section, name);
    struct seen **node;

    if (seen == NULL)
        return err_set(reading->err, -ENOMEM, "out of memory");
    seen->line = reading->line;
    node = tsearch(seen, &reading->seen, compare_seen);
    if (node == NULL || *node != seen) {
        int line = node == NULL ? 0 : (*node)->line;

        free(seen);
        if (node == NULL)
            return err_set(reading->err, -ENOMEM, "out of memory");
        return err_set(reading->err, -EINVAL, "%s is given twice in [%s]: first in line %d; remove one of them", name,
                       section, line);
    }
    return 0;
}

bool ini_blame(struct ini_reading *reading, const char *section, const char *name)
{
    struct seen *key = reading == NULL ? NULL : make_seen(section, name);
    struct seen **node = key == NULL ? NULL : tfind(key, &reading->seen, compare_seen);

    if (node != NULL)
        reading->line = (*node)->line;
    free(key);
    return node != NULL;
}

/* Does the header match a table's section ("elmer", or "host *" for "[host NAME]")? */
static bool match_section(const char *known, const char *header, const char **subsection)
{
    size_t word = strcspn(known, " ");
    const char *rest = header + strcspn(header, " \t");

    if ((size_t)(rest - header) != word || strncmp(known, header, word) != 0)
        return false;
    *subsection = rest + strspn(rest, " \t");
    return (known[word] != '\0') == (**subsection != '\0');
}

static int unknown_section(struct ini_reading *reading, const char *header)
{
    size_t best = SIZE_MAX;
    const char *nearest = "";

    for (const struct ini_key *key = reading->keys; key->name != NULL; key++) {
        size_t distance = str_distance(header, key->section);

        if (distance < best) {
            best = distance;
            nearest = key->section;
        }
    }
    if (*header == '\0')
        return err_set(reading->err, -EINVAL, "a key before the first section header; begin with [%s]", nearest);
    return err_set(reading->err, -EINVAL, "unknown section [%s]; the nearest known one is [%s]", header, nearest);
}

static int unknown_key(struct ini_reading *reading, const char *header, const char *name, const char *value)
{
    size_t best = SIZE_MAX;
    const char *nearest = "", *subsection;

    for (const struct ini_key *key = reading->keys; key->name != NULL; key++) {
        size_t distance = str_distance(name, key->name);

        if (match_section(key->section, header, &subsection) && distance < best) {
            best = distance;
            nearest = key->name;
        }
    }
    return err_set(reading->err, -EINVAL, "unknown key %.100s (value %.100s) in [%s]; the nearest known key is %s",
                   name, value, header, nearest);
}

static int handle(void *user, const char *section, const char *name, const char *value)
{
    struct ini_reading *reading = user;
    const char *subsection;
    bool known = false;
    int code;

    if (reading->code != 0)
        return 0;
    for (const struct ini_key *key = reading->keys; key->name != NULL; key++) {
        if (!match_section(key->section, section, &subsection))
            continue;
        known = true;
        if (strcmp(key->name, name) != 0)
            continue;
        if ((code = note_seen(reading, section, name)) < 0)
            return fail(reading, code);
        code = key->set(reading->config, subsection, value, reading->err);
        if (code == 0)
            return 1;
        if (reading->err != NULL && reading->err->text[0] == '\0')
            (void)err_set(reading->err, code, "not a value that is allowed here");
        err_prefix(reading->err, "%s = %.200s", name, value);
        return fail(reading, code);
    }
    return fail(reading, known ? unknown_key(reading, section, name, value) : unknown_section(reading, section));
}

/* Debian's inih is tuned at run time; elsewhere the limits are those it was built with, which read_line respects. */
static void tune_inih(void)
{
#if defined(HAVE_DECL_INI_MAX_LINE) && HAVE_DECL_INI_MAX_LINE
    ini_max_line = LINE_BYTES + 3;
    ini_initial_alloc = LINE_BYTES + 3;
    ini_use_stack = false;
#endif
}

static int open_file(struct ini_reading *reading, const char *path)
{
    int code = 0;

    reading->text = malloc(LINE_BYTES + 1);
    if (reading->text == NULL)
        return err_set(reading->err, -ENOMEM, "%s: out of memory", path);
    reading->file = fopen(path, "re");
    if (reading->file == NULL) {
        code = -errno;
        (void)err_set(reading->err, code, "%s: %s", path, strerror(-code));
        free(reading->text);
    }
    return code;
}

static void read_all(struct ini_reading *reading)
{
    int syntax = ini_parse_stream(read_line, reading, handle, reading);

    if (reading->code == 0 && ferror(reading->file))
        reading->code = err_set(reading->err, -EIO, "cannot be read");
    if (syntax > 0 && (reading->code == 0 || syntax < reading->line)) {
        err_clear(reading->err);
        reading->line = syntax;
        reading->code = err_set(reading->err, -EINVAL, "neither [section] nor key = value nor a comment (#)");
    } else if (syntax < 0 && reading->code == 0) {
        reading->code = err_set(reading->err, -ENOMEM, "out of memory");
    }
}

int ini_read(const char *path, const struct ini_key *keys, ini_check check, void *config, struct err *err)
{
    struct ini_reading reading = {.keys = keys, .config = config, .err = err};
    int code;

    err_clear(err);
    code = open_file(&reading, path);
    if (code != 0)
        return code;
    tune_inih();
    read_all(&reading);
    if (reading.code == 0 && check != NULL) {
        reading.line = 0;
        reading.code = check(config, &reading, err);
    }
    if (reading.code != 0 && reading.line > 0)
        err_prefix(err, "%s:%d", path, reading.line);
    else if (reading.code != 0)
        err_prefix(err, "%s", path);
    (void)fclose(reading.file);
    free(reading.text);
    tdestroy(reading.seen, free);
    return reading.code;
}
