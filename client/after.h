/* after.h - the options --after and --if-never of esubmit. */
#ifndef CLIENT_AFTER_H
#define CLIENT_AFTER_H

#include <stdbool.h>

struct elmer;
/* Jobs to wait for; may be given several times. All zero at first. */
struct after_option {
    char **items; /* ends with NULL */
    int count;
    bool tasks; /* some are tasks of arrays, and not yet replaced by their ids */
};
/* false: it has said what is wrong. */
bool after_add(struct after_option *option, const char *list);
/* Tasks that are named by their indices get their ids. An exit code, or -1: that is done. */
int after_resolve(struct elmer *elmer, struct after_option *option);
void after_fini(struct after_option *option);
/* "cancel" or "keep". */
bool after_if_never(const char *word, bool *keep);

#endif
