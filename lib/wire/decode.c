/* decode.c - JSON to messages, driven by the tables.
 *
 * Strict: size; then syntax, UTF-8 and depth of all of it (text_check()); then type, then every field against the
 * table, and no key beside them, none twice. What is decoded lies in one chain of blocks that hangs on the message. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/text.h"
#include "lib/wire/table.h"
#include "lib/wire/wire.h"

enum { BLOCK_MIN = 256, BLOCK_MAX = 32 * 1024 };

/* ---- memory ---- */

struct block {
    struct block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char data[];
};

struct decoder {
    struct block *arena;
    size_t block_bytes; /* of the next block */
    unsigned minor;
    const char *message; /* name, for reasons */
    struct err *err;
};

static bool arena_grow(struct decoder *d, size_t need)
{
    size_t room = need > d->block_bytes ? need : d->block_bytes;
    struct block *block = malloc(sizeof(*block) + room);

    if (!block)
        return false;
    *block = (struct block){.next = d->arena, .size = room};
    d->arena = block;
    return true;
}

/* alignment: a power of two; a block begins as aligned as anything needs. */
static void *arena_alloc(struct decoder *d, size_t size, size_t alignment)
{
    size_t begin = !d->arena ? 0 : (d->arena->used + alignment - 1) & ~(alignment - 1);

    if (!d->arena || begin > d->arena->size || d->arena->size - begin < size) {
        if (!arena_grow(d, size))
            return NULL;
        begin = 0;
    }
    d->arena->used = begin + size;
    return d->arena->data + begin;
}

static void arena_free(struct block *block)
{
    while (block) {
        struct block *next = block->next;

        free(block);
        block = next;
    }
}

void wire_message_fini(struct wire_message *message)
{
    if (!message)
        return;
    arena_free(message->memory);
    message->memory = NULL;
}

/* ---- values: each moves *at behind what it has read ---- */

static int refuse(struct decoder *d, const struct wire_field *field, const char *why)
{
    return err_set(d->err, -EBADMSG, "%s: %s: %s", d->message, field->name, why);
}

/* A number that a double cannot hold is no JSON here, whatever its field wants. */
static int refuse_number(struct decoder *d)
{
    (void)err_set(d->err, -EBADMSG, "not a JSON message: a number is too large");
    return -EBADMSG;
}

static int decode_double(struct decoder *d, const char **at, uint64_t limit, double *out)
{
    if (!text_is_number(*at))
        return -EBADMSG;
    if (text_double(*at, out, at) != 0)
        return refuse_number(d);
    return fabs(*out) <= (double)limit ? 0 : -EBADMSG;
}

static int decode_whole(struct decoder *d, const char **at, int64_t *out)
{
    int result;

    if (!text_is_number(*at))
        return -EBADMSG;
    result = text_whole(*at, out, at);
    if (result < 0)
        return refuse_number(d);
    return result == 1 ? 0 : -EBADMSG;
}

static int decode_uint(struct decoder *d, const char **at, uint64_t limit, uint64_t *out)
{
    int64_t value = 0;
    int result = decode_whole(d, at, &value);

    *out = (uint64_t)value;
    return result != 0 || value < 0 || *out > limit ? -EBADMSG : 0;
}

static int decode_int(struct decoder *d, const char **at, uint64_t limit, int64_t *out)
{
    int result = decode_whole(d, at, out);

    if (result != 0)
        return result;
    return (*out >= 0 ? (uint64_t)*out : 0 - (uint64_t)*out) <= limit ? 0 : -EBADMSG;
}

static int decode_bool(const char **at, bool *out)
{
    if (**at != 't' && **at != 'f')
        return -EBADMSG;
    *out = **at == 't';
    *at += *out ? strlen("true") : strlen("false");
    return 0;
}

/* Of the text between quotes. */
static int copy_text(struct decoder *d, const char *text, size_t length, bool escaped, uint64_t limit, const char **out)
{
    size_t used = length;
    char *copy;

    if (!escaped && length > limit)
        return -EBADMSG;
    copy = arena_alloc(d, length + 1, 1);
    if (!copy)
        return -ENOMEM;
    if (escaped)
        used = text_unescape(text, length, copy);
    else
        memcpy(copy, text, length);
    copy[used] = '\0';
    d->arena->used -= length - used; /* escapes are longer than what they stand for */
    *out = copy;
    return used > limit ? -EBADMSG : 0;
}

