/* ini.c - adapter of inih.
 *
 * inih asks our reader for each line, so the reader counts lines, refuses what inih would cut, misread or only count as
 * an error (long lines, binary bytes, long section headers, lines that are nothing), and takes the indentation away
 * (inih would glue an indented line to the value before). The handler looks the key up in the caller's table. What is
 * wrong goes to report(): the first problem is the error that is returned, and ends the reading unless somebody wants
 * to hear of all of them; then what is refused is as if it were not there. What was given is kept with its place, so
 * that a later file can replace it, and a check of several keys can say where they stand. */
#include "config.h"

#include "lib/config/ini.h"

#include <errno.h>
#include <ini.h>
#include <search.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/config/ini_internal.h"

enum {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    LINE_BYTES = 1024, /* sanitizers make large buffers slow, and no input of a fuzzer is so long */
#else
    LINE_BYTES = 256 * 1024, /* a line may name thousands of hosts */
#endif
    SECTION_BYTES = 48 /* inih cuts longer ones */
};

/* A key that was given, where it counts. */
struct seen {
    struct seen *next; /* in the order of the files */
    const struct ini_key *row;
    const char *file; /* of ini_reading.files */
    char *value;
    int line;
    bool refused;
    size_t subsection; /* where it begins in key, with ']' after it */
    char key[];        /* section and name */
};

struct ini_reading {
    FILE *file;
    const char *path; /* of file */
    char *text;       /* [LINE_BYTES + 1] the line being read */
    const struct ini_key *keys;
    void *config;
    const struct ini_watch *watch;
    void *seen; /* tsearch(3) tree of struct seen */
    struct seen *first, **last;
    struct err *err;
    char unknown[SECTION_BYTES + 1]; /* the section that was reported last */
    int line, result;
};

static bool goes_on(const struct ini_reading *reading)
{
    return reading->result == 0 || (reading->watch && reading->watch->problem);
}

/* Line 0: about the file as a whole. */
static void report(struct ini_reading *reading, const char *file, int line, int code, struct err *why)
{
    if (!goes_on(reading))
        return;
    if (line > 0)
        err_prefix(why, "%s:%d", file, line);
    else
        err_prefix(why, "%s", file);
    if (reading->result == 0)
        reading->result = err_set(reading->err, code, "%s", why->text);
    if (reading->watch && reading->watch->problem)
        reading->watch->problem(why->text, reading->watch->data);
}

/* About the line being read. */
static void report_line(struct ini_reading *reading, int code, struct err *why)
{
    report(reading, reading->path, reading->line, code, why);
}

/* ---- lines ---- */

/* Where inih looks for the end of a word: one of chars, or a comment. */
static char find(const char *text, const char *chars)
{
    bool space = false;

    for (; *text != '\0' && !strchr(chars, *text) && !(space && *text == ';'); text++)
        space = *text == ' ' || *text == '\t';
    return *text;
}

static bool is_nothing(const char *first)
{
    char end;

    if (*first == '[')
        return find(first + 1, "]") != ']';
    end = find(first, "=:");
    return *first != '\0' && *first != '#' && *first != ';' && end != '=' && end != ':';
}

static const char *check_line(const char *text, size_t length)
{
    const char *first = text + strspn(text, " \t");
    const char *end;

    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7F)
            return "the line contains a control character";
    if (!str_valid_utf8(text, length))
        return "the line contains bytes that are not UTF-8";
    if (*first == '[' && (end = strchr(first, ']')) && end - first - 1 > SECTION_BYTES)
        return "the line contains a section header of more than 48 bytes";
    return is_nothing(first) ? "neither [section] nor key = value nor a comment (#)" : NULL;
}

/* The line without its end into reading->text; -1: it has more than limit bytes. */
static ssize_t get_line(struct ini_reading *reading, int c, size_t limit)
{
    size_t length = 0;

    for (; c != EOF && c != '\n'; c = getc(reading->file)) {
        if (length < limit)
            reading->text[length] = (char)c;
        length++;
    }
    if (length > limit)
        return -1;
    if (length > 0 && reading->text[length - 1] == '\r')
        length--;
    reading->text[length] = '\0';
    return (ssize_t)length;
}

/* One line into buffer, without indentation; NULL at the end of the file or after an error. */
static char *read_line(char *buffer, int size, void *stream)
{
    struct ini_reading *reading = stream;
    char *line = reading->text;
    size_t limit = size - 3 < LINE_BYTES ? (size_t)(size - 3) : LINE_BYTES, begin = 0;
    struct err why = ERR_INIT;
    const char *wrong;
    ssize_t length;
    int c;

    if (!goes_on(reading) || (c = getc(reading->file)) == EOF)
        return NULL;
    reading->line++;
    length = get_line(reading, c, limit);
    if (length >= 0 && reading->line == 1 && strncmp(line, "\xEF\xBB\xBF", 3) == 0)
        begin = 3;
    wrong = length < 0 ? "" : check_line(line + begin, (size_t)length - begin);
    if (wrong) {
        if (length < 0)
            (void)err_set(&why, -EINVAL, "the line has more than %zu bytes", limit);
        report_line(reading, err_set(&why, -EINVAL, "%s", wrong), &why);
        line[begin = 0] = '\0';
        if (!goes_on(reading))
            return NULL;
    }
    line += begin;
    (void)snprintf(buffer, (size_t)size, "%s\n", line + strspn(line, " \t"));
    return buffer;
}

