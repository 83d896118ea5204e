/* seeds.c - what libFuzzer is given to begin with: `seeds FOLDER` writes a few messages of every type, as JSON;
 * `seeds --dictionary` prints every word of messages.def. Both follow the table by themselves. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/table.h"
#include "tests/fuzz/fuzz.h"

enum { SEEDS = 3, BYTES = 400 };

static void print_fields(const struct wire_object *object)
{
    for (const struct wire_field *field = object->fields(); field->name; field++)
        printf("\"\\\"%s\\\":\"\n", field->name);
}

static int print_dictionary(void)
{
    static const char *const values[] = {"true", "false",      "null",      "9223372036854775807", "-1",
                                         "1e15", "4294967295", "\\\\u001b", "\\\\ud83d\\\\ude00",  "\\xC3\\xA9",
                                         "{}",   "[]",         "[[",        "\\\"id\\\":"};

    for (enum wire_type type = 0; type < WIRE_TYPE_COUNT; type++) {
        printf("\"{\\\"type\\\":\\\"%s\\\",\\\"id\\\":1\"\n", wire_type_name(type));
        print_fields(wire_table_message(type));
    }
    for (const struct wire_object *const *object = wire_table_structs(); *object; object++)
        print_fields(*object);
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        printf("\"%s\"\n", values[i]);
    return 0;
}

static void write_seed(const char *folder, enum wire_type type, unsigned number)
{
    struct wire_message message;
    struct err err = ERR_INIT;
    uint8_t bytes[BYTES];
    struct input input = {bytes, sizeof(bytes)};
    char *json, *path;
    size_t size;
    FILE *file;

    for (unsigned i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)((i * 37 + number * 101 + (unsigned)type * 13) % (number == 0 ? 16 : 250));
    input_message(&input, type, &message);
    if (wire_encode(&message, WIRE_MINOR, &json, &size, &err) != 0) {
        fprintf(stderr, "%s: %s\n", wire_type_name(type), err.text);
        exit(1);
    }
    wire_message_fini(&message);
    if (asprintf(&path, "%s/%s-%u", folder, wire_type_name(type), number) < 0 || !(file = fopen(path, "we"))) {
        perror(folder);
        exit(1);
    }
    fwrite(json, 1, size, file);
    fclose(file);
    free(path);
    free(json);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--dictionary") == 0)
        return print_dictionary();
    if (argc != 2) {
        fprintf(stderr, "usage: seeds FOLDER | seeds --dictionary\n");
        return 2;
    }
    for (enum wire_type type = 0; type < WIRE_TYPE_COUNT; type++)
        for (unsigned number = 0; number < SEEDS; number++)
            write_seed(argv[1], type, number);
    return 0;
}
