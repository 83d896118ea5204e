/* bed.h - the room membership over a fake engine, fake hosts, a fake signer, and certificates of a real CA. */
#ifndef TESTS_UNIT_ELMER_MEMBERSHIP_BED_H
#define TESTS_UNIT_ELMER_MEMBERSHIP_BED_H

#include "elmer/membership/membership.h"
#include "tests/unit/elmer/fakes/fake_hosts.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"
#include "tests/unit/elmer/fakes/fake_work.h"

enum { QUEUE, WS1, WS2 };
enum { PEERS = 12, LIFE_S = 90 * 86400 };

extern struct bed {
    struct membership_settings settings;
    struct membership *membership;
    struct peer peers[PEERS];
    const char *ticket_key; /* of who joins; NULL: none */
} bed;

int bed_setup(void **state);    /* nothing is made yet */
int bed_teardown(void **state); /* closes and destroys it */
void bed_create(void);

/* A certificate of our CA for this name, from now on for LIFE_S; it lives until the end of the program. */
const char *bed_certificate(const char *name);
const char *bed_serial(const char *certificate);
/* One that the store has from the start, before bed_create(): issued so long ago, good for LIFE_S. */
void bed_stored(const char *serial, const char *host, int64_t issued_s_ago);
int bed_judge(const char *host, const char *serial, const char *words); /* words: of the reason */

/* The n-th peer wants to join as this host. */
void bed_join(int peer, const char *host);
/* The n-th peer, which is this host, wants another certificate for this one. */
void bed_renew(int peer, int host, const char *old);
/* The signer of the oldest question that it has not answered says that it is there: the link. */
int bed_signer(void);
/* It answers, and the link ends. */
void bed_issue_host(int link, const char *certificate, const char *ticket); /* to a sign_host */
void bed_issue(int link, const char *certificate);

#endif
