/* store_copier.h - the process of the user elmer that has to do with the store for a backup. What is in the store is
 * elmer's, and so is its directory: root does not read the one with SQLite, nor write into the other. All return the
 * exit code of a command; what is wrong has been said. */
#ifndef CLIENT_STORE_COPIER_H
#define CLIENT_STORE_COPIER_H

#include <pwd.h>
#include <stdint.h>
#include <sys/types.h>

struct store_copier {
    pid_t pid;
    int fd; /* the store comes out of it, or goes into it */
};

/* A copy of the store, complete only if store_copier_end() says so. */
int store_copier_out(struct store_copier *copier, const struct passwd *user, const char *store);
/* What is written to fd becomes the store, where there is none, if it has that size and is sound: see store_restored().
 */
int store_copier_in(struct store_copier *copier, const struct passwd *user, const char *store, int64_t size,
                    int64_t made_ms);
/* Nothing more comes, or goes. */
int store_copier_end(struct store_copier *copier);

#endif
