#include "config.h"

#include "lib/run/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/random.h>

enum { DIGEST_BYTES = 32, NONCE_BYTES = 12 };

/* Any 32 random bytes are a key of X25519 (RFC 7748). Each erun makes one: the kernel's bytes and no configuration of
 * OpenSSL spare it a generator and providers of its own, which take most of a millisecond each, and what tidies up. */
bool seal_key_make(struct seal_key *key)
{
    size_t size = SEAL_KEY_BYTES;
    EVP_PKEY *pkey;
    bool made;
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
    if (getrandom(key->secret, SEAL_KEY_BYTES, 0) != SEAL_KEY_BYTES)
        return false;
    pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, key->secret, SEAL_KEY_BYTES);
    made = pkey && EVP_PKEY_get_raw_public_key(pkey, key->public_key, &size) == 1;
    EVP_PKEY_free(pkey);
    return made;
}

static bool derive(const struct seal_key *own, const uint8_t *other, uint8_t shared[SEAL_KEY_BYTES])
{
    EVP_PKEY *mine = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, own->secret, SEAL_KEY_BYTES);
    EVP_PKEY *theirs = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, other, SEAL_KEY_BYTES);
    EVP_PKEY_CTX *context = mine ? EVP_PKEY_CTX_new(mine, NULL) : NULL;
    size_t size = SEAL_KEY_BYTES;
    bool made = theirs && context && EVP_PKEY_derive_init(context) == 1 &&
                EVP_PKEY_derive_set_peer(context, theirs) == 1 && EVP_PKEY_derive(context, shared, &size) == 1;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(theirs);
    EVP_PKEY_free(mine);
    return made;
}

/* SHA-256 of the pieces, each with its end, so that none runs into the next. */
static bool hash(uint8_t out[DIGEST_BYTES], const void *const *pieces, const size_t *sizes, size_t count)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned size = 0;
    bool made = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; made && i < count; i++)
        made = EVP_DigestUpdate(context, pieces[i], sizes[i]) == 1 && EVP_DigestUpdate(context, "\n", 1) == 1;
    made = made && EVP_DigestFinal_ex(context, out, &size) == 1;
    EVP_MD_CTX_free(context);
    return made;
}

static bool begin(struct seal *seal, const uint8_t master[DIGEST_BYTES], const char *direction, bool encrypts)
{
    const void *pieces[] = {master, direction};
    const size_t sizes[] = {DIGEST_BYTES, strlen(direction)};
    uint8_t key[DIGEST_BYTES];
    bool made = hash(key, pieces, sizes, 2);
    *seal = (struct seal){.context = EVP_CIPHER_CTX_new()};
    made = made && seal->context && EVP_CipherInit_ex(seal->context, EVP_aes_256_gcm(), NULL, key, NULL, encrypts) == 1;
    OPENSSL_cleanse(key, sizeof(key));
    return made;
}

bool seal_agree(const struct seal_key *own, const uint8_t other[SEAL_KEY_BYTES], const char *dialler,
                const char *listener, bool is_dialler, struct seal *out, struct seal *in)
{
    static const char head[] = "elmer run 1", there[] = "to the listener", back[] = "to the dialler";
    uint8_t shared[SEAL_KEY_BYTES], master[DIGEST_BYTES];
    const void *pieces[] = {head, shared, dialler, listener};
    const size_t sizes[] = {sizeof(head), sizeof(shared), strlen(dialler), strlen(listener)};
    bool made;
    *out = *in = (struct seal){.count = 0};
    made = derive(own, other, shared) && hash(master, pieces, sizes, 4) &&
           begin(out, master, is_dialler ? there : back, true) && begin(in, master, is_dialler ? back : there, false);
    OPENSSL_cleanse(shared, sizeof(shared));
    OPENSSL_cleanse(master, sizeof(master));
    return made;
}

void seal_fini(struct seal *seal)
{
    EVP_CIPHER_CTX_free(seal->context);
    *seal = (struct seal){.count = 0};
}

/* The number of the frame: never the same with one key. */
static void nonce_of(struct seal *seal, uint8_t nonce[NONCE_BYTES])
{
    uint64_t number = seal->count++;
    memset(nonce, 0, NONCE_BYTES);
    for (size_t i = 0; i < sizeof(number); i++)
        nonce[NONCE_BYTES - 1 - i] = (uint8_t)(number >> (8 * i));
}

bool seal_put(struct seal *seal, const uint8_t *plain, size_t size, uint8_t *out)
{
    uint8_t nonce[NONCE_BYTES];
    int written = 0, last = 0;
    nonce_of(seal, nonce);
    return EVP_EncryptInit_ex(seal->context, NULL, NULL, NULL, nonce) == 1 &&
           EVP_EncryptUpdate(seal->context, out, &written, plain, (int)size) == 1 &&
           EVP_EncryptFinal_ex(seal->context, out + written, &last) == 1 && (size_t)written + (size_t)last == size &&
           EVP_CIPHER_CTX_ctrl(seal->context, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG_BYTES, out + size) == 1;
}

bool seal_open(struct seal *seal, const uint8_t *sealed, size_t size, uint8_t *plain)
{
    uint8_t nonce[NONCE_BYTES], tag[SEAL_TAG_BYTES];
    int written = 0, last = 0;
    if (size < SEAL_TAG_BYTES)
        return false;
    size -= SEAL_TAG_BYTES;
    memcpy(tag, sealed + size, sizeof(tag));
    nonce_of(seal, nonce);
    return EVP_DecryptInit_ex(seal->context, NULL, NULL, NULL, nonce) == 1 &&
           EVP_DecryptUpdate(seal->context, plain, &written, sealed, (int)size) == 1 &&
           EVP_CIPHER_CTX_ctrl(seal->context, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG_BYTES, tag) == 1 &&
           EVP_DecryptFinal_ex(seal->context, plain + written, &last) == 1;
}
