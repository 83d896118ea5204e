/* token.h - the word that lets a host join once: "elmer1", then id, secret, SHA-256 of the CA's certificate and a
 * checksum, in base 32.
 *
 * Only letters and digits: a shell takes it as one word, and a double click selects all of it. The secret itself is
 * never sent: the host proves that it has it. */
#ifndef LIB_PKI_TOKEN_H
#define LIB_PKI_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum {
    TOKEN_ID_BYTES = 8,
    TOKEN_SECRET_BYTES = 16,
    TOKEN_PIN_BYTES = 32,
    TOKEN_TEXT_SIZE = 103, /* with the NUL */
    TOKEN_ID_SIZE = 17     /* hexadecimal, with the NUL */
};

struct token {
    uint8_t id[TOKEN_ID_BYTES], secret[TOKEN_SECRET_BYTES], pin[TOKEN_PIN_BYTES];
};

/* A new one for the CA with this hash. 0 or -errno. */
int token_create(const uint8_t pin[TOKEN_PIN_BYTES], struct token *token, struct err *err);
void token_encode(const struct token *token, char text[TOKEN_TEXT_SIZE]);
/* Strict: exactly what token_encode() makes. -EINVAL with a sentence about what is wrong; token is then untouched. */
int token_decode(const char *text, size_t size, struct token *token, struct err *err);
void token_id(const struct token *token, char id[TOKEN_ID_SIZE]);

#endif
