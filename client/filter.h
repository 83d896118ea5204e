/* filter.h - which jobs equery shows. */
#ifndef CLIENT_FILTER_H
#define CLIENT_FILTER_H

#include <stdbool.h>

#include "libelmer/elmer.h"

struct filter { /* NULL: any */
    const char *user, *name, *states, *hosts;
};

bool filter_set(const struct filter *filter); /* has it anything but the user? */
/* false: said what is wrong. ended, unended: whether jobs that have ended, and those that have not, can be shown. */
bool filter_check(const struct filter *filter, bool ended, bool unended);
/* filter: struct filter. */
bool filter_keeps(const struct elmer_job *job, void *filter);
/* Whether one of the words between commas is it, or as a pattern matches it. */
bool filter_in_list(const char *list, const char *word);
/* Who asks; NULL: said that he has no name. */
const char *filter_me(void);

#endif
