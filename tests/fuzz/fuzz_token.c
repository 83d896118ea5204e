/* fuzz_token.c - the token that lets a host join. Every token survives the way through its text; a text with any other
 * character anywhere is refused; what is accepted is exactly what the encoder makes. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/pki/token.h"
#include "tests/fuzz/fuzz.h"

static void check_refusal(int result, const struct err *err)
{
    FUZZ_CHECK(result == -EINVAL && err->text[0] != '\0', "%d \"%s\"", result, err->text);
    for (const char *c = err->text; *c != '\0'; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7F, "a control character in \"%s\"", err->text);
}

static void decode_any(const uint8_t *data, size_t size)
{
    struct token token, untouched;
    struct err err = ERR_INIT;
    char text[TOKEN_TEXT_SIZE];
    int result;

    memset(&token, 0x5A, sizeof(token));
    untouched = token;
    result = token_decode((const char *)data, size, &token, &err);
    if (result != 0) {
        check_refusal(result, &err);
        FUZZ_CHECK(memcmp(&token, &untouched, sizeof(token)) == 0, "a refused token has changed what was there");
        return;
    }
    token_encode(&token, text);
    FUZZ_CHECK(size == strlen(text) && memcmp(text, data, size) == 0, "two texts of one token");
}

static void round_trip(struct input *input)
{
    uint8_t bytes[sizeof(struct token)] = {0}, id[TOKEN_ID_BYTES];
    struct token token, again;
    struct err err = ERR_INIT;
    char text[TOKEN_TEXT_SIZE], hex[TOKEN_ID_SIZE];
    size_t at = input_below(input, TOKEN_TEXT_SIZE - 1);
    uint8_t other = input_byte(input);

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = input_byte(input);
    memcpy(&token, bytes, sizeof(token));
    token_encode(&token, text);
    FUZZ_CHECK(token_decode(text, strlen(text), &again, &err) == 0, "%s: %s", text, err.text);
    FUZZ_CHECK(memcmp(&token, &again, sizeof(token)) == 0, "another token: %s", text);
    token_id(&token, hex);
    FUZZ_CHECK(hex_read(hex, id, sizeof(id)) && memcmp(id, token.id, sizeof(id)) == 0, "id %s", hex);
    if ((char)other == text[at])
        return;
    text[at] = (char)other;
    check_refusal(token_decode(text, TOKEN_TEXT_SIZE - 1, &again, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    uint8_t hex[4];
    char *text;

    decode_any(data, size);
    round_trip(&input);
    text = input_line(&input);
    (void)hex_read(text, hex, sizeof(hex));
    free(text);
    return 0;
}
