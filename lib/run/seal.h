/* seal.h - what two processes of a job say to each other, so that nobody on the way reads or changes it. Both have made
 * a key for themselves (X25519) and show its public half in a pass; what both halves give, and the two passes, makes a
 * key for each direction (AES-256-GCM). By nettle: to load OpenSSL, and have it look up what it has, takes longer than
 * all else that erun does. */
#ifndef LIB_RUN_SEAL_H
#define LIB_RUN_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEAL_KEY_BYTES = 32, SEAL_TAG_BYTES = 16 };

struct seal_key {
    uint8_t secret[SEAL_KEY_BYTES], public_key[SEAL_KEY_BYTES];
};
bool seal_key_make(struct seal_key *key);

struct gcm_aes256_ctx;
/* One direction. Frames are sealed and opened in their order, each once. */
struct seal {
    struct gcm_aes256_ctx *context;
    uint64_t count;
};
/* Both ends give the same texts in the same order: the pass of who has dialled first. False: no memory, or the other's
 * key is none. */
bool seal_agree(const struct seal_key *own, const uint8_t other[SEAL_KEY_BYTES], const char *dialler,
                const char *listener, bool is_dialler, struct seal *out, struct seal *in);
void seal_fini(struct seal *seal); /* of zeros: nothing */
/* out has size + SEAL_TAG_BYTES. */
void seal_put(struct seal *seal, const uint8_t *plain, size_t size, uint8_t *out);
/* plain has size - SEAL_TAG_BYTES. False: it was not sealed by the other end, or not next. */
bool seal_open(struct seal *seal, const uint8_t *sealed, size_t size, uint8_t *plain);

#endif