static int decode_str(struct decoder *d, const char **at, uint64_t limit, const char **out)
{
    const char *text;
    size_t length;
    bool escaped;

    if (**at != '"')
        return -EBADMSG;
    *at = text_string(*at, &text, &length, &escaped);
    return copy_text(d, text, length, escaped, limit, out);
}

static int decode_object(struct decoder *d, const struct wire_object *object, const char **at,
                         struct wire_message *message, void *out);

static int decode_item(struct decoder *d, const struct wire_field *field, const char **at, void *out)
{
    if (field->kind == WIRE_KIND_STRS)
        return decode_str(d, at, WIRE_ITEM_STR_LIMIT, out);
    if (field->kind == WIRE_KIND_UINTS)
        return decode_uint(d, at, WIRE_ITEM_UINT_LIMIT, out);
    if (field->kind == WIRE_KIND_DOUBLES)
        return decode_double(d, at, WIRE_ITEM_DOUBLE_LIMIT, out);
    return decode_object(d, field->object, at, NULL, out);
}

/* ---- lists ---- */

/* How many items the list at this place has. */
static size_t count_items(const char *at)
{
    size_t count = 0;

    at = text_space(at + 1);
    while (*at != ']') {
        count++;
        at = text_space(text_skip(at));
        if (*at == ',')
            at = text_space(at + 1);
    }
    return count;
}

static int decode_items(struct decoder *d, const struct wire_field *field, const char **at, struct wire_list *list)
{
    size_t size = wire_table_item_size(field);

    *at = text_space(*at + 1);
    for (size_t i = 0; i < list->count; i++) {
        int result = decode_item(d, field, at, (char *)list->items + i * size);

        if (result != 0)
            return err_set(d->err, result, "%s: %s[%zu]: wrong type, too long or out of range", d->message, field->name,
                           i);
        *at = text_space(*at);
        if (**at == ',')
            *at = text_space(*at + 1);
    }
    (*at)++;
    return 0;
}

static int decode_list(struct decoder *d, const struct wire_field *field, const char **at, void *out)
{
    struct wire_list list = {0};
    size_t bytes;
    int result;

    if (**at != '[')
        return refuse(d, field, "must be a list");
    list.count = count_items(*at);
    if (list.count > field->limit)
        return err_set(d->err, -EBADMSG, "%s: %s: %zu items, at most %" PRIu64 " are allowed", d->message, field->name,
                       list.count, field->limit);
    bytes = list.count * wire_table_item_size(field);
    if (list.count > 0 && !(list.items = arena_alloc(d, bytes, alignof(max_align_t))))
        return err_set(d->err, -ENOMEM, "out of memory");
    if (list.count > 0)
        memset(list.items, 0, bytes);
    result = decode_items(d, field, at, &list);
    memcpy(out, &list, sizeof(list));
    return result;
}

static int decode_field(struct decoder *d, const struct wire_field *field, const char **at, void *out)
{
    int result = 0;

    switch (field->kind) {
    case WIRE_KIND_BOOL:
        return decode_bool(at, out) == 0 ? 0 : refuse(d, field, "must be true or false");
    case WIRE_KIND_UINT:
        result = decode_uint(d, at, field->limit, out);
        break;
    case WIRE_KIND_INT:
        result = decode_int(d, at, field->limit, out);
        break;
    case WIRE_KIND_DOUBLE:
        result = decode_double(d, at, field->limit, out);
        break;
    case WIRE_KIND_STR:
        result = decode_str(d, at, field->limit, out);
        break;
    case WIRE_KIND_STRS:
    case WIRE_KIND_UINTS:
    case WIRE_KIND_DOUBLES:
    case WIRE_KIND_LIST:
        return decode_list(d, field, at, out);
    case WIRE_KIND_COUNT:
        abort();
    }
    return result == 0
               ? 0
               : err_set(d->err, result, "%s: %s: wrong type, too long or out of range", d->message, field->name);
}

