/* frame.c - a frame is a 4-byte big-endian length and so many bytes of JSON. Memory grows with the bytes that have
 * come, never with the length that a peer claims. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/wire/channel.h"

enum { KEEP_BYTES = 64 * 1024 /* a larger buffer is given back once it is empty */ };

static size_t header_length(const uint8_t *header)
{
    return (size_t)header[0] << 24 | (size_t)header[1] << 16 | (size_t)header[2] << 8 | header[3];
}

void frame_reader_init(struct frame_reader *reader, size_t max_frame)
{
    *reader = (struct frame_reader){.max = max_frame};
}

void frame_reader_fini(struct frame_reader *reader)
{
    free(reader->data);
    *reader = (struct frame_reader){.max = reader->max};
}

static int reserve(struct frame_reader *reader, size_t more)
{
    size_t capacity = reader->capacity;
    uint8_t *grown;

    if (capacity - reader->size >= more)
        return 0;
    while (capacity - reader->size < more)
        capacity = capacity == 0 ? 512 : 2 * capacity;
    grown = realloc(reader->data, capacity);
    if (grown == NULL)
        return -ENOMEM;
    reader->data = grown;
    reader->capacity = capacity;
    return 0;
}

/* Forget the frames that were handed out. */
static void compact(struct frame_reader *reader)
{
    if (reader->begin == 0)
        return;
    memmove(reader->data, reader->data + reader->begin, reader->size - reader->begin);
    reader->size -= reader->begin;
    reader->header -= reader->begin;
    reader->begin = 0;
}

int frame_reader_push(struct frame_reader *reader, const uint8_t *bytes, size_t size)
{
    compact(reader);
    while (size > 0) {
        /* Up to the end of the header that comes next, or of the frame before it. */
        size_t end = reader->size < reader->header ? reader->header : reader->header + WIRE_FRAME_HEADER;
        size_t part = end - reader->size < size ? end - reader->size : size;
        int code = reserve(reader, part);

        if (code != 0)
            return code;
        memcpy(reader->data + reader->size, bytes, part);
        reader->size += part;
        bytes += part;
        size -= part;
        if (reader->size == reader->header + WIRE_FRAME_HEADER) {
            size_t length = header_length(reader->data + reader->header);

            if (length == 0 || length > reader->max)
                return -EMSGSIZE;
            reader->header += WIRE_FRAME_HEADER + length;
        }
    }
    return 0;
}

int frame_reader_next(struct frame_reader *reader, const char **json, size_t *size)
{
    size_t left = reader->size - reader->begin, length;

    if (left == 0 && reader->capacity > KEEP_BYTES) {
        frame_reader_fini(reader);
        return 0;
    }
    if (left < WIRE_FRAME_HEADER)
        return 0;
    length = header_length(reader->data + reader->begin);
    if (left - WIRE_FRAME_HEADER < length)
        return 0;
    *json = (const char *)reader->data + reader->begin + WIRE_FRAME_HEADER;
    *size = length;
    reader->begin += WIRE_FRAME_HEADER + length;
    return 1;
}