/* ---- keys that were given ---- */

static int compare_seen(const void *a, const void *b)
{
    return strcmp(((const struct seen *)a)->key, ((const struct seen *)b)->key);
}

static struct seen *make_seen(const char *section, const char *name)
{
    size_t size = strlen(section) + strlen(name) + 3, word = strcspn(section, " \t");
    struct seen *seen = calloc(1, sizeof(*seen) + size);
    const char *subsection = section + word + strspn(section + word, " \t");

    if (!seen)
        return NULL;
    (void)snprintf(seen->key, size, "%.*s%s%s]%s", (int)word, section, *subsection == '\0' ? "" : " ", subsection,
                   name);
    seen->subsection = *subsection == '\0' ? word : word + 1;
    return seen;
}

static void free_seen(void *seen)
{
    free(((struct seen *)seen)->value);
    free(seen);
}

static struct seen *find_seen(const struct ini_reading *reading, const char *section, const char *name)
{
    struct seen *key = make_seen(section, name);
    struct seen **node = !key ? NULL : tfind(key, &reading->seen, compare_seen);

    free(key);
    return !node ? NULL : *node;
}

static struct seen *add_seen(struct ini_reading *reading, const char *section, const char *name)
{
    struct seen *seen = make_seen(section, name), **node;

    if (!seen || !(node = tsearch(seen, &reading->seen, compare_seen))) {
        free(seen);
        return NULL;
    }
    if (*node != seen)
        free(seen);
    else
        *reading->last = seen, reading->last = &seen->next;
    return *node;
}

/* Returns NULL when this line does not count. */
static struct seen *note_seen(struct ini_reading *reading, const char *section, const struct ini_key *row,
                              const char *value)
{
    struct seen *seen = add_seen(reading, section, row->name);
    char *copy = strdup(value);
    struct err why = ERR_INIT;
    int result = !seen || !copy ? err_set(&why, -ENOMEM, "out of memory") : 0;

    if (result == 0 && seen->file == reading->path)
        result = err_set(&why, -EINVAL, "%s is given twice in [%s]: first in line %d; remove one of them", row->name,
                         section, seen->line);
    if (result != 0) {
        free(copy);
        report_line(reading, result, &why);
        return NULL;
    }
    free(seen->value);
    seen->row = row;
    seen->file = reading->path;
    seen->line = reading->line;
    seen->value = copy;
    seen->refused = false;
    return seen;
}

bool ini_given(const struct ini_reading *reading, const char *section, const char *name)
{
    return find_seen(reading, section, name) != NULL;
}

bool ini_refused(const struct ini_reading *reading, const char *section, const char *name)
{
    const struct seen *seen = find_seen(reading, section, name);

    return seen && seen->refused;
}

void ini_problem(struct ini_reading *reading, const char *section, const char *name, const char *format, ...)
{
    const struct seen *seen = find_seen(reading, section, name);
    struct err why = ERR_INIT;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why.text, sizeof(why.text), format, args);
    va_end(args);
    report(reading, seen ? seen->file : reading->path, seen ? seen->line : 0, -EINVAL, &why);
}

/* ---- what a line says ---- */

static void leave_out(const struct ini_reading *reading, const struct ini_key *key, const char *value, struct err *why)
{
    err_prefix(why, "%s:%d: %s = %.200s", reading->path, reading->line, key->name, value);
    if (goes_on(reading) && reading->watch && reading->watch->fault)
        reading->watch->fault(why->text, reading->watch->data);
}

static void set(struct ini_reading *reading, const struct ini_key *key, const char *section, const char *subsection,
                const char *value)
{
    struct seen *seen = note_seen(reading, section, key, value);
    struct err why = ERR_INIT;
    int result = !seen ? 0 : key->set(reading->config, subsection, value, &why);

    if (result == 0)
        return;
    seen->refused = true;
    if (result == INI_LEFT_OUT) {
        leave_out(reading, key, value, &why);
        return;
    }
    if (why.text[0] == '\0')
        (void)err_set(&why, result, "not a value that is allowed here");
    err_prefix(&why, "%s = %.200s", key->name, value);
    report_line(reading, result, &why);
}