/* ---- objects ---- */

/* The keys of an object, bit by bit: the table's fields in their order, then a message's own two. */
enum { KEY_TYPE = WIRE_FIELDS_MAX, KEY_ID, KEY_UNKNOWN };
_Static_assert(KEY_UNKNOWN <= 64, "a bit for each");

static bool is_key(const char *name, const char *key, size_t length)
{
    return strncmp(name, key, length) == 0 && name[length] == '\0';
}

/* expected: the field behind the one before, which it nearly always is. */
static unsigned find_key(const struct decoder *d, const struct wire_field *fields, unsigned expected, bool message,
                         const char *key, size_t length)
{
    if (message && is_key("type", key, length))
        return KEY_TYPE;
    if (message && is_key("id", key, length))
        return KEY_ID;
    if (fields[expected].name && fields[expected].since <= d->minor && is_key(fields[expected].name, key, length))
        return expected;
    for (unsigned i = 0; fields[i].name; i++)
        if (fields[i].since <= d->minor && is_key(fields[i].name, key, length))
            return i;
    return KEY_UNKNOWN;
}

static int refuse_key(struct decoder *d, const char *what, const char *key, size_t length)
{
    char shown[64];

    return err_set(d->err, -EBADMSG, "%s \"%s\"", what, str_printable(shown, sizeof(shown), key, length));
}

static int read_key(struct decoder *d, const char **at, const char **key, size_t *length)
{
    bool escaped;

    *at = text_string(*at, key, length, &escaped);
    if (escaped) {
        char *copy = arena_alloc(d, *length, 1);

        if (!copy)
            return err_set(d->err, -ENOMEM, "out of memory");
        *length = text_unescape(*key, *length, copy);
        *key = copy;
    }
    *at = text_space(text_space(*at) + 1); /* the colon */
    return 0;
}

/* One key and its value; *next: the index behind that of the field before. */
static int decode_member(struct decoder *d, const struct wire_field *fields, const char **at, unsigned *next,
                         uint64_t *seen, struct wire_message *message, void *out)
{
    const char *key;
    size_t length;
    unsigned which;
    int result = read_key(d, at, &key, &length);

    if (result != 0)
        return result;
    which = find_key(d, fields, *next, message != NULL, key, length);
    if (which == KEY_UNKNOWN) {
        char what[64];

        (void)snprintf(what, sizeof(what), "%s: unknown key", d->message);
        return refuse_key(d, what, key, length);
    }
    if ((*seen & UINT64_C(1) << which) != 0)
        return refuse_key(d, "not a JSON message: twice the key", key, length);
    *seen |= UINT64_C(1) << which;
    if (which == KEY_TYPE) {
        *at = text_skip(*at);
        return 0;
    }
    if (which == KEY_ID) {
        result = decode_uint(d, at, INT64_MAX, &message->id);
        return result == 0 ? 0 : err_set(d->err, result, "%s: id: must be a whole number", d->message);
    }
    *next = which + 1;
    return decode_field(d, &fields[which], at, (char *)out + fields[which].offset);
}

/* What a peer of this minor cannot have said is empty; anything else must have been there. */
static int check_missing(struct decoder *d, const struct wire_field *fields, uint64_t seen, void *out)
{
    for (unsigned i = 0; fields[i].name; i++) {
        if (fields[i].since > d->minor) {
            if (fields[i].kind == WIRE_KIND_STR)
                *(const char **)(void *)((char *)out + fields[i].offset) = "";
        } else if ((seen & UINT64_C(1) << i) == 0) {
            return refuse(d, &fields[i], "is missing");
        }
    }
    return 0;
}

/* message: the object is this whole message, whose type is known; NULL: one of a list. */
static int decode_object(struct decoder *d, const struct wire_object *object, const char **at,
                         struct wire_message *message, void *out)
{
    const struct wire_field *fields = object->fields();
    unsigned next = 0;
    uint64_t seen = 0;

