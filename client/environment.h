/* environment.h - which variables a job gets from the one who submits it. */
#ifndef CLIENT_ENVIRONMENT_H
#define CLIENT_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

struct environment {
    char **items; /* NAME=VALUE, NULL behind the last */
    size_t count;
};
/* The safe set: PATH LANG LANGUAGE LC_* TZ. */
void environment_init(struct environment *environment);
void environment_fini(struct environment *environment);
/* An argument of -v: NAME copies, NAME=VALUE sets; the last one of a name counts. false: said what is wrong. */
bool environment_add(struct environment *environment, const char *argument);
/* A variable that Elmer needs itself. */
void environment_set(struct environment *environment, const char *name, const char *value);
const char *environment_get(const struct environment *environment, const char *name); /* NULL: not there */

#endif
