/* renewal_schedule.h - certificates that are two thirds over: the hosts' are asked to be renewed, elmer's own is. */
#ifndef ELMER_MEMBERSHIP_RENEWAL_SCHEDULE_H
#define ELMER_MEMBERSHIP_RENEWAL_SCHEDULE_H

#include "elmer/membership/membership.h"

struct renewals;
struct certificates;

/* Reads elmer's own certificate, if TCP is served with TLS. */
struct renewals *renewals_create(const struct room *room, const struct membership_settings *settings,
                                 const struct certificates *certificates);
void renewals_make_room(struct renewals *renewals); /* for as many hosts as there are now */
void renewals_begin(struct renewals *renewals, struct hosts *hosts);
/* elmer's certificate, which was not there, is: look after it. */
void renewals_recover(struct renewals *renewals);
void renewals_close(struct renewals *renewals);   /* no more of it, but for work in another thread */
void renewals_destroy(struct renewals *renewals); /* after the loop has ended */

#endif