/* Each unknown section is reported once. */
static void refuse(struct ini_reading *reading, bool known, const char *section, const char *name, const char *value)
{
    struct err why = ERR_INIT;

    if (!known && *section != '\0' && strcmp(section, reading->unknown) == 0)
        return;
    if (!known)
        (void)snprintf(reading->unknown, sizeof(reading->unknown), "%s", section);
    report_line(reading,
                known ? ini_unknown_key(reading->keys, section, name, value, &why)
                      : ini_unknown_section(reading->keys, section, &why),
                &why);
}

/* Returns inih's word for success: what is wrong has been reported. */
static int handle(void *user, const char *section, const char *name, const char *value)
{
    struct ini_reading *reading = user;
    const char *subsection;
    bool known;
    const struct ini_key *key = ini_find_key(reading->keys, section, name, &subsection, &known);

    if (goes_on(reading) && key)
        set(reading, key, section, subsection, value);
    else if (goes_on(reading))
        refuse(reading, known, section, name, value);
    return 1;
}

/* ---- files ---- */

/* Debian's inih is tuned at run time; elsewhere the limits are those it was built with, which read_line respects. */
static void tune_inih(void)
{
#if defined(HAVE_DECL_INI_MAX_LINE) && HAVE_DECL_INI_MAX_LINE
    ini_max_line = LINE_BYTES + 3;
    ini_initial_alloc = LINE_BYTES + 3;
    ini_use_stack = false;
#endif
}

static void read_stream(struct ini_reading *reading)
{
    struct err why = ERR_INIT;
    int syntax;

    reading->line = 0;
    reading->unknown[0] = '\0';
    syntax = ini_parse_stream(read_line, reading, handle, reading);
    if (ferror(reading->file))
        report(reading, reading->path, 0, err_set(&why, -EIO, "cannot be read"), &why);
    else if (syntax > 0) /* we know more of lines than inih, so this does not happen */
        report(reading, reading->path, syntax, err_set(&why, -EINVAL, "it cannot be read"), &why);
    else if (syntax < 0)
        report(reading, reading->path, 0, err_set(&why, -ENOMEM, "out of memory"), &why);
}

/* Returns 0, or -ENOENT, which is reported by the caller. */
static int read_file(struct ini_reading *reading, const char *path)
{
    struct err why = ERR_INIT;

    reading->path = path;
    reading->file = fopen(path, "re");
    if (!reading->file && errno == ENOENT)
        return -ENOENT;
    if (!reading->file) {
        report(reading, path, 0, ini_unreadable(path, errno, "644", &why), &why);
        return 0;
    }
    read_stream(reading);
    (void)fclose(reading->file);
    return 0;
}

static void read_files(struct ini_reading *reading, const struct ini_files *files, bool required)
{
    for (size_t i = 0; i < files->count && goes_on(reading); i++) {
        struct err why = ERR_INIT;
        int result = read_file(reading, files->paths[i]);

        if (result != 0 && (required || i > 0))
            report(reading, files->paths[i], 0, err_set(&why, result, "%s", strerror(-result)), &why);
    }
}

static void tell_given(const struct ini_reading *reading)
{
    for (struct seen *seen = reading->first; seen; seen = seen->next) {
        char *end = strchr(seen->key + seen->subsection, ']');

        *end = '\0';
        reading->watch->given(&(struct ini_value){seen->row, seen->key + seen->subsection, seen->value, seen->file,
                                                  seen->line, seen->refused},
                              reading->watch->data);
        *end = ']';
    }
}

static int read_all(const char *path, bool fragments, bool required, struct ini_reading *reading, ini_check check)
{
    struct ini_files files;
    struct err why = ERR_INIT;
    int result = ini_files_find(path, fragments, &files, &why);

    reading->last = &reading->first;
    reading->text = malloc(LINE_BYTES + 1);
    if (result == 0 && !reading->text)
        result = err_set(&why, -ENOMEM, "out of memory");
    if (result != 0)
        report(reading, path, 0, result, &why);
    tune_inih();
    if (reading->text)
        read_files(reading, &files, required);
    reading->path = path;
    if (check && goes_on(reading))
        check(reading->config, reading);
    if (reading->watch && reading->watch->given)
        tell_given(reading);
    free(reading->text);
    tdestroy(reading->seen, free_seen);
    ini_files_free(&files);
    return reading->result;
}

int ini_read(const char *path, const struct ini_key *keys, ini_check check, void *config, struct err *err)
{
    struct ini_reading reading = {.keys = keys, .config = config, .err = err};

    err_clear(err);
    return read_all(path, false, true, &reading, check);
}

int ini_read_all(const char *path, bool required, const struct ini_key *keys, ini_check check, void *config,
                 const struct ini_watch *watch, struct err *err)
{
    struct ini_reading reading = {.keys = keys, .config = config, .watch = watch, .err = err};

    err_clear(err);
    return read_all(path, true, required, &reading, check);
}
