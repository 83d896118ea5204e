/* warrant.h - what an administrator asks of elmer on a host of admin_hosts, signed there.
 *
 * elmer has only that host's network half for who asks, and would have to believe it about everybody. So it answers
 * such a request with a challenge, 32 random bytes that are good once; elmer-tickets of the host signs it together with
 * the request for whoever the kernel says is asking; and elmer does what was signed, as what that person may do. Who
 * holds the network half can drop a request or keep it back for a minute, and no more. No clock of the host counts.
 *
 * As bytes, in hexadecimal in messages; numbers and texts as in a ticket (ticket.h):
 *
 *   "elmer warrant 1\n"  so that what is signed is nothing else
 *   host                 that has signed
 *   challenge 32 bytes
 *   uid       4 bytes    and user
 *   request  32 bytes    SHA-256 of it (ticket_digest_text()), as it goes to elmer
 *   key, certificate, signature  as in a ticket */
#ifndef LIB_TICKET_WARRANT_H
#define LIB_TICKET_WARRANT_H

#include "lib/ticket/ticket.h"

enum {
    WARRANT_CHALLENGE_BYTES = 32,
    WARRANT_BYTES_MAX = 640,
    WARRANT_TEXT_MAX = 2 * WARRANT_BYTES_MAX /* without the NUL; less than in lib/wire/messages.def */
};

struct warrant {
    char host[TICKET_HOST_MAX + 1];
    uint8_t challenge[WARRANT_CHALLENGE_BYTES];
    uint32_t uid;
    char user[TICKET_USER_MAX + 1];
    uint8_t request[TICKET_DIGEST_BYTES];
    uint8_t key[TICKET_KEY_BYTES];
    uint8_t certificate[TICKET_SIGNATURE_BYTES];
    uint8_t signature[TICKET_SIGNATURE_BYTES];
};

/* Fills in key and signature: host, certificate and what it says are there. False: no memory. */
bool warrant_sign(struct warrant *warrant, const uint8_t key[TICKET_KEY_BYTES], const uint8_t secret[TICKET_KEY_BYTES]);
/* out has WARRANT_TEXT_MAX + 1 bytes. */
void warrant_encode(const struct warrant *warrant, char *out);
/* Strict: exactly what warrant_encode() makes. */
bool warrant_decode(const char *text, struct warrant *warrant);
/* From its signature to the CA: TICKET_GOOD, TICKET_OTHER_CLUSTER, TICKET_FORGED. */
enum ticket_refusal warrant_check_chain(const struct warrant *warrant, struct ticket_trust *trust);

#endif
