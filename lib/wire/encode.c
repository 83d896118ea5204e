/* encode.c - messages to JSON, driven by the tables, straight into the bytes that are sent. What a strict decoder would
 * refuse is refused here already, with the name of the field. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/text.h"
#include "lib/wire/table.h"
#include "lib/wire/wire.h"

struct encoder {
    unsigned minor;
    const char *message;
    struct text_out out;
    struct err *err;
};

/* Each encode_ returns 0 or what is wrong; memory that runs out is seen at the end. */
static int reject(struct encoder *e, int code, const struct wire_field *field, const char *why)
{
    return err_set(e->err, code, "%s: %s: %s", e->message, field->name, why);
}

static int encode_uint(struct encoder *e, const struct wire_field *field, uint64_t value, uint64_t limit)
{
    if (value > limit || value > INT64_MAX)
        return reject(e, -ERANGE, field, "the number is out of range");
    text_put_int(&e->out, (int64_t)value);
    return 0;
}

static int encode_int(struct encoder *e, const struct wire_field *field, int64_t value)
{
    if ((value >= 0 ? (uint64_t)value : 0 - (uint64_t)value) > field->limit)
        return reject(e, -ERANGE, field, "the number is out of range");
    text_put_int(&e->out, value);
    return 0;
}

static int encode_double(struct encoder *e, const struct wire_field *field, double value, uint64_t limit)
{
    if (!isfinite(value) || fabs(value) > (double)limit)
        return reject(e, -ERANGE, field, "the number is out of range");
    text_put_double(&e->out, value);
    return 0;
}

static int encode_str(struct encoder *e, const struct wire_field *field, const char *value, uint64_t limit)
{
    size_t length = !value ? 0 : strlen(value);

    if (length > limit)
        return reject(e, -EMSGSIZE, field, "the text is too long");
    return text_put_string(&e->out, !value ? "" : value, length) ? 0
                                                                 : reject(e, -EILSEQ, field, "the text is not UTF-8");
}

static int encode_fields(struct encoder *e, const struct wire_object *object, const void *in, bool first);

static int encode_item(struct encoder *e, const struct wire_field *field, const void *in)
{
    int result;

    if (field->kind == WIRE_KIND_STRS)
        return encode_str(e, field, *(const char *const *)in, WIRE_ITEM_STR_LIMIT);
    if (field->kind == WIRE_KIND_UINTS)
        return encode_uint(e, field, *(const uint64_t *)in, WIRE_ITEM_UINT_LIMIT);
    if (field->kind == WIRE_KIND_DOUBLES)
        return encode_double(e, field, *(const double *)in, WIRE_ITEM_DOUBLE_LIMIT);
    text_put_char(&e->out, '{');
    result = encode_fields(e, field->object, in, true);
    text_put_char(&e->out, '}');
    return result;
}

static int encode_list(struct encoder *e, const struct wire_field *field, const void *in)
{
    struct wire_list list;
    size_t size = wire_table_item_size(field);
    int result = 0;

    memcpy(&list, in, sizeof(list));
    if (list.count > field->limit)
        return reject(e, -EMSGSIZE, field, "too many items");
    text_put_char(&e->out, '[');
    for (size_t i = 0; result == 0 && i < list.count; i++) {
        if (i > 0)
            text_put_char(&e->out, ',');
        result = encode_item(e, field, (const char *)list.items + i * size);
    }
    text_put_char(&e->out, ']');
    return result;
}

static int encode_field(struct encoder *e, const struct wire_field *field, const void *in)
{
    switch (field->kind) {
    case WIRE_KIND_BOOL:
        if (*(const bool *)in)
            text_put(&e->out, "true", 4);
        else
            text_put(&e->out, "false", 5);
        return 0;
    case WIRE_KIND_UINT:
        return encode_uint(e, field, *(const uint64_t *)in, field->limit);
    case WIRE_KIND_INT:
        return encode_int(e, field, *(const int64_t *)in);
    case WIRE_KIND_DOUBLE:
        return encode_double(e, field, *(const double *)in, field->limit);
    case WIRE_KIND_STR:
        return encode_str(e, field, *(const char *const *)in, field->limit);
    case WIRE_KIND_STRS:
    case WIRE_KIND_UINTS:
    case WIRE_KIND_DOUBLES:
    case WIRE_KIND_LIST:
        return encode_list(e, field, in);
    case WIRE_KIND_COUNT:
        break;
    }
    abort();
}

