/* sign.c - digests and signatures of tickets. */
#include "config.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "lib/ticket/ticket.h"

/* ---- digests ---- */

static bool add_number(EVP_MD_CTX *context, size_t number)
{
    uint8_t bytes[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number};
    return EVP_DigestUpdate(context, bytes, sizeof(bytes)) == 1;
}

static bool add_text(EVP_MD_CTX *context, const char *text)
{
    size_t length = strlen(text);
    return add_number(context, length) && EVP_DigestUpdate(context, text, length) == 1;
}

/* Without those of Elmer's where `skip` says so. */
static bool digest_list(EVP_MD_CTX *context, struct ticket_list list, bool skip, bool helpers, uint8_t *out)
{
    unsigned size = 0;
    size_t count = 0;
    bool made = EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; i < list.count; i++)
        count += !skip || !ticket_variable_is_ours(list.items[i], helpers);
    made = made && add_number(context, count);
    for (size_t i = 0; made && i < list.count; i++)
        if (!skip || !ticket_variable_is_ours(list.items[i], helpers))
            made = add_text(context, list.items[i]);
    return made && EVP_DigestFinal_ex(context, out, &size) == 1 && size == TICKET_DIGEST_BYTES;
}

bool ticket_digest(struct ticket *ticket, struct ticket_list command, struct ticket_list environment, const char *dir,
                   uint32_t mask)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    char octal[16];
    const char *place[] = {dir, octal};
    bool made;
    snprintf(octal, sizeof(octal), "%o", (unsigned)mask);
    made = context && digest_list(context, command, false, false, ticket->command) &&
           digest_list(context, environment, true, ticket->helpers, ticket->environment) &&
           digest_list(context, (struct ticket_list){place, 2}, false, false, ticket->place);
    EVP_MD_CTX_free(context);
    return made;
}

bool ticket_digest_text(const char *text, uint8_t digest[TICKET_DIGEST_BYTES])
{
    unsigned size = 0;
    return EVP_Digest(text, strlen(text), digest, &size, EVP_sha256(), NULL) == 1 && size == TICKET_DIGEST_BYTES;
}

/* ---- signatures ---- */

bool ticket_key_of(const uint8_t secret[TICKET_KEY_BYTES], uint8_t key[TICKET_KEY_BYTES])
{
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, TICKET_KEY_BYTES);
    size_t size = TICKET_KEY_BYTES;
    bool made = pkey && EVP_PKEY_get_raw_public_key(pkey, key, &size) == 1 && size == TICKET_KEY_BYTES;
    EVP_PKEY_free(pkey);
    return made;
}

bool ticket_key_create(uint8_t secret[TICKET_KEY_BYTES], uint8_t key[TICKET_KEY_BYTES])
{
    EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    size_t size = TICKET_KEY_BYTES, public_size = TICKET_KEY_BYTES;
    bool made = pkey && EVP_PKEY_get_raw_private_key(pkey, secret, &size) == 1 &&
                EVP_PKEY_get_raw_public_key(pkey, key, &public_size) == 1;
    EVP_PKEY_free(pkey);
    return made;
}

struct evp_pkey_st *ticket_signer_create(const uint8_t secret[TICKET_KEY_BYTES])
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, TICKET_KEY_BYTES);
}

void ticket_signer_destroy(struct evp_pkey_st *signer)
{
    EVP_PKEY_free(signer);
}

static bool sign_by(struct evp_pkey_st *signer, const uint8_t *bytes, size_t size,
                    uint8_t signature[TICKET_SIGNATURE_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t length = TICKET_SIGNATURE_BYTES;
    bool made = signer && context && EVP_DigestSignInit(context, NULL, NULL, NULL, signer) == 1 &&
                EVP_DigestSign(context, signature, &length, bytes, size) == 1 && length == TICKET_SIGNATURE_BYTES;
    EVP_MD_CTX_free(context);
    return made;
}

bool ticket_sign_bytes(const uint8_t secret[TICKET_KEY_BYTES], const uint8_t *bytes, size_t size,
                       uint8_t signature[TICKET_SIGNATURE_BYTES])
{
    struct evp_pkey_st *signer = ticket_signer_create(secret);
    bool made = sign_by(signer, bytes, size, signature);
    ticket_signer_destroy(signer);
    return made;
}

bool ticket_sign(struct ticket *ticket, const uint8_t secret[TICKET_KEY_BYTES])
{
    uint8_t bytes[TICKET_BYTES_MAX];
    return ticket_key_of(secret, ticket->key) &&
           ticket_sign_bytes(secret, bytes, ticket_signed_bytes(ticket, bytes), ticket->signature);
}

bool ticket_sign_by(struct ticket *ticket, const uint8_t key[TICKET_KEY_BYTES], struct evp_pkey_st *signer)
{
    uint8_t bytes[TICKET_BYTES_MAX];
    memcpy(ticket->key, key, TICKET_KEY_BYTES);
    return sign_by(signer, bytes, ticket_signed_bytes(ticket, bytes), ticket->signature);
}

bool ticket_signature_holds(const uint8_t key[TICKET_KEY_BYTES], const uint8_t *bytes, size_t size,
                            const uint8_t signature[TICKET_SIGNATURE_BYTES])
{
    EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, TICKET_KEY_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool holds = pkey && context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, pkey) == 1 &&
                 EVP_DigestVerify(context, signature, TICKET_SIGNATURE_BYTES, bytes, size) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pkey);
    return holds;
}

