/* input.c - decisions and messages drawn from the bytes of an input.
 *
 * Messages are made from the tables and not mutated as JSON: nearly every input is then a valid message, and what is
 * behind the decoder gets tested. The decoder has targets of its own. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/wire/table.h"
#include "tests/fuzz/fuzz.h"

enum { LIST_ITEMS = 5, LONG_LIST = 70, RAW_TEXT = 40, LONG_TEXT = 300, LONGEST_TEXT = 5000 };

uint8_t input_byte(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

uint64_t input_below(struct input *input, uint64_t below)
{
    return input_byte(input) % below;
}

uint64_t input_number(struct input *input, uint64_t limit)
{
    static const uint64_t edges[] = {UINT64_MAX, INT64_MAX, UINT32_MAX, INT32_MAX, 65536, 65535, 4096,
                                     1024,       1023,      1000,       255,       100,   60000, (uint64_t)1 << 53};
    uint8_t byte = input_byte(input);
    uint64_t number = byte < 224 ? byte & 15 : byte - 224 < 14 ? edges[byte - 224] : (uint64_t)(byte * 251);

    if (limit > INT64_MAX)
        limit = INT64_MAX; /* of JSON here */
    return number <= limit ? number : limit;
}

/* Few jobs, attempts and processes, so that messages speak of the same ones. */
static uint64_t number_of(struct input *input, const char *field, uint64_t limit)
{
    static const uint64_t uids[] = {2001, 2002, 1000, 999, 0};
    struct input before = *input;
    uint8_t byte = input_byte(input);
    uint64_t number;

    if (byte >= 224) {
        *input = before;
        return input_number(input, limit);
    }
    if (strcmp(field, "job") == 0 || strcmp(field, "jobs") == 0)
        number = 1 + byte % 3;
    else if (strcmp(field, "attempt") == 0)
        number = byte < 180 ? 1 : 2;
    else if (strcmp(field, "process") == 0 || strcmp(field, "cpus") == 0 || strcmp(field, "cpu") == 0)
        number = byte % 4;
    else if (strcmp(field, "uid") == 0)
        number = uids[byte % 5];
    else if (strcmp(field, "generation") == 0)
        number = byte;
    else if (strcmp(field, "major") == 0)
        number = WIRE_MAJOR;
    else if (strcmp(field, "interval_ms") == 0 || strcmp(field, "grace_ms") == 0)
        number = 20 * (uint64_t)byte;
    else
        number = byte & 15;
    return number <= limit ? number : limit;
}

static size_t until(const struct input *input, uint8_t stop)
{
    const uint8_t *end = input->left > 0 ? memchr(input->at, stop, input->left) : NULL;

    return !end ? input->left : (size_t)(end - input->at);
}

static char *copy(struct input *input, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        abort();
    if (size > 0)
        memcpy(text, input->at, size);
    text[size] = '\0';
    input->at += size;
    input->left -= size;
    return text;
}

char *input_line(struct input *input)
{
    char *line = copy(input, until(input, '\n'));

    (void)input_byte(input);
    return line;
}

char *input_rest(struct input *input)
{
    return copy(input, input->left);
}

/* ---- messages ---- */

/* What hangs on a message; freed by wire_message_fini(), so it has the form of decode.c's blocks. */
struct block {
    struct block *next;
    size_t used, size;
    _Alignas(max_align_t) unsigned char data[];
};

static void *take(struct wire_message *message, size_t size)
{
    struct block *block = calloc(1, sizeof(*block) + size + 1);

    if (!block)
        abort();
    block->next = message->memory;
    message->memory = block;
    return block->data;
}

static const char *const words[] = {
    "",
    "alice",
    "bob",
    "root",
    "ws1",
    "ws2",
    "ws3",
    "command",
    "pvmd",
    "agent",
    "/",
    "/tmp",
    "/bin/true",
    "out.%j.%r",
    "refused",
    "rt",
    "idle",
    "A=b",
    "PATH=/bin",
    "PVM_TMP=/x",
    "ELMER_HOSTS=ws1:ws2",
    "ddpro<2317> arch<LINUX64> ip<7f000001:8a2f> mtu<4080>",
    "PvmCantStart",
    "/tmp/pvmd",
    "10.0.0.1",
    "pvmd -s -d0x0 -nws2 1 0a000001:8a2f 4080 2 0a000002:0000",
    "boot-1",
    "boot-2",
    "t1",
    "t2",
    "%u/%x/%%",
    "a b",
    "../x",
    "\x1b[2Jred",
    "line\nbreak",
    "\xC3\xA9\xE2\x82\xAC",
};

