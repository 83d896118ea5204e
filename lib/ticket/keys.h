/* keys.h - the directory of a host's ticket key, which belongs to the user elmer-ticket alone.
 *
 *   key          the private key, hexadecimal: of this host, made when it is first needed, never sent anywhere
 *   certificate  HOST KEY AUTHORITY SIGNATURE: the CA with this key has certified ours, under this name of the host
 *   counter      of tickets: none with a higher number has been signed yet
 *   used/KEY     tickets of that key that were used here (window.h) */
#ifndef LIB_TICKET_KEYS_H
#define LIB_TICKET_KEYS_H

#include "lib/base/err.h"
#include "lib/ticket/ticket.h"

enum { TICKET_HEX_KEY = 2 * TICKET_KEY_BYTES + 1, TICKET_HEX_SIGNATURE = 2 * TICKET_SIGNATURE_BYTES + 1 };

struct ticket_keys {
    int dir; /* -1: not open */
    char host[TICKET_HOST_MAX + 1];
    uint8_t secret[TICKET_KEY_BYTES], key[TICKET_KEY_BYTES];
    struct evp_pkey_st *signer; /* of the secret; NULL: it is not made ready */
    bool certified;
    uint8_t authority[TICKET_KEY_BYTES], certificate[TICKET_SIGNATURE_BYTES];
};

/* Makes directory and key if they are not there. A certificate for another name or key does not count. 0 or -errno. */
int ticket_keys_open(struct ticket_keys *keys, const char *path, const char *host, struct err *err);
void ticket_keys_close(struct ticket_keys *keys); /* also of zeros after open has failed; wipes */
/* Keep what the CA has signed, after it was checked. -EACCES: it does not hold. */
int ticket_keys_certify(struct ticket_keys *keys, const uint8_t authority[TICKET_KEY_BYTES],
                        const uint8_t certificate[TICKET_SIGNATURE_BYTES], struct err *err);
/* The CA may have certified it since it was opened (eadmin init, rsd --join): look, as long as it has not. Needs no
 * secret. True: it is certified. */
bool ticket_keys_certified(struct ticket_keys *keys);
void ticket_keys_forget_secret(struct ticket_keys *keys); /* it signs nothing any more */
void ticket_keys_trust(const struct ticket_keys *keys, struct ticket_trust *trust);

/* The next number for a ticket: taken from a reserve that is on disk before any of it is used, so that no number comes
 * twice, whenever this process or the host dies. */
struct ticket_counter {
    uint64_t next, reserved;
};
/* So many of them that follow each other, at least one and at most TICKET_NUMBERS_MAX: the first. */
enum { TICKET_NUMBERS_MAX = TASKS_MAX };
int ticket_counter_next(const struct ticket_keys *keys, struct ticket_counter *counter, uint32_t count,
                        uint64_t *number, struct err *err);

#endif