/* ---- the chain ---- */

static bool is_kept(const struct ticket *ticket, const struct ticket_trust *trust)
{
    for (size_t i = 0; i < TICKET_TRUST_KEPT; i++)
        if (strcmp(trust->kept[i].host, ticket->host) == 0 &&
            memcmp(trust->kept[i].key, ticket->key, sizeof(ticket->key)) == 0)
            return true;
    return false;
}

static void keep(const struct ticket *ticket, struct ticket_trust *trust)
{
    size_t at = trust->next_kept++ % TICKET_TRUST_KEPT;
    snprintf(trust->kept[at].host, sizeof(trust->kept[at].host), "%s", ticket->host);
    memcpy(trust->kept[at].key, ticket->key, sizeof(ticket->key));
}

bool ticket_key_is_known(const struct ticket *ticket, struct ticket_trust *trust)
{
    uint8_t bytes[TICKET_BYTES_MAX];
    if (strcmp(ticket->host, trust->own_host) == 0 && memcmp(ticket->key, trust->own, sizeof(ticket->key)) == 0)
        return true;
    if (!trust->has_authority)
        return false;
    if (is_kept(ticket, trust))
        return true;
    if (!ticket_signature_holds(trust->authority, bytes, ticket_certified_bytes(ticket->host, ticket->key, bytes),
                                ticket->certificate))
        return false;
    keep(ticket, trust);
    return true;
}

enum ticket_refusal ticket_check_signer(const char *host, const uint8_t key[TICKET_KEY_BYTES],
                                        const uint8_t certificate[TICKET_SIGNATURE_BYTES], const uint8_t *bytes,
                                        size_t size, const uint8_t signature[TICKET_SIGNATURE_BYTES],
                                        struct ticket_trust *trust)
{
    struct ticket signer = {.counter = 0}; /* whose key it is is asked in the same way */
    snprintf(signer.host, sizeof(signer.host), "%s", host);
    memcpy(signer.key, key, sizeof(signer.key));
    memcpy(signer.certificate, certificate, sizeof(signer.certificate));
    if (!ticket_key_is_known(&signer, trust))
        return TICKET_OTHER_CLUSTER;
    return ticket_signature_holds(key, bytes, size, signature) ? TICKET_GOOD : TICKET_FORGED;
}

/* The key is among the bytes, so the same bytes and signature hold again. Only what held is kept. */
static bool has_held(const struct ticket_trust *trust, const uint8_t *bytes, size_t size, const uint8_t *signature)
{
    for (size_t i = 0; i < TICKET_TRUST_HELD; i++)
        if (trust->held[i].size == size && memcmp(trust->held[i].bytes, bytes, size) == 0 &&
            memcmp(trust->held[i].signature, signature, TICKET_SIGNATURE_BYTES) == 0)
            return true;
    return false;
}

static void keep_held(struct ticket_trust *trust, const uint8_t *bytes, size_t size, const uint8_t *signature)
{
    size_t at = trust->next_held++ % TICKET_TRUST_HELD;
    trust->held[at].size = size;
    memcpy(trust->held[at].bytes, bytes, size);
    memcpy(trust->held[at].signature, signature, TICKET_SIGNATURE_BYTES);
}

enum ticket_refusal ticket_check_chain(const struct ticket *ticket, struct ticket_trust *trust)
{
    uint8_t bytes[TICKET_BYTES_MAX];
    size_t size;
    if (!ticket_key_is_known(ticket, trust))
        return TICKET_OTHER_CLUSTER;
    size = ticket_signed_bytes(ticket, bytes);
    if (has_held(trust, bytes, size, ticket->signature))
        return TICKET_GOOD;
    if (!ticket_signature_holds(ticket->key, bytes, size, ticket->signature))
        return TICKET_FORGED;
    keep_held(trust, bytes, size, ticket->signature);
    return TICKET_GOOD;
}
