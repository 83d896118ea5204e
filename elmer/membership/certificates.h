/* certificates.h - the certificates that were passed on to hosts: which of them count. */
#ifndef ELMER_MEMBERSHIP_CERTIFICATES_H
#define ELMER_MEMBERSHIP_CERTIFICATES_H

#include "elmer/engine/engine.h"
#include "elmer/store/certificate.h"
#include "lib/base/err.h"

struct certificates;

/* With what the store has; blocking, before the loop runs. */
int certificates_create(const struct room *room, struct certificates **certificates, struct err *err);
void certificates_make_room(struct certificates *c); /* for as many hosts as there are now */
void certificates_destroy(struct certificates *certificates);

/* Remember a new one, and write it. */
void certificates_add(struct certificates *certificates, const struct certificate *certificate);
/* All of this host but one with the serial except (NULL: all), from now on and on disk. Returns how many. */
size_t certificates_revoke(struct certificates *certificates, const char *host, const char *except);

/* Its host has linked with this one: those that were issued to it before count no more, as if revoked. */
void certificates_shown(struct certificates *certificates, const char *serial);

const struct certificate *certificates_find(const struct certificates *certificates, const char *serial); /* or NULL */
/* Of this host, the one that counts and is good the longest; NULL: it has none. */
const struct certificate *certificates_newest(const struct certificates *certificates, int host);
/* 0, or -EACCES with the sentence for its host: it was revoked, or replaced, or never passed on. */
int certificates_judge(const struct certificates *certificates, const char *host, const char *serial, struct err *err);

#endif
