/* bytes.h - how passes and warrants are written and read: numbers with their high byte first, texts with their length
 * before them (2 bytes) and no NUL. */
#ifndef LIB_TICKET_BYTES_H
#define LIB_TICKET_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes_writer {
    uint8_t *bytes; /* has room */
    size_t size;
};
void bytes_put(struct bytes_writer *w, const void *bytes, size_t size);
void bytes_put_number(struct bytes_writer *w, uint64_t number, unsigned bytes);
void bytes_put_text(struct bytes_writer *w, const char *text, size_t max);

struct bytes_reader {
    const uint8_t *at;
    size_t left;
    bool bad; /* there was less, or a text that is none: what is read from then on is nothing */
};
/* The hexadecimal text, for reading; bytes has room for max. What is longer or no such text is bad. */
struct bytes_reader bytes_of_text(const char *text, uint8_t *bytes, size_t max);
void bytes_get(struct bytes_reader *r, void *out, size_t size);
uint64_t bytes_get_number(struct bytes_reader *r, unsigned bytes);
void bytes_get_text(struct bytes_reader *r, char *out, size_t max); /* out has max + 1 */
/* The words that everything begins with. */
void bytes_get_head(struct bytes_reader *r, const char *head);

#endif
