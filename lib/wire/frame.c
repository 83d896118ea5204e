/* frame.c - a frame is a 4-byte big-endian length and so many bytes of JSON. Memory grows with the bytes that have
 * come, never with the length that a peer claims. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/channel.h"

enum {
    KEEP_BYTES = 64 * 1024 /* a larger buffer is given back once it is empty */,
    BEGINNING = 480 /* of a lost frame */
};

size_t wire_frame_length(const uint8_t *header)
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
    *reader = (struct frame_reader){.max = reader->max, .may_lose = reader->may_lose};
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
    if (!grown)
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
    assert(reader->begin <= reader->size && reader->size <= reader->capacity);
    memmove(reader->data, reader->data + reader->begin, reader->size - reader->begin);
    reader->size -= reader->begin;
    reader->header -= reader->begin;
    reader->lost_at -= reader->lost ? reader->begin : 0;
    reader->begin = 0;
}

/* Of the frame that is coming, the last in the buffer, only the beginning stays; the rest of it will be thrown away.
 * One at a time. Returns how much of bytes was taken, -1: not possible. */
static ptrdiff_t cut_short(struct frame_reader *reader, const uint8_t *bytes, size_t size)
{
    size_t at = reader->begin, room = reader->capacity - reader->size, part = room < size ? room : size;

    if (!reader->may_lose || reader->lost || reader->size >= reader->header)
        return -1;
    while (at + WIRE_FRAME_HEADER + wire_frame_length(reader->data + at) != reader->header)
        at += WIRE_FRAME_HEADER + wire_frame_length(reader->data + at);
    if (part > 0)
        memcpy(reader->data + reader->size, bytes, part);
    reader->size += part;
    reader->skip = reader->header - reader->size;
    if (reader->size > at + WIRE_FRAME_HEADER + BEGINNING) /* room for what follows it */
        reader->size = at + WIRE_FRAME_HEADER + BEGINNING;
    reader->header = reader->size;
    reader->lost_at = at;
    reader->lost = reader->size > at + WIRE_FRAME_HEADER;
    wire_frame_header(reader->data + at, reader->size - at - WIRE_FRAME_HEADER);
    return reader->lost ? (ptrdiff_t)part : -1;
}

int frame_reader_push(struct frame_reader *reader, const uint8_t *bytes, size_t size)
{
    compact(reader);
    while (size > 0) {
        /* Up to the end of the header that comes next, or of the frame before it. */
        size_t end = reader->size < reader->header ? reader->header : reader->header + WIRE_FRAME_HEADER;
        size_t part = end - reader->size < size ? end - reader->size : size;
        int result;

        if (reader->skip > 0) {
            part = reader->skip < size ? reader->skip : size;
            reader->skip -= part;
            bytes += part;
            size -= part;
            continue;
        }
        assert(part > 0);
        result = reserve(reader, part);
        if (result != 0) {
            ptrdiff_t taken = cut_short(reader, bytes, part);

            if (taken < 0)
                return result;
            bytes += taken;
            size -= (size_t)taken;
            continue;
        }
        memcpy(reader->data + reader->size, bytes, part);
        reader->size += part;
        bytes += part;
        size -= part;
        if (reader->size == reader->header + WIRE_FRAME_HEADER) {
            size_t length = wire_frame_length(reader->data + reader->header);

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
    bool lost = reader->lost && reader->begin == reader->lost_at;

    if (lost && reader->skip > 0)
        return 0;
    if (left == 0 && reader->capacity > KEEP_BYTES) {
        frame_reader_fini(reader);
        return 0;
    }
    if (left < WIRE_FRAME_HEADER)
        return 0;
    length = wire_frame_length(reader->data + reader->begin);
    if (left - WIRE_FRAME_HEADER < length)
        return 0;
    *json = (const char *)reader->data + reader->begin + WIRE_FRAME_HEADER;
    *size = length;
    reader->begin += WIRE_FRAME_HEADER + length;
    reader->lost = reader->lost && !lost;
    return lost ? 2 : 1;
}
