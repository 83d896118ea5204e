#include "config.h"

#include "tests/unit/lib/wire/wire_fill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h wants the four above. */
#include <cmocka.h>

#include "lib/wire/table.h"

static const char *const texts[] = {
    "", "a", "b c", "quote\" back\\ slash/ tab\t", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "line\nend\x01"};

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % below;
}

static uint64_t draw_uint(unsigned *seed, uint64_t limit)
{
    if (limit > INT64_MAX)
        limit = INT64_MAX;
    switch (draw(seed, 3)) {
    case 0:
        return limit;
    case 1:
        return 0;
    default:
        return draw(seed, 30000) % (limit + 1);
    }
}

static void fill_str(const char **out, uint64_t limit, unsigned *seed)
{
    *out = texts[draw(seed, sizeof(texts) / sizeof(*texts))];
    if (strlen(*out) > limit)
        *out = "x";
}

static void fill_object(const struct wire_object *object, void *out, unsigned *seed);

static void fill_item(const struct wire_field *field, void *out, unsigned *seed)
{
    if (field->kind == WIRE_KIND_STRS)
        fill_str(out, WIRE_ITEM_STR_LIMIT, seed);
    else if (field->kind == WIRE_KIND_UINTS)
        *(uint64_t *)out = draw_uint(seed, INT64_MAX);
    else if (field->kind == WIRE_KIND_DOUBLES)
        *(double *)out = draw(seed, 2000) / 7.0 - 100;
    else
        fill_object(field->object, out, seed);
}

static void fill_list(const struct wire_field *field, void *out, unsigned *seed)
{
    struct wire_list list = {.count = draw(seed, 4)};
    size_t size = wire_table_item_size(field);

    list.items = calloc(list.count + 1, size);
    assert_non_null(list.items);
    for (size_t i = 0; i < list.count; i++)
        fill_item(field, (char *)list.items + i * size, seed);
    memcpy(out, &list, sizeof(list));
}

static void fill_field(const struct wire_field *field, void *out, unsigned *seed)
{
    switch (field->kind) {
    case WIRE_KIND_BOOL:
        *(bool *)out = draw(seed, 2) == 1;
        break;
    case WIRE_KIND_UINT:
        *(uint64_t *)out = draw_uint(seed, field->limit);
        break;
    case WIRE_KIND_INT:
        *(int64_t *)out = (int64_t)draw_uint(seed, field->limit) * (draw(seed, 2) == 0 ? 1 : -1);
        break;
    case WIRE_KIND_DOUBLE:
        *(double *)out = draw(seed, 2) == 0
                             ? (double)field->limit
                             : -(draw(seed, 1000) / 1000.0 * (field->limit < 333 ? (double)field->limit : 333));
        break;
    case WIRE_KIND_STR:
        fill_str(out, field->limit, seed);
        break;
    case WIRE_KIND_STRS:
    case WIRE_KIND_UINTS:
    case WIRE_KIND_DOUBLES:
    case WIRE_KIND_LIST:
        fill_list(field, out, seed);
        break;
    case WIRE_KIND_COUNT:
        fail();
    }
}

static void fill_object(const struct wire_object *object, void *out, unsigned *seed)
{
    for (const struct wire_field *field = object->fields(); field->name; field++)
        fill_field(field, (char *)out + field->offset, seed);
}

void wire_fill(struct wire_message *message, enum wire_type type, unsigned seed)
{
    memset(message, 0, sizeof(*message));
    message->type = type;
    message->id = draw_uint(&seed, INT64_MAX);
    fill_object(wire_table_message(type), &message->u, &seed);
}

static bool is_list(const struct wire_field *field)
{
    return field->kind == WIRE_KIND_STRS || field->kind == WIRE_KIND_UINTS || field->kind == WIRE_KIND_DOUBLES ||
           field->kind == WIRE_KIND_LIST;
}

static void free_object(const struct wire_object *object, void *in)
{
    for (const struct wire_field *field = object->fields(); field->name; field++) {
        struct wire_list list;

        if (!is_list(field))
            continue;
        memcpy(&list, (char *)in + field->offset, sizeof(list));
        for (size_t i = 0; field->kind == WIRE_KIND_LIST && i < list.count; i++)
            free_object(field->object, (char *)list.items + i * field->object->size);
        free(list.items);
    }
}

void wire_fill_free(struct wire_message *message)
{
    free_object(wire_table_message(message->type), &message->u);
}

static void same_object(const struct wire_object *object, const void *a, const void *b);

static void same_list(const struct wire_field *field, const void *a, const void *b)
{
    struct wire_list x, y;
    size_t size = wire_table_item_size(field);

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    assert_int_equal(x.count, y.count);
    for (size_t i = 0; i < x.count; i++) {
        const char *p = (const char *)x.items + i * size, *q = (const char *)y.items + i * size;

        if (field->kind == WIRE_KIND_STRS)
            assert_string_equal(*(const char *const *)p, *(const char *const *)q);
        else if (field->kind == WIRE_KIND_LIST)
            same_object(field->object, p, q);
        else
            assert_memory_equal(p, q, size);
    }
}

static void same_object(const struct wire_object *object, const void *a, const void *b)
{
    for (const struct wire_field *field = object->fields(); field->name; field++) {
        const char *p = (const char *)a + field->offset, *q = (const char *)b + field->offset;

        if (is_list(field))
            same_list(field, p, q);
        else if (field->kind == WIRE_KIND_STR)
            assert_string_equal(*(const char *const *)p, *(const char *const *)q);
        else
            assert_memory_equal(p, q, field->kind == WIRE_KIND_BOOL ? sizeof(bool) : sizeof(uint64_t));
    }
}

void wire_assert_same(const struct wire_message *a, const struct wire_message *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->id, b->id);
    same_object(wire_table_message(a->type), &a->u, &b->u);
}
