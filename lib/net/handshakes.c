#include "config.h"

#include "lib/net/handshakes.h"

#include <string.h>

static struct bucket *bucket_of(struct handshakes *handshakes, const char *address)
{
    uint64_t hash = handshakes->salt;

    for (const char *c = address; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return &handshakes->of_address[hash % HANDSHAKES_ADDRESSES];
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 || strncmp(address, "::ffff:127.", 11) == 0;
}

bool handshakes_may_begin(struct handshakes *handshakes, const char *address, int64_t now_ms)
{
    struct bucket *own = is_loopback(address) ? NULL : bucket_of(handshakes, address);
    double burst = handshakes->per_second < HANDSHAKES_BURST ? handshakes->per_second : HANDSHAKES_BURST;

    if (own && !bucket_take_if(own, now_ms, HANDSHAKES_OF_ADDRESS, HANDSHAKES_BURST_OF_ADDRESS, 1))
        return false;
    if (bucket_take_if(&handshakes->all, now_ms, handshakes->per_second, burst, 1))
        return true;
    if (own)
        own->missing -= 1; /* it was not used */
    return false;
}
