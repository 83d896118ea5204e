/* bed.h - the room requests over a fake engine, store, hosts and membership, with fake links and fake users. */
#ifndef TESTS_UNIT_ELMER_REQUESTS_BED_H
#define TESTS_UNIT_ELMER_REQUESTS_BED_H

#include "elmer/requests/requests.h"
#include "tests/unit/elmer/fakes/fake_hosts.h"
#include "tests/unit/elmer/fakes/fake_launch.h"
#include "tests/unit/elmer/fakes/fake_membership.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"
#include "tests/unit/elmer/fakes/fake_work.h"

enum { QUEUE, WS1, WS2 };
/* Who name services know; CAROL is in the group of administrators, NOBODY is not known. */
enum { ROOT = 0, DAEMON = 33, ALICE = 1001, BOB = 1002, CAROL = 1003, NOBODY = 1009 };

extern struct bed {
    struct requests_settings settings;
    struct host_settings hosts[FAKE_HOSTS]; /* none of them is believed about administrators */
    struct requests *requests;
} bed;

int bed_setup(void **state);
int bed_teardown(void **state);
/* Makes it again, with other settings or that many hosts. */
void bed_again(int hosts);

int bed_client(uint32_t uid); /* on elmer's own socket: its link */
/* A request about a job, with the id 3. */
void bed_say(int link, enum wire_type type, uint64_t job);
/* The engine says what became of the event. */
void bed_answer(const struct event *event, enum answer answer, uint64_t job);
/* The same of a client that a host relays. */
void bed_relay(int host, uint64_t client, uint32_t uid, const char *user, const struct wire_message *message);
/* The same, signed there with elmer's challenge by elmer-tickets of that host, which the CA has certified. */
struct warrant;
struct wire_message;
extern struct bed_signing {
    const char *host;                       /* in whose name; NULL: the one that relays */
    void (*spoil)(struct warrant *warrant); /* before it is signed; may be NULL */
    void (*forge)(struct warrant *warrant); /* after it was; may be NULL */
    int64_t keep_ms;                        /* before it is sent */
    char warrant[2049], request[4097];      /* the last ones */
} bed_signing;
void bed_relay_signed(int host, uint64_t client, uint32_t uid, const char *user, const struct wire_message *message);
/* What it is told next; it lives until heard_forget(). */
const char *bed_relayed(int host, uint64_t client); /* the frame */

/* A submission of /bin/true with one processor and this token, id 3, whose fields may be changed. */
struct wire_message bed_submission(const char *token);

#endif
