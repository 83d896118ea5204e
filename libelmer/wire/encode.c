/* encode.c - messages to JSON, driven by the tables; with decode.c the adapter of jansson. What a strict decoder would
 * refuse is refused here already, with the name of the field. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/base/str.h"
#include "libelmer/wire/table.h"
#include "libelmer/wire/wire.h"

struct encoder {
    unsigned minor;
    const char *message;
    int code;
    struct err *err;
};

static json_t *reject(struct encoder *e, int code, const struct wire_field *field, const char *why)
{
    e->code = code;
    (void)err_set(e->err, code, "%s: %s: %s", e->message, field->name, why);
    return NULL;
}

static json_t *encode_uint(struct encoder *e, const struct wire_field *field, uint64_t value, uint64_t limit)
{
    if (value > limit || value > INT64_MAX)
        return reject(e, -ERANGE, field, "the number is out of range");
    return json_integer((json_int_t)value);
}

static json_t *encode_int(struct encoder *e, const struct wire_field *field, int64_t value)
{
    if ((value >= 0 ? (uint64_t)value : 0 - (uint64_t)value) > field->limit)
        return reject(e, -ERANGE, field, "the number is out of range");
    return json_integer(value);
}

static json_t *encode_double(struct encoder *e, const struct wire_field *field, double value, uint64_t limit)
{
    if (!isfinite(value) || fabs(value) > (double)limit)
        return reject(e, -ERANGE, field, "the number is out of range");
    return json_real(value);
}

static json_t *encode_str(struct encoder *e, const struct wire_field *field, const char *value, uint64_t limit)
{
    size_t length = value == NULL ? 0 : strlen(value);

    if (length > limit)
        return reject(e, -EMSGSIZE, field, "the text is too long");
    if (length > 0 && !str_valid_utf8(value, length))
        return reject(e, -EILSEQ, field, "the text is not UTF-8");
    return json_stringn_nocheck(length > 0 ? value : "", length);
}

static json_t *encode_object(struct encoder *e, const struct wire_object *object, const void *in, json_t *json);

static json_t *encode_item(struct encoder *e, const struct wire_field *field, const void *in)
{
    json_t *json;

    if (field->kind == WIRE_KIND_STRS)
        return encode_str(e, field, *(const char *const *)in, WIRE_ITEM_STR_LIMIT);
    if (field->kind == WIRE_KIND_UINTS)
        return encode_uint(e, field, *(const uint64_t *)in, WIRE_ITEM_UINT_LIMIT);
    if (field->kind == WIRE_KIND_DOUBLES)
        return encode_double(e, field, *(const double *)in, WIRE_ITEM_DOUBLE_LIMIT);
    json = json_object();
    return json == NULL ? NULL : encode_object(e, field->object, in, json);
}

static json_t *encode_list(struct encoder *e, const struct wire_field *field, const void *in)
{
    struct wire_list list;
    size_t size = wire_table_item_size(field);
    json_t *array;

    memcpy(&list, in, sizeof list);
    if (list.count > field->limit)
        return reject(e, -EMSGSIZE, field, "too many items");
    array = json_array();
    for (size_t i = 0; array != NULL && i < list.count; i++) {
        json_t *item = encode_item(e, field, (const char *)list.items + i * size);

        if (item == NULL || json_array_append_new(array, item) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *encode_field(struct encoder *e, const struct wire_field *field, const void *in)
{
    switch (field->kind) {
    case WIRE_KIND_BOOL:
        return json_boolean(*(const bool *)in);
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

/* Adds the fields to json and returns it; frees it on failure. */
static json_t *encode_object(struct encoder *e, const struct wire_object *object, const void *in, json_t *json)
{
    for (const struct wire_field *field = object->fields(); field->name != NULL; field++) {
        json_t *value;

        if (field->since > e->minor)
            continue;
        value = encode_field(e, field, (const char *)in + field->offset);
        if (value == NULL || json_object_set_new_nocheck(json, field->name, value) != 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

static json_t *encode_root(struct encoder *e, const struct wire_message *message)
{
    json_t *root = json_object();

    if (root == NULL || json_object_set_new_nocheck(root, "type", json_string_nocheck(e->message)) != 0 ||
        json_object_set_new_nocheck(root, "id", json_integer((json_int_t)message->id)) != 0) {
        json_decref(root);
        return NULL;
    }
    return encode_object(e, wire_table_message(message->type), &message->u, root);
}

struct sink {
    uint8_t *data;
    size_t size, capacity;
    bool failed; /* jansson does not stop at every failure of its callback */
};

static int sink_put(const char *bytes, size_t size, void *data)
{
    struct sink *sink = data;

    if (sink->capacity - sink->size <= size) {
        size_t capacity = 2 * sink->capacity + size + 1;
        uint8_t *grown = realloc(sink->data, capacity);

        if (grown == NULL) {
            sink->failed = true;
            return -1;
        }
        sink->data = grown;
        sink->capacity = capacity;
    }
    memcpy(sink->data + sink->size, bytes, size);
    sink->size += size;
    return 0;
}

/* The bytes, after prefix bytes left free, and a NUL. */
static int dump(const json_t *root, size_t prefix, struct sink *sink)
{
    *sink = (struct sink){.size = prefix, .capacity = 256};
    sink->data = malloc(sink->capacity);
    if (sink->data == NULL)
        return -ENOMEM;
    if (json_dump_callback(root, sink_put, sink, JSON_COMPACT | JSON_REAL_PRECISION(17)) != 0 || sink->failed) {
        free(sink->data);
        return -ENOMEM;
    }
    sink->data[sink->size] = '\0';
    return 0;
}

static int encode(const struct wire_message *message, unsigned minor, size_t prefix, uint8_t **out, size_t *size,
                  struct err *err)
{
    struct encoder e = {.minor = minor, .code = -ENOMEM, .err = err};
    struct sink sink;
    json_t *root;
    int code;

    if (message->type >= WIRE_TYPE_COUNT || message->id > INT64_MAX)
        return err_set(err, -ERANGE, "a message with no known type or with an id beyond INT64_MAX");
    e.message = wire_type_name(message->type);
    root = encode_root(&e, message);
    if (root == NULL)
        return err_set(err, e.code, "%s: out of memory", e.message);
    code = dump(root, prefix, &sink);
    json_decref(root);
    if (code != 0)
        return err_set(err, code, "%s: out of memory", e.message);
    if (sink.size - prefix > WIRE_MAX_FRAME) {
        free(sink.data);
        return err_set(err, -EMSGSIZE, "%s: %zu bytes, a message has at most %d", e.message, sink.size - prefix,
                       WIRE_MAX_FRAME);
    }
    *out = sink.data;
    *size = sink.size - prefix;
    return 0;
}

int wire_encode(const struct wire_message *message, unsigned minor, char **json, size_t *size, struct err *err)
{
    uint8_t *bytes;
    int code = encode(message, minor, 0, &bytes, size, err);

    if (code == 0)
        *json = (char *)bytes;
    return code;
}

void wire_frame_header(uint8_t *header, size_t size)
{
    for (int i = 0; i < WIRE_FRAME_HEADER; i++)
        header[i] = (uint8_t)(size >> (8 * (WIRE_FRAME_HEADER - 1 - i)));
}

int wire_encode_frame(const struct wire_message *message, unsigned minor, uint8_t **frame, size_t *size,
                      struct err *err)
{
    int code = encode(message, minor, WIRE_FRAME_HEADER, frame, size, err);

    if (code != 0)
        return code;
    wire_frame_header(*frame, *size);
    *size += WIRE_FRAME_HEADER;
    return 0;
}
