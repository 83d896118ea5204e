/* fuzz_text.c - strings from anywhere: UTF-8, what is made printable, names, numbers, addresses, values. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/config/ini.h"
#include "lib/base/str.h"
#include "lib/net/address.h"
#include "rsd/root/internal.h"
#include "tests/fuzz/fuzz.h"

/* One of the nine that turn a line around: U+202A..202E, U+2066..2069. */
static bool turns(const char *text, size_t length)
{
    for (unsigned c = 0x202A; c <= 0x2069; c = c == 0x202E ? 0x2066 : c + 1) {
        const char utf8[] = {(char)(0xE0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3F)), (char)(0x80 | (c & 0x3F))};

        if (memmem(text, length, utf8, sizeof(utf8)))
            return true;
    }
    return false;
}

/* What is left as it is: no control character, of C1 neither, and nothing that turns a line around. */
static bool is_clean(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7F || (unsigned char)text[i] == 0xC2)
            return false;
    }
    return str_valid_utf8(text, length) && !turns(text, length);
}

static void check_printable(const char *text, size_t length, size_t size)
{
    char *out = malloc(size), *twice = malloc(4 * size + 4);

    if (!out || !twice)
        abort();
    FUZZ_CHECK(str_printable(out, size, text, length) == out, "another buffer");
    FUZZ_CHECK(strlen(out) < size && str_valid_utf8(out, strlen(out)), "not UTF-8 in %zu bytes", size);
    for (const char *c = out; *c != '\0'; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7F, "a control character is left");
    FUZZ_CHECK(!turns(out, strlen(out)), "a line can be turned around");
    FUZZ_CHECK(strcmp(str_printable(twice, 4 * size + 4, out, strlen(out)), out) == 0, "printable is not printable");
    if (length < size && is_clean(text, length))
        FUZZ_CHECK(strlen(out) == length && memcmp(out, text, length) == 0, "clean text was changed");
    free(out);
    free(twice);
}

static void check_number(const char *text)
{
    uint64_t number, again;
    char digits[24];

    if (!str_to_u64(text, &number))
        return;
    (void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
    FUZZ_CHECK(strcmp(text + strspn(text, "0") - (number == 0), digits) == 0, "\"%s\" is %s", text, digits);
    FUZZ_CHECK(str_to_u64(digits, &again) && again == number, "%s", digits);
}

static void check_names(const char *text)
{
    uint64_t id;
    uint32_t attempt;

    if (str_valid_hostname(text))
        FUZZ_CHECK(*text != '-' && *text != '.' && strlen(text) <= 255 && !strpbrk(text, " /:\n%\"'$"),
                   "a host name: %s", text);
    if (job_name_parse(text, &id, &attempt))
        FUZZ_CHECK(isdigit((unsigned char)*text) && !strchr(text, '/'), "a job's name: %s", text);
}

static void check_values(const char *text)
{
    struct err err = ERR_INIT;
    long number;
    double real;
    int truth;

    if (ini_parse_int(text, -1000, 1000, &number, &err) == 0)
        FUZZ_CHECK(number >= -1000 && number <= 1000, "%s: %ld", text, number);
    else
        FUZZ_CHECK(err.text[0] != '\0', "no reason");
    if (ini_parse_double(text, 0, 1, &real, NULL) == 0)
        FUZZ_CHECK(isfinite(real) && real > 0 && real < 1, "%s: %g", text, real);
    if (ini_parse_duration_ms(text, 0, 86400000, &number, NULL) == 0)
        FUZZ_CHECK(number >= 0 && number <= 86400000, "%s: %ld", text, number);
    if (ini_parse_bool(text, &truth, NULL) == 0)
        FUZZ_CHECK(truth == 0 || truth == 1, "%s: %d", text, truth);
}

static void check_address(const char *text)
{
    struct address address;
    struct err err = ERR_INIT;
    int result = address_parse(text, &address, &err);

    if (result != 0)
        FUZZ_CHECK(err.text[0] != '\0', "no reason for %d", result);
    else if (!address.path)
        FUZZ_CHECK(address.host[0] != '\0' && address.port[0] != '\0' && strlen(address.port) <= 5, "%s", text);
}

static void check_time(struct input *input)
{
    uint64_t ms = 0;
    char text[32];

    for (int i = 0; i < 8; i++)
        ms = ms << 8 | input_byte(input);
    wall_format((struct wall){.ms = (int64_t)ms}, text, sizeof(text));
    FUZZ_CHECK(strlen(text) == 24 && text[23] == 'Z', "%s", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    size_t room = 1 + input_byte(&input);
    char *text, *other;

    check_time(&input);
    check_printable(input.left > 0 ? (const char *)input.at : "", input.left, room);
    other = input_line(&input);
    text = input_rest(&input);
    check_number(text);
    check_names(text);
    check_values(text);
    check_address(text);
    FUZZ_CHECK(str_distance(text, other) == str_distance(other, text), "\"%s\" \"%s\"", text, other);
    free(text);
    free(other);
    return 0;
}
