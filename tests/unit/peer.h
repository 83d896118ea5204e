/* peer.h - tests play the other end of a connection: sockets and messages with a deadline; what does not come fails the
 * test. */
#ifndef TESTS_UNIT_PEER_H
#define TESTS_UNIT_PEER_H

#include <stdint.h>

#include "lib/wire/channel.h"

enum { PEER_DEADLINE_MS = 10000 };

int64_t peer_soon(void);
int peer_listen(const char *path);
int peer_connect(const char *path);
/* The next connection as it comes. */
int peer_accept_fd(int listen_fd);
/* The next connection, hellos exchanged. from: WIRE_FROM_ bit of the other side. */
void peer_accept(int listen_fd, struct channel *channel, unsigned from);
void peer_send(struct channel *channel, const struct wire_message *message);
/* The next message, which must be of that type; pings are answered, reports, contacts and uplink skipped unless wanted.
 * The caller frees it. */
struct wire_message peer_expect(struct channel *channel, enum wire_type type);
void peer_expect_gone(struct channel *channel, enum wire_type type); /* and freed */
/* The other side closes; what it still says is thrown away. */
void peer_expect_end(struct channel *channel);

#endif
