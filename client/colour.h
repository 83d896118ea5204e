/* colour.h - colours that mean something, where somebody sees them. */
#ifndef CLIENT_COLOUR_H
#define CLIENT_COLOUR_H

#include <stdbool.h>

#include "libelmer/elmer.h"

/* Standard output is a terminal that knows them, and NO_COLOR does not say otherwise. */
bool colour_wanted(void);
/* What stands between "\033[" and "m"; NULL: no colour. Green runs, yellow begins or ends, faint is held, red has
 * failed. */
const char *colour_of(const struct elmer_job *job);

#endif
