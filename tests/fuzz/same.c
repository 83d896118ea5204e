/* same.c - are two decoded messages equal? */
#include "config.h"

#include <string.h>

#include "lib/wire/table.h"
#include "tests/fuzz/fuzz.h"

static bool is_list(const struct wire_field *field)
{
    return field->kind == WIRE_KIND_STRS || field->kind == WIRE_KIND_UINTS || field->kind == WIRE_KIND_DOUBLES ||
           field->kind == WIRE_KIND_LIST;
}

static bool same_object(const struct wire_object *object, const void *a, const void *b);

static bool same_item(const struct wire_field *field, const void *a, const void *b, size_t size)
{
    if (field->kind == WIRE_KIND_STRS)
        return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
    if (field->kind == WIRE_KIND_LIST)
        return same_object(field->object, a, b);
    return memcmp(a, b, size) == 0;
}

static bool same_list(const struct wire_field *field, const void *a, const void *b)
{
    struct wire_list x, y;
    size_t size = wire_table_item_size(field);

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    if (x.count != y.count)
        return false;
    for (size_t i = 0; i < x.count; i++)
        if (!same_item(field, (const char *)x.items + i * size, (const char *)y.items + i * size, size))
            return false;
    return true;
}

static bool same_field(const struct wire_field *field, const void *a, const void *b)
{
    if (is_list(field))
        return same_list(field, a, b);
    if (field->kind == WIRE_KIND_STR)
        return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
    return memcmp(a, b, field->kind == WIRE_KIND_BOOL ? sizeof(bool) : sizeof(uint64_t)) == 0;
}

static bool same_object(const struct wire_object *object, const void *a, const void *b)
{
    for (const struct wire_field *field = object->fields(); field->name; field++)
        if (!same_field(field, (const char *)a + field->offset, (const char *)b + field->offset))
            return false;
    return true;
}

bool wire_same(const struct wire_message *a, const struct wire_message *b)
{
    return a->type == b->type && a->id == b->id && same_object(wire_table_message(a->type), &a->u, &b->u);
}
