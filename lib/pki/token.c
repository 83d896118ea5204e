#include "config.h"

#include "lib/pki/token.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/hex.h"

static const char prefix[] = "elmer1"; /* the digit is the version */
static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";

enum {
    PREFIX = sizeof(prefix) - 1,
    SUM_BYTES = 4,
    BODY = TOKEN_ID_BYTES + TOKEN_SECRET_BYTES + TOKEN_PIN_BYTES,
    BYTES = BODY + SUM_BYTES
};
_Static_assert(BYTES % 5 == 0 && PREFIX + BYTES / 5 * 8 + 1 == TOKEN_TEXT_SIZE, "base 32 without padding");

/* CRC-32 of IEEE 802.3: finds every typing error of a few letters. */
static uint32_t sum(const uint8_t *bytes, size_t size)
{
    uint32_t crc = ~0U;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
    }
    return ~crc;
}

static void put_sum(uint8_t bytes[BYTES])
{
    uint32_t crc = sum(bytes, BODY);

    for (int i = 0; i < SUM_BYTES; i++)
        bytes[BODY + i] = (uint8_t)(crc >> 8 * i);
}

int token_create(const uint8_t pin[TOKEN_PIN_BYTES], struct token *token, struct err *err)
{
    if (getrandom(token->id, sizeof(token->id), 0) != sizeof(token->id) ||
        getrandom(token->secret, sizeof(token->secret), 0) != sizeof(token->secret))
        return err_set(err, -EIO, "the kernel gives no random numbers: %s", strerror(errno));
    memcpy(token->pin, pin, sizeof(token->pin));
    return 0;
}

void token_encode(const struct token *token, char text[TOKEN_TEXT_SIZE])
{
    uint8_t bytes[BYTES];
    char *out = text + PREFIX;

    memcpy(bytes, token->id, TOKEN_ID_BYTES);
    memcpy(bytes + TOKEN_ID_BYTES, token->secret, TOKEN_SECRET_BYTES);
    memcpy(bytes + TOKEN_ID_BYTES + TOKEN_SECRET_BYTES, token->pin, TOKEN_PIN_BYTES);
    put_sum(bytes);
    memcpy(text, prefix, PREFIX);
    for (size_t i = 0; i < BYTES; i += 5) {
        uint64_t group = 0;

        for (size_t k = 0; k < 5; k++)
            group = group << 8 | bytes[i + k];
        for (int shift = 35; shift >= 0; shift -= 5)
            *out++ = digits[group >> shift & 31];
    }
    *out = 0;
}

static bool unpack(const char *text, uint8_t bytes[BYTES])
{
    for (size_t i = 0; i < BYTES; i += 5) {
        uint64_t group = 0;

        for (int k = 0; k < 8; k++, text++) {
            const char *digit = *text ? strchr(digits, *text) : NULL;

            if (!digit)
                return false;
            group = group << 5 | (uint64_t)(digit - digits);
        }
        for (size_t k = 0; k < 5; k++)
            bytes[i + k] = (uint8_t)(group >> (32 - 8 * k));
    }
    return true;
}

int token_decode(const char *text, size_t size, struct token *token, struct err *err)
{
    uint8_t bytes[BYTES], copy[BYTES];

    if (size < PREFIX || memcmp(text, prefix, PREFIX - 1) != 0)
        return err_set(err, -EINVAL,
                       "this is not a token: one begins with %s; `eadmin token` on the queue host prints one", prefix);
    if (text[PREFIX - 1] != prefix[PREFIX - 1])
        return err_set(err, -EINVAL, "this token is of another version of Elmer: install the same one on both hosts");
    if (size != TOKEN_TEXT_SIZE - 1)
        return err_set(err, -EINVAL, "the token has %zu characters, not %d: copy all of it, and nothing else", size,
                       TOKEN_TEXT_SIZE - 1);
    if (!unpack(text + PREFIX, bytes))
        return err_set(err, -EINVAL, "the token has a character that is in no token: copy it again");
    memcpy(copy, bytes, sizeof(copy));
    put_sum(copy);
    if (memcmp(copy, bytes, sizeof(copy)) != 0)
        return err_set(err, -EINVAL, "the token is mistyped (its checksum is wrong): copy it again");
    memcpy(token->id, bytes, TOKEN_ID_BYTES);
    memcpy(token->secret, bytes + TOKEN_ID_BYTES, TOKEN_SECRET_BYTES);
    memcpy(token->pin, bytes + TOKEN_ID_BYTES + TOKEN_SECRET_BYTES, TOKEN_PIN_BYTES);
    return 0;
}

void token_id(const struct token *token, char id[TOKEN_ID_SIZE])
{
    hex_write(token->id, sizeof(token->id), id);
}
