/* client_output.c - a part of what a job has written. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "libelmer/client.h"

struct read {
    struct elmer_part part; /* first: what the caller sees */
    char bytes[];
};

static int take_part(struct wire_message *answer, void *data)
{
    const struct wire_output_part *part = &answer->u.output_part;
    size_t count = answer->type == WIRE_output_part ? strlen(part->data) / 2 : 0;
    struct read **out = data, *read;

    if (answer->type != WIRE_output_part || strlen(part->data) % 2 != 0)
        return -EPROTO;
    read = calloc(1, sizeof(*read) + count + 1);
    if (!read)
        return -ENOMEM;
    if (!hex_read_digits(part->data, (uint8_t *)read->bytes, count)) {
        free(read);
        return -EPROTO;
    }
    read->part = (struct elmer_part){.offset = part->offset, .size = part->size, .bytes = read->bytes, .count = count};
    free(*out);
    *out = read;
    return 0;
}

struct output {
    struct read *read; /* NULL: it has not come */
};

static int take_output(struct wire_message *answer, void *data)
{
    struct output *output = data;

    return take_part(answer, &output->read);
}

static void free_output(void *data)
{
    struct output *output = data;

    free(output->read);
    free(output);
}

static struct elmer_call *make(struct elmer *elmer, uint64_t job, uint32_t rank, bool errors, int64_t offset)
{
    const struct wire_message request = {
        .type = WIRE_read_output, .u.read_output = {.job = job, .rank = rank, .errors = errors, .offset = offset}};
    struct output *output = calloc(1, sizeof(*output));
    const struct client_call call = {.take = take_output, .data = output};

    return client_call_create(elmer, &request, &call, output, free_output);
}

static struct elmer_part *part_of(struct output *output)
{
    struct read *read = output ? output->read : NULL;

    free(output);
    return read ? &read->part : NULL;
}

int elmer_read_output(struct elmer *elmer, uint64_t job, uint32_t rank, bool errors, int64_t offset, int timeout_ms,
                      struct elmer_part **part, struct elmer_error *error)
{
    void *output;
    int result = client_call_run(make(elmer, job, rank, errors, offset), timeout_ms, &output, error);

    *part = part_of(output);
    return result;
}

int elmer_read_output_begin(struct elmer *elmer, uint64_t job, uint32_t rank, bool errors, int64_t offset,
                            int timeout_ms, struct elmer_call **call, struct elmer_error *error)
{
    return client_call_begin(make(elmer, job, rank, errors, offset), timeout_ms, call, error);
}

struct elmer_part *elmer_call_part(struct elmer_call *call)
{
    return part_of(client_call_answer(call, free_output));
}

void elmer_part_free(struct elmer_part *part)
{
    free(part);
}
