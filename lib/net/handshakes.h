/* handshakes.h - how many TLS handshakes strangers may begin, in all and from one address: each costs us a signature.
 */
#ifndef LIB_NET_HANDSHAKES_H
#define LIB_NET_HANDSHAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/quota/bucket.h"

enum {
    HANDSHAKES_PER_SECOND = 1000,
    HANDSHAKES_BURST = 500,
    HANDSHAKES_OF_ADDRESS = 50, /* in a second */
    HANDSHAKES_BURST_OF_ADDRESS = 64,
    HANDSHAKES_ADDRESSES = 1024 /* two in one place share their allowance */
};

struct handshakes { /* zero-initialised but for the first two */
    uint64_t salt;  /* random: nobody may choose with whom he shares */
    unsigned per_second;
    struct bucket all, of_address[HANDSHAKES_ADDRESSES];
};

/* One may begin now, and is counted; else it waits and asks again. Addresses are numeric. The loopback address is many
 * programs of this host, and counts in all only. */
bool handshakes_may_begin(struct handshakes *handshakes, const char *address, int64_t now_ms);

#endif
