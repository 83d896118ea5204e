/* eadmin_set.c - set, show: what administrators change while elmer runs. */
#include "config.h"

#include "client/eadmin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/print_json.h"
#include "client/table.h"
#include "libelmer/client.h"

int eadmin_set(int argc, char **argv)
{
    static const int takes[] = {0};
    struct wire_message request = {.type = WIRE_set};
    int c = eadmin_option(argc, argv, "+", takes);

    if (c != -1)
        return common_option(c, argv);
    if (argc - optind < 2)
        return usage_error("set needs a setting and its value, such as: eadmin set allocator v1");
    if (argc - optind > 2)
        return usage_error("one setting at a time: '%s' is too many", argv[optind + 2]);
    if (strlen(argv[optind]) > 32 || strlen(argv[optind + 1]) > 32)
        return usage_error("'%s %s' is too long", argv[optind], argv[optind + 1]);
    request.u.set.setting = argv[optind];
    request.u.set.value = argv[optind + 1];
    return eadmin_ask(&request);
}

/* ---- show ---- */

static int take_settings(struct wire_message *answer, void *data)
{
    struct wire_message *settings = data;

    if (answer->type != WIRE_settings)
        return -EPROTO;
    wire_message_fini(settings);
    *settings = *answer;
    answer->memory = NULL;
    return 0;
}

static char *join(struct wire_strs words)
{
    size_t size = 1;
    char *text;

    for (size_t i = 0; i < words.count; i++)
        size += strlen(words.items[i]) + 1;
    text = must(calloc(1, size));
    for (size_t i = 0; i < words.count; i++) {
        if (i > 0)
            strncat(text, " ", size - strlen(text) - 1);
        strncat(text, words.items[i], size - strlen(text) - 1);
    }
    return text;
}

static void print_settings(const struct wire_settings *settings)
{
    static const struct table_column columns[] = {
        {"SETTING", false, false}, {"VALUE", false, false}, {"FROM", false, false}, {"KNOWN", false, false}};
    struct table table;

    table_init(&table, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < settings->settings.count; i++) {
        const struct wire_setting_view *view = &settings->settings.items[i];
        char *known = join(view->known), from[100];
        const char *cells[4] = {view->setting, view->value, from, known};

        snprintf(from, sizeof(from), "%s%s%s", view->set ? "eadmin set (elmer.conf: " : "elmer.conf",
                 view->set ? view->configured : "", view->set ? ")" : "");
        table_add(&table, cells);
        free(known);
    }
    table_print(&table, stdout, 0);
    table_fini(&table);
}

static void print_settings_json(const struct wire_settings *settings)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < settings->settings.count; i++) {
        const struct wire_setting_view *view = &settings->settings.items[i];
        json_t *known = must(json_array());

        for (size_t k = 0; k < view->known.count; k++)
            json_array_append_new(known, must(json_string(view->known.items[k])));
        json_array_append_new(
            list, must(json_pack("{s:s, s:s, s:s, s:b, s:o}", "setting", view->setting, "value", view->value,
                                 "configured", view->configured, "set", view->set, "known", known)));
    }
    print_json("elmer.settings/1", "settings", list);
}

static int query_settings(bool json)
{
    struct wire_message request = {.type = WIRE_query_settings}, settings = {.memory = NULL};
    struct client_call call = {.take = take_settings, .data = &settings};
    struct elmer_error error = {{0}};
    struct elmer *elmer = open_elmer();
    int result;

    if (!elmer)
        return EXIT_REFUSED;
    result = client_call(elmer, &request, &call, ANSWER_MS, &error);
    elmer_close(elmer);
    if (result == ELMER_OK)
        (json ? print_settings_json : print_settings)(&settings.u.settings);
    wire_message_fini(&settings);
    return result == ELMER_OK ? finish_output(EXIT_DONE) : say_result(result, &error);
}

int eadmin_show(int argc, char **argv)
{
    return eadmin_query(argc, argv, query_settings);
}
