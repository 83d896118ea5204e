/* warrant.c - see warrant.h. */
#include "config.h"

#include "lib/ticket/warrant.h"

#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/ticket/bytes.h"
#include "lib/ticket/keys.h"

static const char head[] = "elmer warrant 1\n";

static size_t signed_bytes(const struct warrant *warrant, uint8_t *out)
{
    struct bytes_writer w = {out, 0};
    bytes_put(&w, head, sizeof(head) - 1);
    bytes_put_text(&w, warrant->host, TICKET_HOST_MAX);
    bytes_put(&w, warrant->challenge, sizeof(warrant->challenge));
    bytes_put_number(&w, warrant->uid, 4);
    bytes_put_text(&w, warrant->user, TICKET_USER_MAX);
    bytes_put(&w, warrant->request, sizeof(warrant->request));
    bytes_put(&w, warrant->key, sizeof(warrant->key));
    bytes_put(&w, warrant->certificate, sizeof(warrant->certificate));
    return w.size;
}

bool warrant_sign(struct warrant *warrant, const uint8_t key[TICKET_KEY_BYTES], const uint8_t secret[TICKET_KEY_BYTES])
{
    uint8_t bytes[WARRANT_BYTES_MAX];
    memcpy(warrant->key, key, sizeof(warrant->key));
    return ticket_sign_bytes(secret, bytes, signed_bytes(warrant, bytes), warrant->signature);
}

void warrant_encode(const struct warrant *warrant, char *out)
{
    uint8_t bytes[WARRANT_BYTES_MAX];
    struct bytes_writer w = {bytes, signed_bytes(warrant, bytes)};
    bytes_put(&w, warrant->signature, sizeof(warrant->signature));
    hex_write(bytes, w.size, out);
}

bool warrant_decode(const char *text, struct warrant *warrant)
{
    uint8_t bytes[WARRANT_BYTES_MAX];
    struct bytes_reader r = bytes_of_text(text, bytes, sizeof(bytes));
    *warrant = (struct warrant){.uid = 0};
    bytes_get_head(&r, head);
    bytes_get_text(&r, warrant->host, TICKET_HOST_MAX);
    bytes_get(&r, warrant->challenge, sizeof(warrant->challenge));
    warrant->uid = (uint32_t)bytes_get_number(&r, 4);
    bytes_get_text(&r, warrant->user, TICKET_USER_MAX);
    bytes_get(&r, warrant->request, sizeof(warrant->request));
    bytes_get(&r, warrant->key, sizeof(warrant->key));
    bytes_get(&r, warrant->certificate, sizeof(warrant->certificate));
    bytes_get(&r, warrant->signature, sizeof(warrant->signature));
    return !r.bad && r.left == 0 && str_valid_hostname(warrant->host) && *warrant->user;
}

enum ticket_refusal warrant_check_chain(const struct warrant *warrant, struct ticket_trust *trust)
{
    uint8_t bytes[WARRANT_BYTES_MAX];
    return ticket_check_signer(warrant->host, warrant->key, warrant->certificate, bytes, signed_bytes(warrant, bytes),
                               warrant->signature, trust);
}
