/* used.h - the keys of those with whom frames were sealed. What two ends make of their keys is the same each time, so a
 * key is good for one connection: who repeats what he has recorded shows one that was used, and no two frames are ever
 * sealed with one key and one number. */
#ifndef RSD_COURIER_USED_H
#define RSD_COURIER_USED_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/run/seal.h"

enum { USED_BY_STRANGERS = 4096 };

struct used {
    uint8_t (*keys)[SEAL_KEY_BYTES];
    size_t count, capacity; /* a power of two, at least half of it free */
    size_t strangers;
};

/* Both: false if it was used before, or there is no memory; the caller seals nothing with it then. */
bool used_once(struct used *used, const uint8_t key[SEAL_KEY_BYTES]);
/* Of somebody whose pass is not good: anybody makes as many keys as he likes, and is told why so many times only. */
bool used_by_stranger(struct used *used, const uint8_t key[SEAL_KEY_BYTES]);
void used_fini(struct used *used);

#endif
