#include "config.h"

#include "rsd/courier/typed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "lib/run/link.h"

enum { ROOM = 2 * RUN_WINDOW, END_OF_FILE = 4 };

bool typed_init(struct typed *typed)
{
    *typed = (struct typed){.bytes = malloc(ROOM), .last = '\n'};
    return typed->bytes != NULL;
}

void typed_fini(struct typed *typed)
{
    free(typed->bytes);
    typed->bytes = NULL;
}

void typed_begin(struct typed *typed)
{
    size_t left = typed->end - typed->begin;
    if (left > RUN_WINDOW) {
        typed->begin += left - RUN_WINDOW;
        left = RUN_WINDOW;
    }
    typed->of_before = left;
    typed->came = typed->went = 0;
    typed->ended = typed->end_waits = false;
    typed->ends = 0;
}

bool typed_put(struct typed *typed, const void *bytes, size_t size)
{
    if (typed->ended || size > RUN_WINDOW - (size_t)(typed->came - typed->went))
        return false;
    if (size > ROOM - typed->end) {
        typed->end -= typed->begin;
        memmove(typed->bytes, typed->bytes + typed->begin, typed->end);
        typed->begin = 0;
    }
    assert(size <= ROOM - typed->end);
    memcpy(typed->bytes + typed->end, bytes, size);
    typed->end += size;
    typed->came += size;
    return true;
}

void typed_end(struct typed *typed)
{
    typed->end_waits = typed->end_waits || !typed->ended;
    typed->ended = true;
}

bool typed_waits(const struct typed *typed)
{
    return typed->end > typed->begin || typed->end_waits;
}

const uint8_t *typed_at(const struct typed *typed, size_t *size)
{
    *size = typed->end - typed->begin;
    return typed->bytes + typed->begin;
}

size_t typed_take(struct typed *typed, size_t size)
{
    size_t before = size < typed->of_before ? size : typed->of_before;
    assert(size <= typed->end - typed->begin);
    typed->begin += size;
    if (typed->begin == typed->end)
        typed->begin = typed->end = 0;
    typed->of_before -= before;
    typed->went += size - before;
    return size - before;
}

/* Behind a part of a line the character hands that out, and only a second one is an end. */
static int ends_of(const struct typed *typed, const struct termios *modes)
{
    bool begun = typed->last != '\n' && !(typed->last == '\r' && modes->c_iflag & ICRNL) &&
                 typed->last != modes->c_cc[VEOF] && typed->last != modes->c_cc[VEOL];
    return begun && modes->c_lflag & ICANON ? 2 : 1;
}

static void write_end(struct typed *typed, int fd)
{
    struct termios modes;
    uint8_t bytes[2] = {END_OF_FILE, END_OF_FILE};
    ssize_t written;
    if (tcgetattr(fd, &modes) < 0)
        modes = (struct termios){.c_cc = {[VEOF] = END_OF_FILE}};
    if (typed->ends == 0)
        typed->ends = ends_of(typed, &modes);
    if (modes.c_lflag & ICANON && modes.c_cc[VEOF] != _POSIX_VDISABLE)
        bytes[0] = bytes[1] = modes.c_cc[VEOF];
    written = write(fd, bytes, (size_t)typed->ends);
    if (written > 0)
        typed->ends -= (int)written;
    typed->end_waits = typed->ends > 0;
}

size_t typed_write(struct typed *typed, int fd)
{
    size_t size, own = 0;
    const uint8_t *bytes = typed_at(typed, &size);
    ssize_t written = size > 0 ? write(fd, bytes, size) : 0;
    if (written > 0) {
        typed->last = bytes[written - 1];
        own = typed_take(typed, (size_t)written);
    }
    if (typed->end == typed->begin && typed->end_waits)
        write_end(typed, fd);
    return own;
}
