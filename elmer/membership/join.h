/* join.h - certificates for hosts: the first, for a token, and the next, for the one before. */
#ifndef ELMER_MEMBERSHIP_JOIN_H
#define ELMER_MEMBERSHIP_JOIN_H

#include "elmer/membership/membership.h"

struct joins;
struct certificates;

struct joins *joins_create(const struct room *room, const struct membership_settings *settings,
                           struct certificates *certificates);
void joins_begin(struct joins *joins, struct hosts *hosts);
void joins_connect(struct joins *joins, void (*add_host)(const char *name, void *data), void *data);
void joins_close(struct joins *joins);
void joins_destroy(struct joins *joins); /* after the loop has ended */

/* As in membership.h. */
void joins_ask(struct joins *joins, struct peer *peer, int host, struct wire_message *message);
/* The certificates of this host are revoked: what is signed for it now is to count as little. */
void joins_removed(struct joins *joins, const char *host);
void joins_peer_gone(struct joins *joins, struct peer *peer);

#endif
