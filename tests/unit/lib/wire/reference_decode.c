/* reference_decode.c - the same rules as lib/wire/decode.c by other means: a scan of the bytes for the depth,
 * jansson for syntax, UTF-8 and duplicate keys, then every field against the table. Slow, and for tests: whatever one
 * of the two takes the other one must take, too, and understand alike. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/table.h"
#include "tests/unit/lib/wire/reference_decode.h"

enum { BLOCK_BYTES = 1024 };

struct block {
    struct block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char data[];
};

static void *arena_alloc(struct block **arena, size_t size)
{
    struct block *block = *arena;
    size_t need = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    void *result;

    if (!block || block->size - block->used < need) {
        size_t room = need > BLOCK_BYTES ? need : BLOCK_BYTES;

        block = malloc(sizeof(*block) + room);
        if (!block)
            return NULL;
        *block = (struct block){.next = *arena, .size = room};
        *arena = block;
    }
    result = block->data + block->used;
    block->used += need;
    memset(result, 0, size);
    return result;
}

static void arena_free(struct block *block)
{
    while (block) {
        struct block *next = block->next;

        free(block);
        block = next;
    }
}

void reference_fini(struct wire_message *message)
{
    arena_free(message->memory);
    message->memory = NULL;
}

struct decoder {
    struct block *arena;
    unsigned minor;
    const char *message; /* name, for reasons */
    struct err *err;
};

static int refuse(struct decoder *d, const struct wire_field *field, const char *why)
{
    return err_set(d->err, -EBADMSG, "%s: %s: %s", d->message, field->name, why);
}

static int decode_double(const json_t *json, uint64_t limit, double *out)
{
    if (!json_is_number(json))
        return -EBADMSG;
    *out = json_number_value(json);
    return isfinite(*out) && fabs(*out) <= (double)limit ? 0 : -EBADMSG;
}

static int decode_uint(const json_t *json, uint64_t limit, uint64_t *out)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0)
        return -EBADMSG;
    *out = (uint64_t)json_integer_value(json);
    return *out <= limit ? 0 : -EBADMSG;
}

static int decode_int(const json_t *json, uint64_t limit, int64_t *out)
{
    if (!json_is_integer(json))
        return -EBADMSG;
    *out = json_integer_value(json);
    return *out >= 0 ? ((uint64_t)*out <= limit ? 0 : -EBADMSG) : (0 - (uint64_t)*out <= limit ? 0 : -EBADMSG);
}

static int decode_str(struct decoder *d, const json_t *json, uint64_t limit, const char **out)
{
    size_t length;
    char *copy;

    if (!json_is_string(json) || (length = json_string_length(json)) > limit)
        return -EBADMSG;
    copy = arena_alloc(&d->arena, length + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, json_string_value(json), length);
    *out = copy;
    return 0;
}

static int decode_object(struct decoder *d, const struct wire_object *object, const json_t *json, size_t own_keys,
                         void *out);

static int decode_item(struct decoder *d, const struct wire_field *field, const json_t *json, void *out)
{
    if (field->kind == WIRE_KIND_STRS)
        return decode_str(d, json, WIRE_ITEM_STR_LIMIT, out);
    if (field->kind == WIRE_KIND_UINTS)
        return decode_uint(json, WIRE_ITEM_UINT_LIMIT, out);
    if (field->kind == WIRE_KIND_DOUBLES)
        return decode_double(json, WIRE_ITEM_DOUBLE_LIMIT, out);
    return decode_object(d, field->object, json, 0, out);
}

static int decode_list(struct decoder *d, const struct wire_field *field, const json_t *json, void *out)
{
    struct wire_list list = {0};
    size_t size = wire_table_item_size(field);

    if (!json_is_array(json))
        return refuse(d, field, "must be a list");
    list.count = json_array_size(json);
    if (list.count > field->limit)
        return err_set(d->err, -EBADMSG, "%s: %s: %zu items, at most %" PRIu64 " are allowed", d->message, field->name,
                       list.count, field->limit);
    if (list.count > 0 && !(list.items = arena_alloc(&d->arena, list.count * size)))
        return err_set(d->err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < list.count; i++) {
        int result = decode_item(d, field, json_array_get(json, i), (char *)list.items + i * size);

        if (result != 0)
            return err_set(d->err, result, "%s: %s[%zu]: wrong type, too long or out of range", d->message, field->name,
                           i);
    }
    memcpy(out, &list, sizeof(list));
    return 0;
}

static int decode_field(struct decoder *d, const struct wire_field *field, const json_t *json, void *out)
{
    int result = 0;

    switch (field->kind) {
    case WIRE_KIND_BOOL:
        if (!json_is_boolean(json))
            return refuse(d, field, "must be true or false");
        *(bool *)out = json_is_true(json);
        return 0;
    case WIRE_KIND_UINT:
        result = decode_uint(json, field->limit, out);
        break;
    case WIRE_KIND_INT:
        result = decode_int(json, field->limit, out);
        break;
    case WIRE_KIND_DOUBLE:
        result = decode_double(json, field->limit, out);
        break;
    case WIRE_KIND_STR:
        result = decode_str(d, json, field->limit, out);
        break;
    case WIRE_KIND_STRS:
    case WIRE_KIND_UINTS:
    case WIRE_KIND_DOUBLES:
    case WIRE_KIND_LIST:
        return decode_list(d, field, json, out);
    case WIRE_KIND_COUNT:
        abort();
    }
    return result == 0
               ? 0
               : err_set(d->err, result, "%s: %s: wrong type, too long or out of range", d->message, field->name);
}

