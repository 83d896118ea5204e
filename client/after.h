/* after.h - the options --after and --if-never of esubmit. */
#ifndef CLIENT_AFTER_H
#define CLIENT_AFTER_H

#include <stdbool.h>

/* Jobs to wait for; may be given several times. All zero at first. */
struct after_option {
    char **items; /* ends with NULL */
    int count;
};
/* false: it has said what is wrong. */
bool after_add(struct after_option *option, const char *list);
void after_fini(struct after_option *option);
/* "cancel" or "keep". */
bool after_if_never(const char *word, bool *keep);

#endif