/* Names of the table need no escapes. */
static int encode_fields(struct encoder *e, const struct wire_object *object, const void *in, bool first)
{
    int result = 0;

    for (const struct wire_field *field = object->fields(); result == 0 && field->name; field++) {
        if (field->since > e->minor)
            continue;
        text_put(&e->out, first ? "\"" : ",\"", first ? 1 : 2);
        text_put(&e->out, field->name, strlen(field->name));
        text_put(&e->out, "\":", 2);
        result = encode_field(e, field, (const char *)in + field->offset);
        first = false;
    }
    return result;
}

static int encode_root(struct encoder *e, const struct wire_message *message, size_t prefix)
{
    int result;

    text_put(&e->out, "\0\0\0", prefix); /* for whoever adds the header */
    text_put(&e->out, "{\"type\":\"", 9);
    text_put(&e->out, e->message, strlen(e->message));
    text_put(&e->out, "\",\"id\":", 7);
    text_put_int(&e->out, (int64_t)message->id);
    result = encode_fields(e, wire_table_message(message->type), &message->u, false);
    text_put(&e->out, "}", 2);
    if (result != 0)
        return result;
    return e->out.failed ? err_set(e->err, -ENOMEM, "%s: out of memory", e->message) : 0;
}

/* prefix: so many bytes are left free in front; at most a header's. */
static int encode(const struct wire_message *message, unsigned minor, size_t prefix, char **out, size_t *size,
                  struct err *err)
{
    struct encoder e = {.err = err};
    int result;

    if (message->type >= WIRE_TYPE_COUNT || message->id > INT64_MAX)
        return err_set(err, -ERANGE, "a message with no known type or with an id beyond INT64_MAX");
    e.minor = minor = wire_minor_of(message->type, minor);
    e.message = wire_type_name(message->type);
    if (wire_table_message(message->type)->since > minor)
        return err_set(err, -EPROTONOSUPPORT,
                       "%s: the other side speaks version %d.%u of Elmer's protocol, and this message came with %d.%u: "
                       "install the newer Elmer there too",
                       e.message, WIRE_MAJOR, minor, WIRE_MAJOR, wire_table_message(message->type)->since);
    result = encode_root(&e, message, prefix);
    *size = e.out.size - prefix - 1; /* without the NUL */
    if (result == 0 && *size > WIRE_MAX_FRAME)
        result = err_set(err, -EMSGSIZE, "%s: %zu bytes, a message has at most %d", e.message, *size, WIRE_MAX_FRAME);
    if (result != 0)
        free(e.out.data);
    else
        *out = e.out.data;
    return result;
}

int wire_encode(const struct wire_message *message, unsigned minor, char **json, size_t *size, struct err *err)
{
    return encode(message, minor, 0, json, size, err);
}

void wire_frame_header(uint8_t *header, size_t size)
{
    for (int i = 0; i < WIRE_FRAME_HEADER; i++)
        header[i] = (uint8_t)(size >> (8 * (WIRE_FRAME_HEADER - 1 - i)));
}

int wire_encode_frame(const struct wire_message *message, unsigned minor, uint8_t **frame, size_t *size,
                      struct err *err)
{
    char *bytes;
    int result = encode(message, minor, WIRE_FRAME_HEADER, &bytes, size, err);

    if (result != 0)
        return result;
    *frame = (uint8_t *)bytes;
    wire_frame_header(*frame, *size);
    *size += WIRE_FRAME_HEADER;
    return 0;
}
