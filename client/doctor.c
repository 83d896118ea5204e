/* doctor.c - the list of what was found. */
#include "config.h"

#include "client/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/colour.h"
#include "client/common.h"
#include "client/print_json.h"
#include "client/table.h"

static const char *const levels[] = {"good", "warning", "bad"};

void findings_fini(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->items[i].host);
        free(findings->items[i].text);
    }
    free(findings->items);
    *findings = (struct findings){.count = 0};
}

void finding_add(struct findings *findings, enum finding_level level, const char *host, const char *check,
                 const char *format, ...)
{
    struct finding *finding;
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    findings->items = must(reallocarray(findings->items, findings->count + 1, sizeof(*findings->items)));
    finding = &findings->items[findings->count++];
    *finding = (struct finding){level, must(strdup(host)), check, must(text)};
}

void findings_print(const struct findings *findings, size_t width)
{
    static const struct table_column columns[] = {
        {"", false, false}, {"HOST", false, true}, {"CHECK", false, false}, {"FOUND", false, false}};
    static const char *const colours[] = {NULL, "33", "31"};
    bool colour = colour_wanted();
    struct table table;

    table_init(&table, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        const char *cells[] = {levels[finding->level], finding->host, finding->check, finding->text};

        table_add(&table, cells);
        if (colour)
            table_paint(&table, 0, colours[finding->level]);
    }
    table_print(&table, stdout, width);
    table_fini(&table);
}

void findings_print_json(const struct findings *findings)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];

        json_array_append_new(list, must(json_pack("{s:s, s:s%, s:s, s:s%}", "level", levels[finding->level], "host",
                                                   finding->host, strlen(finding->host), "check", finding->check,
                                                   "text", finding->text, strlen(finding->text))));
    }
    print_json("elmer.doctor/1", "findings", list);
}

int findings_code(const struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].level == FINDING_BAD)
            return EXIT_REFUSED;
    return EXIT_DONE;
}
