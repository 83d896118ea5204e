/* renewals.h - certificates that are two thirds over: the hosts' are asked to be renewed, elmer's own is. */
#ifndef ELMER_MEMBERSHIP_RENEWALS_H
#define ELMER_MEMBERSHIP_RENEWALS_H

#include "elmer/daemon.h"

struct renewals;

/* Reads elmer's own certificate, if TCP is served with TLS. */
struct renewals *renewals_create(struct daemon *daemon);
void renewals_close(struct renewals *renewals);   /* no more of it, but for work in another thread */
void renewals_destroy(struct renewals *renewals); /* after the loop has ended */

#endif
