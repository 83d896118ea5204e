/* fake_membership.h - in place of the room membership, for those that ask it. */
#ifndef TESTS_UNIT_ELMER_FAKES_FAKE_MEMBERSHIP_H
#define TESTS_UNIT_ELMER_FAKES_FAKE_MEMBERSHIP_H

#include "elmer/membership/membership.h"

extern struct fake_membership {
    struct certificate newest[4]; /* by host; without serial: none */
    char revoked[256];            /* the last host that was asked for */
} fake_membership;

#define FAKE_MEMBERSHIP_ROOM ((struct membership *)&fake_membership)

#endif
