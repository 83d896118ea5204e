#include "config.h"

#include "rsd/courier/used.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 64 };
static const uint8_t none[SEAL_KEY_BYTES]; /* gives no key with any other, so nobody is let in with it */

/* Its place, or the free one where it belongs. */
static uint8_t *place(const struct used *used, const uint8_t key[SEAL_KEY_BYTES])
{
    size_t at;
    memcpy(&at, key, sizeof(at));
    for (at &= used->capacity - 1; memcmp(used->keys[at], none, SEAL_KEY_BYTES) != 0;
         at = (at + 1) & (used->capacity - 1))
        if (memcmp(used->keys[at], key, SEAL_KEY_BYTES) == 0)
            break;
    return used->keys[at];
}

static bool grow(struct used *used)
{
    struct used larger = {.capacity = used->capacity ? 2 * used->capacity : FIRST};
    if (2 * (used->count + 1) <= used->capacity)
        return true;
    larger.keys = calloc(larger.capacity, sizeof(*larger.keys));
    if (!larger.keys)
        return false;
    for (size_t i = 0; i < used->capacity; i++)
        if (memcmp(used->keys[i], none, SEAL_KEY_BYTES) != 0)
            memcpy(place(&larger, used->keys[i]), used->keys[i], SEAL_KEY_BYTES);
    free(used->keys);
    used->keys = larger.keys;
    used->capacity = larger.capacity;
    return true;
}

bool used_once(struct used *used, const uint8_t key[SEAL_KEY_BYTES])
{
    uint8_t *at = grow(used) ? place(used, key) : NULL;
    if (!at || memcmp(at, key, SEAL_KEY_BYTES) == 0)
        return false;
    memcpy(at, key, SEAL_KEY_BYTES);
    used->count++;
    return true;
}

bool used_by_stranger(struct used *used, const uint8_t key[SEAL_KEY_BYTES])
{
    if (used->strangers == USED_BY_STRANGERS || !used_once(used, key))
        return false;
    used->strangers++;
    return true;
}

void used_fini(struct used *used)
{
    free(used->keys);
    *used = (struct used){.count = 0};
}
