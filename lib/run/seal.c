#include "config.h"

#include "lib/run/seal.h"

#include <nettle/curve25519.h>
#include <nettle/gcm.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* One is made from another. */
_Static_assert(SEAL_KEY_BYTES == CURVE25519_SIZE, "a key of X25519");
_Static_assert(SEAL_KEY_BYTES == SHA256_DIGEST_SIZE, "a digest");
_Static_assert(SEAL_KEY_BYTES == AES256_KEY_SIZE, "a key of AES");
_Static_assert(SEAL_TAG_BYTES == GCM_DIGEST_SIZE, "a tag of GCM");

/* Any 32 random bytes are a key of X25519 (RFC 7748). */
bool seal_key_make(struct seal_key *key)
{
    if (getrandom(key->secret, SEAL_KEY_BYTES, 0) != SEAL_KEY_BYTES)
        return false;
    curve25519_mul_g(key->public_key, key->secret);
    return true;
}

/* False: the other's is a point of small order, which gives zeros with any key. */
static bool derive(const struct seal_key *own, const uint8_t *other, uint8_t shared[SEAL_KEY_BYTES])
{
    static const uint8_t zeros[SEAL_KEY_BYTES];
    curve25519_mul(shared, own->secret, other);
    return !memeql_sec(shared, zeros, SEAL_KEY_BYTES);
}

/* SHA-256 of the pieces, each with its end, so that none runs into the next. */
static void hash(uint8_t out[SEAL_KEY_BYTES], const void *const *pieces, const size_t *sizes, size_t count)
{
    struct sha256_ctx context;
    sha256_init(&context);
    for (size_t i = 0; i < count; i++) {
        sha256_update(&context, sizes[i], pieces[i]);
        sha256_update(&context, 1, (const uint8_t *)"\n");
    }
    sha256_digest(&context, SEAL_KEY_BYTES, out);
    explicit_bzero(&context, sizeof(context));
}

static bool begin(struct seal *seal, const uint8_t master[SEAL_KEY_BYTES], const char *direction)
{
    const void *pieces[] = {master, direction};
    const size_t sizes[] = {SEAL_KEY_BYTES, strlen(direction)};
    uint8_t key[SEAL_KEY_BYTES];
    *seal = (struct seal){.context = malloc(sizeof(*seal->context))};
    if (!seal->context)
        return false;
    hash(key, pieces, sizes, 2);
    gcm_aes256_set_key(seal->context, key);
    explicit_bzero(key, sizeof(key));
    return true;
}

bool seal_agree(const struct seal_key *own, const uint8_t other[SEAL_KEY_BYTES], const char *dialler,
                const char *listener, bool is_dialler, struct seal *out, struct seal *in)
{
    static const char head[] = "elmer run 1", there[] = "to the listener", back[] = "to the dialler";
    uint8_t shared[SEAL_KEY_BYTES], master[SEAL_KEY_BYTES];
    const void *pieces[] = {head, shared, dialler, listener};
    const size_t sizes[] = {sizeof(head), sizeof(shared), strlen(dialler), strlen(listener)};
    bool made = derive(own, other, shared);
    *out = *in = (struct seal){.count = 0};
    if (made) {
        hash(master, pieces, sizes, 4);
        made = begin(out, master, is_dialler ? there : back) && begin(in, master, is_dialler ? back : there);
    }
    explicit_bzero(shared, sizeof(shared));
    explicit_bzero(master, sizeof(master));
    return made;
}

void seal_fini(struct seal *seal)
{
    if (seal->context)
        explicit_bzero(seal->context, sizeof(*seal->context));
    free(seal->context);
    *seal = (struct seal){.count = 0};
}

/* The number of the frame: never the same with one key. */
static void begin_frame(struct seal *seal)
{
    uint64_t number = seal->count++;
    uint8_t nonce[GCM_IV_SIZE] = {0};
    for (size_t i = 0; i < sizeof(number); i++)
        nonce[GCM_IV_SIZE - 1 - i] = (uint8_t)(number >> (8 * i));
    gcm_aes256_set_iv(seal->context, sizeof(nonce), nonce);
}

void seal_put(struct seal *seal, const uint8_t *plain, size_t size, uint8_t *out)
{
    begin_frame(seal);
    gcm_aes256_encrypt(seal->context, size, out, plain);
    gcm_aes256_digest(seal->context, SEAL_TAG_BYTES, out + size);
}

bool seal_open(struct seal *seal, const uint8_t *sealed, size_t size, uint8_t *plain)
{
    uint8_t tag[SEAL_TAG_BYTES];
    if (size < SEAL_TAG_BYTES)
        return false;
    size -= SEAL_TAG_BYTES;
    begin_frame(seal);
    gcm_aes256_decrypt(seal->context, size, plain, sealed);
    gcm_aes256_digest(seal->context, SEAL_TAG_BYTES, tag);
    return memeql_sec(tag, sealed + size, SEAL_TAG_BYTES);
}