static bool known_key(struct decoder *d, const struct wire_object *object, const char *key)
{
    for (const struct wire_field *field = object->fields(); field->name; field++)
        if (field->since <= d->minor && strcmp(field->name, key) == 0)
            return true;
    return false;
}

static int unknown_key(struct decoder *d, const struct wire_object *object, const json_t *json, size_t own_keys)
{
    const char *key;
    json_t *value;
    char shown[64];

    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        if (own_keys > 0 && (strcmp(key, "type") == 0 || strcmp(key, "id") == 0))
            continue;
        if (!known_key(d, object, key))
            return err_set(d->err, -EBADMSG, "%s: unknown key \"%s\"", d->message,
                           str_printable(shown, sizeof(shown), key, strlen(key)));
    }
    return err_set(d->err, -EBADMSG, "%s: unknown key", d->message);
}

/* own_keys: how many keys besides the table's are there (type and id of a message). */
static int decode_object(struct decoder *d, const struct wire_object *object, const json_t *json, size_t own_keys,
                         void *out)
{
    size_t expected = own_keys;

    if (!json_is_object(json))
        return err_set(d->err, -EBADMSG, "%s: %s must be an object", d->message, object->name);
    for (const struct wire_field *field = object->fields(); field->name; field++) {
        void *member = (char *)out + field->offset;
        const json_t *value;
        int result;

        if (field->since > d->minor) {
            if (field->kind == WIRE_KIND_STR)
                *(const char **)member = "";
            continue;
        }
        value = json_object_get(json, field->name);
        if (!value)
            return refuse(d, field, "is missing");
        result = decode_field(d, field, value, member);
        if (result != 0)
            return result;
        expected++;
    }
    /* Keys are unique, so an equal number means that there are no others. */
    return json_object_size(json) == expected ? 0 : unknown_key(d, object, json, own_keys);
}

/* Brackets outside strings; whether they match is for the parser to say. */
static bool too_deep(const char *json, size_t size)
{
    size_t depth = 0;
    bool string = false;

    for (size_t i = 0; i < size; i++) {
        char c = json[i];

        if (string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                string = false;
        } else if (c == '"') {
            string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > WIRE_MAX_DEPTH)
                return true;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

static int decode_root(struct decoder *d, const json_t *root, struct wire_message *message)
{
    const json_t *type = json_object_get(root, "type"), *id = json_object_get(root, "id");
    char shown[64];

    if (!json_is_object(root) || !json_is_string(type))
        return err_set(d->err, -EBADMSG, "a message must be an object with a type");
    message->type = wire_table_find(json_string_value(type));
    if (message->type == WIRE_TYPE_COUNT || wire_table_message(message->type)->since > d->minor)
        return err_set(d->err, -EBADMSG, "unknown message type \"%s\"",
                       str_printable(shown, sizeof(shown), json_string_value(type), json_string_length(type)));
    d->message = wire_type_name(message->type);
    if (!id || decode_uint(id, INT64_MAX, &message->id) != 0)
        return err_set(d->err, -EBADMSG, "%s: id: must be a whole number", d->message);
    return decode_object(d, wire_table_message(message->type), root, 2, &message->u);
}

int reference_decode(const char *json, size_t size, unsigned minor, struct wire_message *message, struct err *err)
{
    struct decoder decoder = {.minor = minor, .message = "message", .err = err};
    json_error_t reason;
    json_t *root;
    char shown[200];
    int result;

    memset(message, 0, sizeof(*message));
    if (size == 0 || size > WIRE_MAX_FRAME)
        return err_set(err, -EBADMSG, "a message of %zu bytes, must be 1 to %d", size, WIRE_MAX_FRAME);
    if (memchr(json, '\0', size)) /* which jansson skips between two tokens */
        return err_set(err, -EBADMSG, "a NUL");
    if (too_deep(json, size))
        return err_set(err, -EBADMSG, "nested deeper than %d", WIRE_MAX_DEPTH);
    root = json_loadb(json, size, JSON_REJECT_DUPLICATES, &reason);
    if (!root) {
        if (json_error_code(&reason) == json_error_out_of_memory)
            return err_set(err, -ENOMEM, "out of memory");
        return err_set(err, -EBADMSG, "not a JSON message: %s (byte %d)",
                       str_printable(shown, sizeof(shown), reason.text, strlen(reason.text)), reason.position);
    }
    result = decode_root(&decoder, root, message);
    json_decref(root);
    if (result != 0) {
        arena_free(decoder.arena);
        memset(message, 0, sizeof(*message));
        return result;
    }
    message->bytes = size;
    message->memory = decoder.arena;
    return 0;
}
