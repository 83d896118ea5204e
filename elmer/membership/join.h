/* join.h - certificates for hosts: the first, for a token, and the next, for the one before. */
#ifndef ELMER_MEMBERSHIP_JOIN_H
#define ELMER_MEMBERSHIP_JOIN_H

#include "elmer/daemon.h"

struct joins;
struct peer;

struct joins *joins_create(struct daemon *daemon);
/* Nothing is answered any more. */
void joins_close(struct joins *joins);
void joins_destroy(struct joins *joins); /* after the loop has ended */

/* The message join of a peer without certificate (host -1), or renew of a host; it is moved away. Answered later
 * through hosts.h. */
void joins_begin(struct joins *joins, struct peer *peer, int host, struct wire_message *message);
void joins_peer_gone(struct joins *joins, struct peer *peer);
/* LATER_CERTIFICATE: what was put to the store for the request of this number is on disk. */
void joins_committed(struct joins *joins, uint64_t number);

#endif
