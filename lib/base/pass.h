/* pass.h - what one process hands another that it trusts, or that trusts it: descriptors over a socket, and files in
 * memory that nobody can change any more. */
#ifndef LIB_BASE_PASS_H
#define LIB_BASE_PASS_H

#include <stdbool.h>
#include <stddef.h>

enum { PASS_MAX = 3 }; /* descriptors at once */

/* One message, whole, without SIGPIPE. 0, or -errno. */
int pass_send(int socket, const void *bytes, size_t size, const int *fds, size_t count);
/* One message of exactly this size, and descriptors with it, close-on-exec; those that do not come are -1. 0; -EPIPE:
 * the other end has gone; -EPROTO: of another size; -errno. */
int pass_receive(int socket, void *bytes, size_t size, int fds[PASS_MAX]);

/* Written and sealed, to be read from its beginning; close-on-exec. The descriptor, or -errno. */
int pass_file(const char *name, const void *bytes, size_t size);

#endif
