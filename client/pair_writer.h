/* pair_writer.h - the process of the user elmer that writes elmer's pair.
 *
 * Elmer's directory is elmer's, so nothing in there may make root write elsewhere. And whoever has elmer's account may
 * look into processes of his: so this one is forked before the CA's key is read, and gets only what it writes. */
#ifndef CLIENT_PAIR_WRITER_H
#define CLIENT_PAIR_WRITER_H

#include <pwd.h>
#include <sys/types.h>

struct pair_writer {
    pid_t pid; /* 0: it has ended */
    int socket;
};

/* All return the exit code of a command; what is wrong has been said. This process becomes the user, for good. */
int become_user(const struct passwd *user);
/* Start the process, which becomes the user and waits. */
int pair_writer_start(struct pair_writer *writer, const struct passwd *user, const char *pki);
/* Write key, certificate and the CA's certificate, at most once. It has ended then. */
int pair_writer_write(struct pair_writer *writer, const char *key, const char *certificate, const char *ca);
/* If it has not been told anything it ends without having written anything. */
int pair_writer_end(struct pair_writer *writer);

#endif
