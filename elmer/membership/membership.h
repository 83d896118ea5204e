/* membership.h - who may be a host: tokens, certificates and their renewal. The contract of this room: certificates
 * live in the store and in here; whatever is answered to a peer goes through hosts.h; elmer-signer, which holds the
 * CA's key, is asked over its socket. What is asked belongs to a peer and ends with it: who tells of peers must tell of
 * their end, too. What cannot be done is an answer to the peer that asked, with a text, and a line in the log. */
#ifndef ELMER_MEMBERSHIP_MEMBERSHIP_H
#define ELMER_MEMBERSHIP_MEMBERSHIP_H

#include "elmer/engine/engine.h"
#include "elmer/hosts/hosts.h"
#include "elmer/store/certificate.h"
#include "lib/base/err.h"

struct membership;

/* It must outlive the room. */
struct membership_settings {
    const char *queue_host; /* the name of the host that elmer runs on */
    const char *signer;     /* socket of elmer-signer */
    const char *pki;        /* directory of elmer's own pair; NULL: it serves no TLS */
    bool fixed;             /* nobody joins who is not configured */
};

/* With what the store has; blocking, before the loop runs, and before hosts.h reads elmer's own pair, which a crash may
 * have left half renewed. 0, or negative with the text of err; membership_destroy() is right after a failure, too. */
int membership_create(const struct room *room, const struct membership_settings *settings,
                      struct membership **membership, struct err *err);
/* From now on it has hosts to speak with, which must outlive it. */
void membership_begin(struct membership *membership, struct hosts *hosts);
/* Who is not configured and joins with a token that names it is added to the cluster by add_host(), which makes room
 * for it everywhere and tells the core. */
void membership_connect(struct membership *membership, void (*add_host)(const char *name, void *data), void *data);
/* There are more hosts. */
void membership_configured(struct membership *membership);
/* elmer's own certificate was not there at the start, and now is. */
void membership_certificate_came(struct membership *membership);
void membership_close(struct membership *membership);   /* nothing is answered any more */
void membership_destroy(struct membership *membership); /* after the loop has ended; NULL: nothing */

/* The message join of a peer without certificate (host -1), or renew of a host; it is moved away. Answered later. */
void membership_ask(struct membership *membership, struct peer *peer, int host, struct wire_message *message);
void membership_peer_gone(struct membership *membership, struct peer *peer);

/* 0, or -EACCES with the sentence for its host: it was revoked, or replaced, or never passed on. */
int membership_judge(const struct membership *membership, const char *host, const char *serial, struct err *err);
/* Its host has linked with this one: those that were issued to it before count no more, as if revoked. */
void membership_shown(struct membership *membership, const char *serial);
/* All of this host, from now on and on disk; one that is being signed is not recorded. Returns how many. */
size_t membership_revoke(struct membership *membership, const char *host);
/* Of this host, the one that counts and is good the longest, until the next call; NULL: it has none. */
const struct certificate *membership_newest(const struct membership *membership, int host);

#endif
