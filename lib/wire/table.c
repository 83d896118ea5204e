#include "config.h"

#include "lib/wire/table.h"

#include <stdlib.h>
#include <string.h>

/* Inside a function a typedef gives the macros F and L the name of the struct that they are in. */
#define F(kind, member, limit, since)                                                                                  \
    {#member, WIRE_KIND_##kind, offsetof(self, member), (uint64_t)(limit), since, NULL},
#define L(type, member, limit, since)                                                                                  \
    {#member, WIRE_KIND_LIST, offsetof(self, member), (uint64_t)(limit), since, &object_##type},
#define DESCRIBE(name, since, senders, ...)                                                                            \
    static const struct wire_field *fields_##name(void)                                                                \
    {                                                                                                                  \
        typedef struct wire_##name self;                                                                               \
        static const struct wire_field fields[] = {__VA_ARGS__{NULL, WIRE_KIND_COUNT, sizeof(self), 0, 0, NULL}};      \
        _Static_assert(sizeof(fields) / sizeof(*fields) - 1 <= WIRE_FIELDS_MAX, #name " has too many fields");         \
                                                                                                                       \
        return fields;                                                                                                 \
    }                                                                                                                  \
    static const struct wire_object object_##name = {#name, sizeof(struct wire_##name), since, senders, fields_##name};
#define WIRE_STRUCT(name, ...)                        DESCRIBE(name, 0, 0, __VA_ARGS__)
#define WIRE_MESSAGE_SINCE(since, name, senders, ...) DESCRIBE(name, since, senders, __VA_ARGS__)
#include WIRE_MESSAGES
#undef WIRE_STRUCT
#undef WIRE_MESSAGE_SINCE

static const struct wire_object *const messages[] = {
#define WIRE_STRUCT(name, ...)
#define WIRE_MESSAGE_SINCE(since, name, senders, ...) &object_##name,
#include WIRE_MESSAGES
#undef WIRE_STRUCT
#undef WIRE_MESSAGE_SINCE
};

static const struct wire_object *const structs[] = {
#define WIRE_STRUCT(name, ...) &object_##name,
#define WIRE_MESSAGE_SINCE(since, name, senders, ...)
#include WIRE_MESSAGES
#undef WIRE_STRUCT
#undef WIRE_MESSAGE_SINCE
    NULL};

const struct wire_object *wire_table_message(enum wire_type type)
{
    return messages[type];
}

bool wire_table_uint(const struct wire_message *message, const char *field, uint64_t *value)
{
    const struct wire_field *at = messages[message->type]->fields();

    while (at->name && strcmp(at->name, field) != 0)
        at++;
    if (!at->name || at->kind != WIRE_KIND_UINT)
        return false;
    memcpy(value, (const char *)&message->u + at->offset, sizeof(*value));
    return true;
}

enum wire_type wire_table_find(const char *name)
{
    enum wire_type type = 0;

    while (type < WIRE_TYPE_COUNT && strcmp(messages[type]->name, name) != 0)
        type++;
    return type;
}

const struct wire_object *const *wire_table_structs(void)
{
    return structs;
}

const char *wire_type_name(enum wire_type type)
{
    return type < WIRE_TYPE_COUNT ? messages[type]->name : "unknown";
}

unsigned wire_minor_of(enum wire_type type, unsigned minor)
{
    if ((minor & WIRE_LATER_ONLY) == 0)
        return minor;
    return wire_table_message(type)->since > WIRE_MINOR_LASTING ? minor & ~(unsigned)WIRE_LATER_ONLY
                                                                : WIRE_MINOR_LASTING;
}

bool wire_may_send(enum wire_type type, unsigned sender)
{
    return type < WIRE_TYPE_COUNT && (messages[type]->senders & sender) != 0;
}

size_t wire_table_item_size(const struct wire_field *field)
{
    switch (field->kind) {
    case WIRE_KIND_STRS:
        return sizeof(const char *);
    case WIRE_KIND_UINTS:
        return sizeof(uint64_t);
    case WIRE_KIND_DOUBLES:
        return sizeof(double);
    case WIRE_KIND_LIST:
        return field->object->size;
    case WIRE_KIND_BOOL:
    case WIRE_KIND_UINT:
    case WIRE_KIND_INT:
    case WIRE_KIND_DOUBLE:
    case WIRE_KIND_STR:
    case WIRE_KIND_COUNT:
        break;
    }
    abort();
}
