#include "config.h"

#include "lib/ticket/bytes.h"

#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"

void bytes_put(struct bytes_writer *w, const void *bytes, size_t size)
{
    memcpy(w->bytes + w->size, bytes, size);
    w->size += size;
}

void bytes_put_number(struct bytes_writer *w, uint64_t number, unsigned bytes)
{
    while (bytes-- > 0)
        w->bytes[w->size++] = (uint8_t)(number >> (8 * bytes));
}

void bytes_put_text(struct bytes_writer *w, const char *text, size_t max)
{
    size_t length = strnlen(text, max);
    bytes_put_number(w, length, 2);
    bytes_put(w, text, length);
}

struct bytes_reader bytes_of_text(const char *text, uint8_t *bytes, size_t max)
{
    size_t length = strnlen(text, 2 * max + 1);
    bool good = length <= 2 * max && length % 2 == 0 && hex_read(text, bytes, length / 2);
    return (struct bytes_reader){bytes, good ? length / 2 : 0, !good};
}

void bytes_get(struct bytes_reader *r, void *out, size_t size)
{
    r->bad = r->bad || size > r->left;
    if (r->bad)
        return;
    memcpy(out, r->at, size);
    r->at += size;
    r->left -= size;
}

uint64_t bytes_get_number(struct bytes_reader *r, unsigned bytes)
{
    uint8_t digits[8] = {0};
    uint64_t number = 0;
    bytes_get(r, digits, bytes);
    for (unsigned i = 0; i < bytes; i++)
        number = number << 8 | digits[i];
    return number;
}

void bytes_get_text(struct bytes_reader *r, char *out, size_t max)
{
    size_t length = (size_t)bytes_get_number(r, 2);
    r->bad = r->bad || length > max;
    if (r->bad)
        return;
    bytes_get(r, out, length);
    out[r->bad ? 0 : length] = 0;
    r->bad = r->bad || strlen(out) != length || !str_valid_utf8(out, length);
}

void bytes_get_head(struct bytes_reader *r, const char *head)
{
    size_t length = strlen(head);
    r->bad = r->bad || length > r->left || memcmp(r->at, head, length) != 0;
    if (r->bad)
        return;
    r->at += length;
    r->left -= length;
}