    if (**at != '{')
        return err_set(d->err, -EBADMSG, "%s: %s must be an object", d->message, object->name);
    *at = text_space(*at + 1);
    while (**at != '}') {
        int result = decode_member(d, fields, at, &next, &seen, message, out);

        if (result != 0)
            return result;
        *at = text_space(*at);
        if (**at == ',')
            *at = text_space(*at + 1);
    }
    (*at)++;
    if (message && (seen & UINT64_C(1) << KEY_ID) == 0)
        return err_set(d->err, -EBADMSG, "%s: id: must be a whole number", d->message);
    return check_missing(d, fields, seen, out);
}

/* ---- the message ---- */

/* The value of this key, wherever in the object it stands; NULL if it is none, or has none. */
static const char *find_member(struct decoder *d, const char *at, const char *name)
{
    if (*at != '{')
        return NULL;
    at = text_space(at + 1);
    while (*at != '}') {
        const char *key;
        size_t length;

        if (read_key(d, &at, &key, &length) != 0)
            return NULL;
        if (is_key(name, key, length))
            return at;
        at = text_space(text_skip(at));
        if (*at == ',')
            at = text_space(at + 1);
    }
    return NULL;
}

static int decode_type(struct decoder *d, const char *at, enum wire_type *type)
{
    const char *value = find_member(d, at, "type"), *name;
    char shown[64];
    int result;

    if (!value || *value != '"')
        return err_set(d->err, -EBADMSG, "a message must be an object with a type");
    result = decode_str(d, &value, WIRE_ITEM_STR_LIMIT, &name);
    if (result != 0)
        return err_set(d->err, result, "a message with a type that cannot be read");
    *type = wire_table_find(name);
    if (*type != WIRE_TYPE_COUNT)
        d->minor = wire_minor_of(*type, d->minor);
    if (*type == WIRE_TYPE_COUNT || wire_table_message(*type)->since > d->minor)
        return err_set(d->err, -EBADMSG, "unknown message type \"%s\"",
                       str_printable(shown, sizeof(shown), name, strlen(name)));
    d->message = wire_type_name(*type);
    return 0;
}

static int decode_root(struct decoder *d, const char *at, struct wire_message *message)
{
    int result = decode_type(d, at, &message->type);

    return result != 0 ? result : decode_object(d, wire_table_message(message->type), &at, message, &message->u);
}

int wire_decode(const char *json, size_t size, unsigned minor, struct wire_message *message, struct err *err)
{
    struct decoder decoder = {.minor = minor, .message = "message", .err = err};
    int result;

    memset(message, 0, sizeof(*message));
    if (size == 0 || size > WIRE_MAX_FRAME)
        return err_set(err, -EBADMSG, "a message of %zu bytes, must be 1 to %d", size, WIRE_MAX_FRAME);
    result = text_check(json, size, WIRE_MAX_DEPTH, err);
    if (result != 0)
        return result;
    decoder.block_bytes = size < BLOCK_MIN ? BLOCK_MIN : size < BLOCK_MAX ? size : BLOCK_MAX;
    result = decode_root(&decoder, text_space(json), message);
    if (result != 0) {
        arena_free(decoder.arena);
        memset(message, 0, sizeof(*message));
        return result;
    }
    message->bytes = size;
    message->memory = decoder.arena;
    return 0;
}

int wire_decode_head(const char *json, size_t size, unsigned minor, struct wire_head *head, struct err *err)
{
    struct decoder decoder = {.minor = minor, .message = "message", .err = err, .block_bytes = BLOCK_MIN};
    const char *root, *id, *more;
    int result = text_check(json, size, WIRE_MAX_DEPTH, err);

    *head = (struct wire_head){.type = WIRE_TYPE_COUNT};
    if (result != 0)
        return result;
    root = text_space(json);
    result = decode_type(&decoder, root, &head->type);
    if (result == 0) {
        id = find_member(&decoder, root, "id");
        more = find_member(&decoder, root, "more");
        head->more = more && *more == 't';
        if (!id || decode_uint(&decoder, &id, INT64_MAX, &head->id) != 0)
            result = err_set(err, -EBADMSG, "%s: id: must be a whole number", decoder.message);
    }
    arena_free(decoder.arena);
    return result;
}
