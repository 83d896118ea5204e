/* fuzz_frames.c - the frame reader, fed in pieces of any size. However the bytes are cut, the same frames come out, and
 * the same byte is refused; memory does not follow a claimed length. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/channel.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_FRAME = 300, PIECES = 8, ROOM_LEFT = 4096 };

/* What is right, in the plain way: the frame that begins at `at`. 1: whole, 0: more bytes are needed, -1: bad. */
static int plain_next(const uint8_t *data, size_t size, size_t at, size_t *length)
{
    if (size - at < WIRE_FRAME_HEADER)
        return 0;
    *length = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 | (size_t)data[at + 2] << 8 | data[at + 3];
    if (*length == 0 || *length > MAX_FRAME)
        return -1;
    return size - at - WIRE_FRAME_HEADER >= *length;
}

/* All frames that are there now are the next ones of data; returns where they end. */
static size_t take_frames(struct frame_reader *reader, const uint8_t *data, size_t pushed, size_t at)
{
    const char *json;
    size_t size, length;

    while (frame_reader_next(reader, &json, &size) == 1) {
        FUZZ_CHECK(plain_next(data, pushed, at, &length) == 1, "a frame at %zu that is not there", at);
        FUZZ_CHECK(size == length && memcmp(json, data + at + WIRE_FRAME_HEADER, size) == 0, "another frame at %zu",
                   at);
        at += WIRE_FRAME_HEADER + length;
    }
    FUZZ_CHECK(plain_next(data, pushed, at, &length) != 1, "the frame at %zu is missing", at);
    return at;
}

static bool any_bad(const uint8_t *data, size_t size)
{
    size_t at = 0, length;
    int found;

    while ((found = plain_next(data, size, at, &length)) == 1)
        at += WIRE_FRAME_HEADER + length;
    return found < 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_reader reader;
    const uint8_t *pieces = data;
    size_t pushed = 0, at = 0;

    if (size < PIECES)
        return 0;
    data += PIECES;
    size -= PIECES;
    frame_reader_init(&reader, MAX_FRAME);
    for (size_t i = 0; pushed < size; i++) {
        size_t piece = pieces[i % PIECES] + (i < PIECES ? 0u : 1u); /* an empty piece at first, too */
        uint8_t *bytes;
        int result;

        if (piece > size - pushed)
            piece = size - pushed;
        bytes = malloc(piece + 1); /* of its own, so that a byte too many is seen */
        if (!bytes)
            abort();
        memcpy(bytes, data + pushed, piece);
        result = frame_reader_push(&reader, bytes, piece);
        free(bytes);
        pushed += piece;
        if (result != 0) {
            FUZZ_CHECK(result == -EMSGSIZE && any_bad(data, pushed), "refused with %d", result);
            break;
        }
        FUZZ_CHECK(!any_bad(data, pushed), "a bad length is not refused");
        FUZZ_CHECK(reader.capacity <= 2 * pushed + ROOM_LEFT, "%zu bytes for %zu", reader.capacity, pushed);
        if (pieces[i % PIECES] % 3 != 0 || pushed == size) /* several pieces may come before anybody looks */
            at = take_frames(&reader, data, pushed, at);
    }
    frame_reader_fini(&reader);
    return 0;
}
