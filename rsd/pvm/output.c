#include "config.h"

#include "rsd/pvm/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void output_init(struct output *output, int fd)
{
    *output = (struct output){.fd = fd};
}

void output_fini(struct output *output)
{
    for (size_t i = 0; i < output->count; i++)
        free(output->streams[i].line);
    free(output->streams);
    *output = (struct output){.fd = -1};
}

static struct output_stream *find(struct output *output, int tid)
{
    for (size_t i = 0; i < output->count; i++)
        if (output->streams[i].tid == tid)
            return &output->streams[i];
    return NULL;
}

static struct output_stream *find_or_add(struct output *output, int tid)
{
    struct output_stream *stream = find(output, tid);
    if (stream)
        return stream;
    if (output->count == output->capacity) {
        size_t capacity = output->capacity ? 2 * output->capacity : 16;
        struct output_stream *streams = realloc(output->streams, capacity * sizeof(*streams));
        if (!streams)
            return NULL;
        output->streams = streams;
        output->capacity = capacity;
    }
    stream = &output->streams[output->count++];
    *stream = (struct output_stream){.tid = tid};
    return stream;
}

/* One write(2) as long as the file takes it all; only a full pipe or disk makes it more. */
static void write_all(struct output *output, const char *text, size_t size)
{
    while (size) {
        ssize_t n = write(output->fd, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (!output->error)
                output->error = n < 0 ? errno : EIO;
            return;
        }
        text += n;
        size -= (size_t)n;
    }
}

/* Room for size more bytes and a newline. */
static int reserve(struct output_stream *stream, size_t size)
{
    size_t need = stream->length + size + 1;
    if (need <= stream->capacity)
        return 0;
    size_t capacity = need < 256 ? 256 : need + need / 2;
    char *line = realloc(stream->line, capacity);
    if (line) {
        stream->line = line;
        stream->capacity = capacity;
    }
    return line ? 0 : -ENOMEM;
}

/* Write the first size bytes of the stream, keep the rest. */
static void write_out(struct output *output, struct output_stream *stream, size_t size)
{
    write_all(output, stream->line, size);
    stream->length -= size;
    memmove(stream->line, stream->line + size, stream->length);
}

static void finish_line(struct output *output, struct output_stream *stream)
{
    if (stream->length == 0)
        return;
    stream->line[stream->length++] = '\n'; /* reserve() has left room */
    write_out(output, stream, stream->length);
}

int output_begin(struct output *output, int tid)
{
    return find_or_add(output, tid) ? 0 : -ENOMEM;
}

/* At most as much of the text as makes the longest line, so that a stream never holds more than that. */
static size_t piece_of(const struct output_stream *stream, size_t size)
{
    size_t room = OUTPUT_LINE_MAX - stream->length;
    return size < room ? size : room;
}

int output_text(struct output *output, int tid, const char *text, size_t size)
{
    struct output_stream *stream = find_or_add(output, tid);
    if (!stream)
        return -ENOMEM;
    while (size) {
        size_t piece = piece_of(stream, size);
        if (reserve(stream, piece))
            return -ENOMEM;
        memcpy(stream->line + stream->length, text, piece);
        stream->length += piece;
        text += piece;
        size -= piece;
        const char *newline = memrchr(stream->line, '\n', stream->length);
        if (newline)
            write_out(output, stream, (size_t)(newline - stream->line) + 1);
        else if (stream->length == OUTPUT_LINE_MAX)
            finish_line(output, stream);
    }
    return 0;
}

void output_end(struct output *output, int tid)
{
    struct output_stream *stream = find(output, tid);
    if (!stream)
        return;
    finish_line(output, stream);
    free(stream->line);
    *stream = output->streams[--output->count];
}

void output_flush(struct output *output)
{
    for (size_t i = 0; i < output->count; i++)
        finish_line(output, &output->streams[i]);
}
