/* prompt.h - a secret from the standard input. */
#ifndef RSD_ADMIN_PROMPT_H
#define RSD_ADMIN_PROMPT_H

#include <stddef.h>

#include "lib/base/err.h"

/* A line of the standard input, to the first blank that follows a word. A terminal is asked, with prompt on stderr, and
 * does not show what is typed; a signal that ends us there leaves it as it was. 0 or negative. */
int prompt_secret(const char *prompt, char *line, size_t size, struct err *err);

#endif
