/* ini.h - adapter of inih: a table of keys says what a file may contain, and what holds where it says nothing. */
#ifndef LIB_CONFIG_INI_H
#define LIB_CONFIG_INI_H

#include <stdbool.h>

#include "lib/base/err.h"

struct ini_key {
    const char *section, *name; /* section "host *" is the header "[host NAME]" with subsection NAME; "elmer" is
                                   "[elmer]" with subsection "" */
    /* Check and store the value, in place of one that was stored before; 0 or err_set(err, -EINVAL, "...") with what is
     * wrong and what is allowed; file and line are put in front. INI_LEFT_OUT, with such a sentence: it is wrong, but
     * releases before took it, so the reading goes on as if the key were not given. */
    int (*set)(void *config, const char *subsection, const char *value, struct err *err);
    /* The default as it would stand in the file, or with INI_WORDS words for it; its manual page says the same. NULL: a
     * key of before, which is refused. */
    const char *normal;
    unsigned flags;
    char *(*made)(const void *config); /* with INI_MADE: what the default is in this configuration, malloc'd; or NULL */
};
enum { INI_LEFT_OUT = 1 };
enum {
    INI_BUILT = 1,   /* the default was chosen when Elmer was built */
    INI_MADE = 2,    /* it is not given to set(): it follows from other keys, or from the host */
    INI_WORDS = 16,  /* of one with INI_MADE: the text is no value */
    INI_PROGRAM = 4, /* the path of a program, which must be there */
    INI_HELPER = 8,  /* the same, of one that may be missing if no file names it */
    INI_LIVE =
        32, /* a reload gives it to set() while the daemon runs; of any other key it says that it needs a restart */
    INI_LIVE_ELSEWHERE = 64 /* it counts after a reload, too, and who reads it takes it over by himself */
};

/* The last row. */
#define INI_END                                                                                                        \
    {                                                                                                                  \
        NULL, NULL, NULL, NULL, 0, NULL                                                                                \
    }

/* Give all defaults to their set(). Negative with a sentence if one is refused. */
int ini_defaults(const struct ini_key *keys, void *config, struct err *err);

struct ini_reading;
/* Called when all lines have been read: checks that need more than one key. They report what they find with
 * ini_problem(). */
typedef void (*ini_check)(void *config, struct ini_reading *reading);
bool ini_given(const struct ini_reading *reading, const char *section, const char *name);
/* Its value was refused: what a check would say of the default instead helps nobody. */
bool ini_refused(const struct ini_reading *reading, const char *section, const char *name);
/* About this key: its file and line are put in front if it was given. section as in the file, "host NAME" with one
 * space. */
void ini_problem(struct ini_reading *reading, const char *section, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

struct ini_value { /* of one key, as a file gives it; the last file counts */
    const struct ini_key *key;
    const char *subsection, *value, *file;
    int line;
    bool refused; /* or left out */
};

/* Who wants to hear of more than the first problem. Members may be NULL. */
struct ini_watch {
    void (*problem)(const char *text, void *data); /* of each one; the rest of the files is read nevertheless */
    void (*fault)(const char *text, void *data);   /* of each value that is left out, which is no problem */
    void (*given)(const struct ini_value *value, void *data); /* of each key in the files, at the end */
    void *data;
};

/* Read path into config, then call check (may be NULL). An unknown section or key: -EINVAL with file, line, the key,
 * the value, and the nearest known key. keys ends with a NULL name. -ENOENT: no such file (text set). Lines over 256
 * KiB, section headers over 48 bytes, control characters, invalid UTF-8, keys given twice: -EINVAL. Indentation means
 * nothing; " ;" begins a comment, as does '#' or ';' at the beginning of a line. After an error config is half filled:
 * for what was refused the default is there, or what an earlier file gave. */
int ini_read(const char *path, const struct ini_key *keys, ini_check check, void *config, struct err *err);

/* The same with the fragments path.d/NAME.conf after it, in the order of their names; a key of a later file replaces
 * that of an earlier one. required: path must be there. watch may be NULL. */
int ini_read_all(const char *path, bool required, const struct ini_key *keys, ini_check check, void *config,
                 const struct ini_watch *watch, struct err *err);

/* Parsers for values, with a sentence on failure. */
int ini_parse_int(const char *value, long min, long max, long *out, struct err *err);
int ini_parse_double(const char *value, double min_open, double max_open, double *out, struct err *err);
int ini_parse_duration_ms(const char *value, long min_ms, long max_ms, long *out,
                          struct err *err);                       /* 500ms 2s 5m 1h 7d; a bare number is seconds */
int ini_parse_bool(const char *value, int *out, struct err *err); /* yes no true false on off 1 0 */

#endif
