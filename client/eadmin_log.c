/* eadmin_log.c - log: what persons have decided. */
#include "config.h"

#include "client/eadmin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/print_json.h"
#include "client/since.h"
#include "client/table.h"
#include "lib/base/clock.h"
#include "libelmer/client.h"

struct pages {
    struct wire_message *items; /* type log */
    size_t count;
};

static int take_page(struct wire_message *answer, void *data)
{
    struct pages *pages = data;

    if (answer->type != WIRE_log)
        return -EPROTO;
    pages->items = must(reallocarray(pages->items, pages->count + 1, sizeof(*pages->items)));
    pages->items[pages->count++] = *answer;
    answer->memory = NULL;
    return 0;
}

static void add_row(struct table *table, const struct wire_decision_view *d)
{
    char when[40], about[300] = "", who[300], why[300] = "";
    const char *cells[] = {when, who, d->from, d->what, about, why};
    time_t at = (time_t)(d->at_ms / 1000);
    struct tm tm;

    localtime_r(&at, &tm);
    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(who, sizeof(who), "%s", d->by);
    if (d->job)
        snprintf(about, sizeof(about), "job %" PRIu64 " of %s", d->job, d->user);
    else if (*d->host)
        snprintf(about, sizeof(about), "host %s", d->host);
    snprintf(why, sizeof(why), "%s", d->text);
    table_add(table, cells);
}

static void print_table(const struct pages *pages)
{
    static const struct table_column columns[] = {{"TIME", false, false},  {"WHO", false, false},
                                                  {"FROM", false, false},  {"WHAT", false, false},
                                                  {"ABOUT", false, false}, {"WHY", false, false}};
    struct table table;

    table_init(&table, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < pages->count; i++)
        for (size_t k = 0; k < pages->items[i].u.log.decisions.count; k++)
            add_row(&table, &pages->items[i].u.log.decisions.items[k]);
    table_print(&table, stdout, 0);
    table_fini(&table);
}

static json_t *text_or_null(const char *text)
{
    return must(*text ? json_string(text) : json_null());
}

static json_t *decision_object(const struct wire_decision_view *d)
{
    char when[32];

    wall_format((struct wall){d->at_ms}, when, sizeof(when));
    return must(json_pack("{s:I, s:s, s:s, s:o, s:o, s:o, s:s, s:I, s:s, s:b, s:o}", "id", (json_int_t)d->id, "time",
                          when, "what", d->what, "job", d->job ? json_integer((json_int_t)d->job) : json_null(), "user",
                          text_or_null(d->user), "host", text_or_null(d->host), "by", d->by, "uid", (json_int_t)d->uid,
                          "from", d->from, "admin", d->admin, "text", text_or_null(d->text)));
}

static void print_log_json(const struct pages *pages)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < pages->count; i++)
        for (size_t k = 0; k < pages->items[i].u.log.decisions.count; k++)
            json_array_append_new(list, decision_object(&pages->items[i].u.log.decisions.items[k]));
    print_json("elmer.log/1", "decisions", list);
}

/* Page after page, until one says that it is the last. */
static int ask(struct pages *pages, int64_t since_ms)
{
    struct wire_message request = {.type = WIRE_query_log, .u.query_log = {.since_ms = since_ms}};
    struct client_call call = {.take = take_page, .data = pages};
    struct elmer_error error = {{0}};
    struct elmer *elmer = open_elmer();
    bool more = true;
    int result = ELMER_OK;

    if (!elmer)
        return EXIT_REFUSED;
    while (more && result == ELMER_OK) {
        size_t before = pages->count;
        const struct wire_log *page;

        result = client_call(elmer, &request, &call, ANSWER_MS, &error);
        if (result != ELMER_OK || pages->count == before)
            break;
        page = &pages->items[pages->count - 1].u.log;
        more = page->more && page->decisions.count > 0;
        if (more)
            request.u.query_log.after = page->decisions.items[page->decisions.count - 1].id;
    }
    elmer_close(elmer);
    return result == ELMER_OK ? EXIT_DONE : say_result(result, &error);
}

int eadmin_log(int argc, char **argv)
{
    static const int takes[] = {OPTION_SINCE, OPTION_JSON, 0};
    struct pages pages = {0};
    int64_t since_ms = 0;
    bool json = false;
    int c, code;

    while ((c = eadmin_option(argc, argv, "+", takes)) != -1) {
        if (c == OPTION_JSON)
            json = true;
        else if (c != OPTION_SINCE)
            return common_option(c, argv);
        else if (!since_parse(optarg, &since_ms))
            return EXIT_USAGE;
    }
    if (optind < argc)
        return usage_error("unexpected argument '%s'", argv[optind]);
    code = ask(&pages, since_ms);
    if (code == EXIT_DONE)
        (json ? print_log_json : print_table)(&pages);
    for (size_t i = 0; i < pages.count; i++)
        wire_message_fini(&pages.items[i]);
    free(pages.items);
    return code == EXIT_DONE ? finish_output(code) : code;
}
