/* ini.h - adapter of inih: a table of keys says what a file may contain. */
#ifndef LIB_CONFIG_INI_H
#define LIB_CONFIG_INI_H

#include <stdbool.h>

#include "lib/base/err.h"

struct ini_key {
    const char *section, *name; /* section "host *" is the header "[host NAME]" with subsection NAME; "elmer" is
                                   "[elmer]" with subsection "" */
    /* Check and store the value; 0 or err_set(err, -EINVAL, "...") with what is wrong and what is allowed; file and
     * line are put in front. */
    int (*set)(void *config, const char *subsection, const char *value, struct err *err);
};

struct ini_reading;
/* Called when all lines have been read: checks that need more than one key. */
typedef int (*ini_check)(void *config, struct ini_reading *reading, struct err *err);
/* The error of an ini_check is about this key: its line is put in front. section as in the file, "host NAME" with one
 * space. Does nothing when the key was not given (false) or reading is NULL. */
bool ini_blame(struct ini_reading *reading, const char *section, const char *name);

/* Read path into config, then call check (may be NULL). An unknown section or key: -EINVAL with file, line, the key,
 * the value, and the nearest known key. keys ends with a NULL name. -ENOENT: no such file (text set). Lines over 256
 * KiB, section headers over 48 bytes, control characters, invalid UTF-8, keys given twice: -EINVAL. Indentation means
 * nothing; " ;" begins a comment, as does '#' or ';' at the beginning of a line. After an error config is half filled:
 * throw it away. */
int ini_read(const char *path, const struct ini_key *keys, ini_check check, void *config, struct err *err);

/* Parsers for values, with a sentence on failure. */
int ini_parse_int(const char *value, long min, long max, long *out, struct err *err);
int ini_parse_double(const char *value, double min_open, double max_open, double *out, struct err *err);
int ini_parse_duration_ms(const char *value, long min_ms, long max_ms, long *out,
                          struct err *err);                       /* 500ms 2s 5m 1h 7d; a bare number is seconds */
int ini_parse_bool(const char *value, int *out, struct err *err); /* yes no true false on off 1 0 */

#endif
