/* address.h - where to dial or listen: "HOST:PORT", "[IPV6]:PORT" or "/path". */
#ifndef LIB_NET_ADDRESS_H
#define LIB_NET_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>

#include "lib/base/err.h"

enum { ADDRESS_TEXT = 128 }; /* of a numeric one with its port, or the path of a socket */
#define ADDRESS_PORT "7110"  /* of elmer, where nobody says another one */

struct address {
    bool path;      /* the text is the path of a unix socket */
    char host[256]; /* a name, a numeric address without brackets, or "*" */
    char port[6];
};

/* -EINVAL with a sentence. A path that does not fit into a socket address is refused too. */
int address_parse(const char *text, struct address *address, struct err *err);
/* A listening socket, bound but not yet listening (close-on-exec, non-blocking). mode: of a socket file; a stale file
 * is replaced, a live one is -EADDRINUSE. A name is resolved here and then, and must stand for an address that other
 * hosts reach (or be localhost). */
int address_bind(const char *text, unsigned mode, int *fd, struct err *err);
/* What address_bind() would take the text for now, as numbers; a path, * and numbers stay what they are. Of several
 * that a name stands for it is keep, if that is one of them; "": the first. It asks the name service, so a daemon that
 * serves others calls it in a worker. */
int address_resolve(const char *text, const char *keep, char out[ADDRESS_TEXT], struct err *err);
/* Has this host the numeric address now? True of what is none. Asks nobody. */
bool address_is_here(const char *text);
/* The numeric host of a socket address, "" if it is not an internet address. */
void address_name(const struct sockaddr *address, char *out, unsigned size);

#endif
