/* uplink.h - the link to elmer: dials, greets, keeps alive, tries again. */
#ifndef RSD_UPLINK_H
#define RSD_UPLINK_H

#include <stdbool.h>
#include <uv.h>

#include "lib/wire/wire.h"

enum uplink_state { UPLINK_OFFLINE, UPLINK_DIALING, UPLINK_GREETING, UPLINK_READY, UPLINK_CLOSING, UPLINK_STATE_COUNT };

struct uplink_callbacks {
    /* A new link: gather what host_hello says and call uplink_greet(), now or later. */
    void (*on_greeting)(void *data);
    void (*on_ready)(const struct wire_host_welcome *welcome, void *data);
    /* READY only: a message of elmer other than heartbeats; as in link.h. */
    void (*on_message)(struct wire_message *message, void *data);
    /* elmer has answered what we said at said_ms (CLOCK_BOOTTIME), and counts us as up. */
    void (*on_contact)(int64_t said_ms, void *data);
    /* GREETING or READY is over; see uplink_why(). */
    void (*on_offline)(void *data);
    /* uplink_why() has changed. */
    void (*on_why)(void *data);
};

struct uplink;
/* Begins to dial at once. address: of elmer, or several (RSD_ELMER_MAX) with a space between: each failure leads to the
 * next, and a link that was READY is first looked for where it was. pki: directory of the certificates, read before
 * each dial, so a new one counts from then on; NULL: without TLS. NULL: out of memory. */
struct uplink *uplink_create(uv_loop_t *loop, const char *addresses, const char *pki,
                             const struct uplink_callbacks *callbacks, void *data);
/* Closes everything; no callback comes any more. Free it after the loop has ended. */
void uplink_stop(struct uplink *uplink);
void uplink_free(struct uplink *uplink);

enum uplink_state uplink_state(const struct uplink *uplink);
/* GREETING: send host_hello. Ignored in other states. */
void uplink_greet(struct uplink *uplink, const struct wire_host_hello *hello);
/* READY: send. GREETING: keep until READY. 0, -ENOTCONN, or as link_send(). */
int uplink_send(struct uplink *uplink, const struct wire_message *message);
/* For what may stay unsent; see link_offer(). -ENOTCONN unless READY. */
int uplink_offer(struct uplink *u, const struct wire_message *message);
/* Give this link up and dial again. */
void uplink_drop(struct uplink *uplink, const char *text);
/* The same, and do not dial before it is called with NULL. */
void uplink_hold(struct uplink *uplink, const char *why);
/* The last ping of elmer that was heard, 0: none since its welcome, and how long ago that was. Nothing without a link.
 */
void uplink_heard(const struct uplink *uplink, uint64_t *ping, uint64_t *since_ms);
/* Where it leads; without a link, where the last try went, of which uplink_why() says what came of it. */
const char *uplink_address(const struct uplink *uplink);
/* Why there is no link, printable; "" when there is one or before the first try has ended. */
const char *uplink_why(const struct uplink *uplink);
/* The minor version that the link speaks; 0 without one. */
unsigned uplink_minor(const struct uplink *uplink);
/* Our address on the link; "" by unix socket. */
const char *uplink_local_address(const struct uplink *uplink);

#endif
