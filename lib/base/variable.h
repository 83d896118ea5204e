/* variable.h - NAME=VALUE, as an environment has it. */
#ifndef LIB_BASE_VARIABLE_H
#define LIB_BASE_VARIABLE_H

#include <stdbool.h>

/* Behind the '='; NULL: it is another variable's. */
const char *variable_value(const char *entry, const char *name);
/* names: ended by NULL; NULL itself is none. */
bool variable_is_one_of(const char *entry, const char *const *names);

#endif
