/* keys.h - what can be said of a simulation, each as KEY=VALUE: by an option, by --sweep and by --compare. */
#ifndef ESIM_KEYS_H
#define ESIM_KEYS_H

#include "esim/run.h"

void keys_default(struct config *config);
/* False: fault says why. value is kept where it is text. */
bool keys_set(struct config *config, const char *key, const char *value, char *fault, size_t size);
/* What follows from several of them. */
bool keys_complete(struct config *config, char *fault, size_t size);
bool keys_is_whole(const char *key); /* its values are whole numbers */
const char *keys_names(void);        /* all, for a sentence */

#endif
