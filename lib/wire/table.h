/* table.h - messages.def as data: what the codec and the documentation are made from. */
#ifndef LIB_WIRE_TABLE_H
#define LIB_WIRE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/wire.h"

enum wire_kind {
    WIRE_KIND_BOOL,
    WIRE_KIND_UINT,
    WIRE_KIND_INT,
    WIRE_KIND_DOUBLE,
    WIRE_KIND_STR,
    WIRE_KIND_STRS,
    WIRE_KIND_UINTS,
    WIRE_KIND_DOUBLES,
    WIRE_KIND_LIST,
    WIRE_KIND_COUNT
};

struct wire_object;

struct wire_field {
    const char *name; /* NULL ends the array */
    enum wire_kind kind;
    size_t offset;
    uint64_t limit;
    unsigned since;
    const struct wire_object *object; /* WIRE_KIND_LIST: what its items are */
};

/* Of one object: the decoder has a bit for each. */
enum { WIRE_FIELDS_MAX = 62 };

struct wire_object {
    const char *name;
    size_t size; /* of the C struct */
    unsigned since, senders;
    const struct wire_field *(*fields)(void);
};

/* Every list in a message has this shape: wire_strs, wire_uints, wire_doubles and those that L() makes. */
struct wire_list {
    void *items;
    size_t count;
};
/* Limits of what stands in a list; the limit of the field is for the number of items. */
enum { WIRE_ITEM_STR_LIMIT = WIRE_MAX_FRAME };
#define WIRE_ITEM_UINT_LIMIT   ((uint64_t)INT64_MAX)
#define WIRE_ITEM_DOUBLE_LIMIT UINT64_MAX
/* Size of an item of a field that is a list. */
size_t wire_table_item_size(const struct wire_field *field);

/* type < WIRE_TYPE_COUNT. */
const struct wire_object *wire_table_message(enum wire_type type);
/* The value of the message's field of that name, if it has one that is a UINT. */
bool wire_table_uint(const struct wire_message *message, const char *field, uint64_t *value);
/* The type of that name; WIRE_TYPE_COUNT if there is none. */
enum wire_type wire_table_find(const char *name);
/* Every WIRE_STRUCT; NULL ends the array. */
const struct wire_object *const *wire_table_structs(void);

#endif
