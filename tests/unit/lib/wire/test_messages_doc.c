/* test_messages_doc.c - the table in doc/04-messages.md is what messages.def says. With --print: print it (make
 * update-messages-doc). */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/wire/table.h"

enum { TEXT_MAX = 1 << 20 };

#define BEGIN "<!-- from messages.def: make update-messages-doc -->\n"

static void print_senders(FILE *out, unsigned senders)
{
    static const char *const names[] = {"client",     "elmer", "host",   "root half",
                                        "supervisor", "agent", "joiner", "signer"};
    const char *comma = "";

    if ((senders & WIRE_FROM_ANY) == WIRE_FROM_ANY) {
        fputs("anybody", out);
        return;
    }
    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if ((senders & 1u << i) == 0)
            continue;
        fprintf(out, "%s%s", comma, names[i]);
        comma = ", ";
    }
}

static void print_limit(FILE *out, const struct wire_field *field, const char *unit)
{
    if (field->limit >= INT64_MAX)
        return;
    fprintf(out, ", at most %" PRIu64 "%s", field->limit, unit);
}

static void print_type(FILE *out, const struct wire_field *field)
{
    static const char *const names[WIRE_KIND_COUNT] = {
        [WIRE_KIND_BOOL] = "true or false",
        [WIRE_KIND_UINT] = "whole number from 0",
        [WIRE_KIND_INT] = "whole number",
        [WIRE_KIND_DOUBLE] = "number",
        [WIRE_KIND_STR] = "text",
        [WIRE_KIND_STRS] = "list of texts",
        [WIRE_KIND_UINTS] = "list of whole numbers",
        [WIRE_KIND_DOUBLES] = "list of numbers",
        [WIRE_KIND_LIST] = "list of",
    };

    fprintf(out, "%s", names[field->kind]);
    if (field->kind == WIRE_KIND_LIST)
        fprintf(out, " `%s`", field->object->name);
    if (field->kind == WIRE_KIND_STR)
        print_limit(out, field, " bytes");
    else if (field->kind == WIRE_KIND_UINT || field->kind == WIRE_KIND_INT || field->kind == WIRE_KIND_DOUBLE)
        print_limit(out, field, field->kind == WIRE_KIND_UINT ? "" : " either way");
    else if (field->kind != WIRE_KIND_BOOL)
        print_limit(out, field, " items");
    if (field->since > 0)
        fprintf(out, ", since 1.%u", field->since);
}

static void print_object(FILE *out, const struct wire_object *object)
{
    const struct wire_field *field = object->fields();

    fprintf(out, "| `%s` | ", object->name);
    if (object->senders != 0)
        print_senders(out, object->senders);
    else
        fputs("(inside others)", out);
    if (object->since > 0)
        fprintf(out, ", since 1.%u", object->since);
    fputs(" | ", out);
    for (; field->name; field++) {
        fprintf(out, "%s`%s`: ", field == object->fields() ? "" : "<br>", field->name);
        print_type(out, field);
    }
    fputs(" |\n", out);
}

static void print_table(FILE *out)
{
    fputs(BEGIN "| message | sent by | fields |\n|---|---|---|\n", out);
    for (enum wire_type type = 0; type < WIRE_TYPE_COUNT; type++)
        print_object(out, wire_table_message(type));
    for (const struct wire_object *const *object = wire_table_structs(); *object; object++)
        print_object(out, *object);
}

int main(int argc, char **argv)
{
    char *table = NULL, *text = NULL;
    const char *begin;
    size_t size;
    int result = 1;
    FILE *out;
    struct err err = ERR_INIT;

    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        print_table(stdout);
        return 0;
    }
    out = open_memstream(&table, &size);
    if (!out)
        return 1;
    print_table(out);
    if (fclose(out) != 0)
        return 1;
    if (file_read(AT_FDCWD, TOP_SRCDIR "/doc/04-messages.md", TEXT_MAX, &text, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    begin = strstr(text, BEGIN);
    if (begin && strcmp(begin, table) == 0)
        result = 0;
    else
        fprintf(stderr, "doc/04-messages.md does not say what messages.def says: run make update-messages-doc\n");
    free(text);
    free(table);
    return result;
}