/* Bytes from 0x80 on become two bytes of UTF-8, the NUL a blank. */
static const char *raw_text(struct input *input, struct wire_message *message, size_t length, uint64_t limit)
{
    char *text = take(message, 2 * length + 1);
    size_t used = 0;

    for (size_t i = 0; i < length && used + 2 <= limit; i++) {
        uint8_t byte = input_byte(input);

        if (byte >= 0x80)
            text[used++] = (char)(0xC0 | byte >> 6);
        text[used++] = (char)(byte >= 0x80 ? 0x80 | (byte & 0x3F) : byte == 0 ? ' ' : byte);
    }
    return text;
}

static const char *long_text(struct input *input, struct wire_message *message, uint64_t limit)
{
    uint8_t byte = input_byte(input);
    size_t most = byte == 0xFD ? LONGEST_TEXT : LONG_TEXT;
    size_t length = limit < most ? (size_t)limit : most;
    char *text = take(message, length + 1);

    memset(text, byte >= ' ' && byte < 0x7F ? byte : 'x', length);
    return text;
}

static const char *text_of(struct input *input, struct wire_message *message, const char *field, uint64_t limit)
{
    static const char *const roles[] = {"command", "pvmd", "agent", "x"};
    uint8_t byte = input_byte(input);
    const char *text;

    if (strcmp(field, "role") == 0)
        return roles[byte % 4];
    if (byte < 0xA0)
        text = words[byte % (sizeof(words) / sizeof(*words))];
    else if (byte == 0xFB)
        text = long_text(input, message, limit);
    else
        text = raw_text(input, message, (size_t)(byte - 0xA0) % RAW_TEXT, limit);
    return strlen(text) <= limit ? text : "x";
}

static int64_t signed_of(struct input *input, uint64_t limit)
{
    int64_t number = (int64_t)input_number(input, limit);

    return input_byte(input) % 4 == 0 ? -number : number;
}

static double double_of(struct input *input, uint64_t limit)
{
    uint8_t byte = input_byte(input);

    return byte < 200 ? byte / 100.0 : byte < 220 ? (double)limit : byte < 240 ? -1 : -0.5;
}

static void fill_object(struct input *input, struct wire_message *message, const struct wire_object *object, void *out);

static void fill_item(struct input *input, struct wire_message *message, const struct wire_field *field, void *out)
{
    if (field->kind == WIRE_KIND_STRS)
        *(const char **)out = text_of(input, message, field->name, WIRE_ITEM_STR_LIMIT);
    else if (field->kind == WIRE_KIND_UINTS)
        *(uint64_t *)out = number_of(input, field->name, WIRE_ITEM_UINT_LIMIT);
    else if (field->kind == WIRE_KIND_DOUBLES)
        *(double *)out = double_of(input, 1 << 20);
    else
        fill_object(input, message, field->object, out);
}

static void fill_list(struct input *input, struct wire_message *message, const struct wire_field *field, void *out)
{
    uint8_t byte = input_byte(input);
    struct wire_list list = {.count = byte == 0xFB ? LONG_LIST : byte % LIST_ITEMS};
    size_t size = wire_table_item_size(field);

    if (list.count > field->limit)
        list.count = (size_t)field->limit;
    list.items = take(message, list.count * size);
    for (size_t i = 0; i < list.count; i++)
        fill_item(input, message, field, (char *)list.items + i * size);
    memcpy(out, &list, sizeof(list));
}

static void fill_field(struct input *input, struct wire_message *message, const struct wire_field *field, void *out)
{
    switch (field->kind) {
    case WIRE_KIND_BOOL:
        *(bool *)out = input_byte(input) & 1;
        break;
    case WIRE_KIND_UINT:
        *(uint64_t *)out = number_of(input, field->name, field->limit);
        break;
    case WIRE_KIND_INT:
        *(int64_t *)out = signed_of(input, field->limit);
        break;
    case WIRE_KIND_DOUBLE:
        *(double *)out = double_of(input, field->limit);
        break;
    case WIRE_KIND_STR:
        *(const char **)out = text_of(input, message, field->name, field->limit);
        break;
    case WIRE_KIND_STRS:
    case WIRE_KIND_UINTS:
    case WIRE_KIND_DOUBLES:
    case WIRE_KIND_LIST:
        fill_list(input, message, field, out);
        break;
    case WIRE_KIND_COUNT:
        abort();
    }
}

static void fill_object(struct input *input, struct wire_message *message, const struct wire_object *object, void *out)
{
    for (const struct wire_field *field = object->fields(); field->name; field++)
        fill_field(input, message, field, (char *)out + field->offset);
}

void input_message(struct input *input, enum wire_type type, struct wire_message *message)
{
    *message = (struct wire_message){.type = type, .id = input_number(input, INT64_MAX)};
    fill_object(input, message, wire_table_message(type), &message->u);
}

enum wire_type input_type(struct input *input, unsigned sender)
{
    enum wire_type allowed[WIRE_TYPE_COUNT] = {0}, type;
    size_t count = 0;

    for (type = 0; type < WIRE_TYPE_COUNT; type++)
        if (wire_may_send(type, sender))
            allowed[count++] = type;
    return allowed[input_below(input, count)];
}
