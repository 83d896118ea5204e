/* ini_internal.h - the parts of the adapter. */
#ifndef LIB_CONFIG_INI_INTERNAL_H
#define LIB_CONFIG_INI_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/config/ini.h"

struct ini_files {
    char **paths; /* [count] */
    size_t count;
};

/* path itself, and with fragments path.d/NAME.conf in the order of the names (bytes, whatever the language is); not
 * those that begin with a dot. No such directory means none. After an error too, what was found is in files. */
int ini_files_find(const char *path, bool fragments, struct ini_files *files, struct err *err);
void ini_files_free(struct ini_files *files);
/* The sentence for a file or directory that cannot be opened; mode: what it needs, for chmod. Returns -code. */
int ini_unreadable(const char *path, int code, const char *mode, struct err *err);

/* The row of a key below a header as in the file; NULL: there is none, known says whether there is such a section. */
const struct ini_key *ini_find_key(const struct ini_key *keys, const char *header, const char *name,
                                   const char **subsection, bool *known);
/* Sentences for what is not in the table; they return -EINVAL. */
int ini_unknown_section(const struct ini_key *keys, const char *header, struct err *err);
int ini_unknown_key(const struct ini_key *keys, const char *header, const char *name, const char *value,
                    struct err *err);

#endif
