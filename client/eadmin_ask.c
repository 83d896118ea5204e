/* eadmin_ask.c - hosts, hold, release: what is asked of elmer. */
#include "config.h"

#include "client/eadmin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/host_pages.h"
#include "client/print_json.h"
#include "client/refs.h"
#include "client/table.h"
#include "lib/base/clock.h"
#include "libelmer/client.h"

enum { NOTE_BYTES = 200, NOTE_MS = 3000 };

/* ---- one request that is answered by done ---- */

static int take_done(struct wire_message *answer, void *data)
{
    char **text = data;

    if (answer->type != WIRE_done)
        return -EPROTO;
    free(*text);
    *text = strdup(answer->u.done.text);
    return *text ? 0 : -ENOMEM;
}

static void print_line(const char *text)
{
    char *line = printable(text);

    puts(line);
    fflush(stdout);
    free(line);
}

int eadmin_done(struct elmer *elmer, struct wire_message *request)
{
    struct elmer_error error = {{0}};
    char *text = NULL;
    struct client_call call = {.take = take_done, .data = &text};
    int result = client_call(elmer, request, &call, ANSWER_MS, &error);

    if (result == ELMER_OK && text && *text)
        print_line(text);
    free(text);
    return result == ELMER_OK ? EXIT_DONE : say_result(result, &error);
}

/* No options but the common ones; -1: go on with argv[optind]... */
static int parse_none(int argc, char **argv, const char *missing)
{
    static const int takes[] = {0};
    int c = eadmin_option(argc, argv, "+", takes);

    if (c != -1)
        return common_option(c, argv);
    return optind == argc ? usage_error("%s is missing", missing) : -1;
}

int eadmin_ask(struct wire_message *request)
{
    struct elmer *elmer = open_elmer();
    int code = elmer ? eadmin_done(elmer, request) : EXIT_REFUSED;

    elmer_close(elmer);
    return finish_output(code);
}

/* ---- what was done without elmer ---- */

/* As much of it as a note takes, and no half of a character; the caller's. */
static char *note_text(const char *text)
{
    char *clean = printable(text);
    size_t size = strlen(clean);

    if (size > NOTE_BYTES)
        for (size = NOTE_BYTES; size > 0 && ((unsigned char)clean[size] & 0xC0) == 0x80;)
            size--;
    clean[size] = '\0';
    return clean;
}

void eadmin_note(const char *what, const char *host, const char *text)
{
    const char *socket = getenv("ELMER_SOCKET");
    struct elmer_options options = {.socket = socket && *socket ? socket : NULL};
    struct elmer_error error = {{0}};
    char *clean = note_text(text), *answer = NULL;
    struct wire_message request = {.type = WIRE_note, .u.note = {.what = what, .host = host, .text = clean}};
    struct client_call call = {.take = take_done, .data = &answer};
    struct elmer *elmer = NULL;
    int result = elmer_open(&options, &elmer, &error);

    if (result == ELMER_OK) {
        tell_sudo(elmer);
        result = client_call(elmer, &request, &call, NOTE_MS, &error);
    }
    if (result != ELMER_OK)
        say("\"eadmin log\" does not show that: %s", error.text);
    elmer_close(elmer);
    free(answer);
    free(clean);
}

/* ---- jobs ---- */

/* Of an array, all of it or some tasks. */
static int tell_job(struct elmer *elmer, const struct ref *ref, bool hold)
{
    struct wire_message request = {.type = hold ? WIRE_hold : WIRE_release};
    const char *tasks = ref->tasks && strcmp(ref->tasks, "*") != 0 ? ref->tasks : "";

    if (hold) {
        request.u.hold.job = ref->id;
        request.u.hold.tasks = tasks;
    } else {
        request.u.release.job = ref->id;
        request.u.release.tasks = tasks;
    }
    return eadmin_done(elmer, &request);
}

static int tell_jobs(const struct ref *refs, size_t count, bool hold)
{
    struct elmer *elmer = open_elmer();
    int code = EXIT_DONE, worst = EXIT_DONE;

    if (!elmer)
        return EXIT_REFUSED;
    for (size_t i = 0; i < count && code != EXIT_UNREACHABLE; i++) {
        code = tell_job(elmer, &refs[i], hold);
        worst = code > worst ? code : worst;
    }
    elmer_close(elmer);
    return finish_output(worst);
}

static int for_jobs(int argc, char **argv, bool hold)
{
    int code = parse_none(argc, argv, "the id of a job");
    size_t count = 0;
    struct ref *refs;

    if (code >= 0)
        return code;
    refs = must(calloc((size_t)(argc - optind), sizeof(*refs)));
    while (code < 0 && optind + (int)count < argc) {
        if (!ref_parse(argv[optind + (int)count], &refs[count]))
            code = EXIT_USAGE;
        count++;
    }
    if (code < 0)
        code = tell_jobs(refs, count, hold);
    refs_fini(refs, count);
    return code;
}

int eadmin_hold(int argc, char **argv)
{
    return for_jobs(argc, argv, true);
}

int eadmin_release(int argc, char **argv)
{
    return for_jobs(argc, argv, false);
}

/* ---- hosts ---- */

static void add_row(struct table *table, const struct wire_host_view *view)
{
    char processors[24], until[32] = "";
    const char *cells[7] = {view->host, view->state, processors, view->mode, view->address, until, view->reason};

    snprintf(processors, sizeof(processors), "%llu", (unsigned long long)view->processors);
    if (view->certificate)
        wall_format((struct wall){view->valid_until_ms}, until, sizeof(until));
    until[view->certificate ? 16 : 0] = 0; /* minutes are enough */
    if (until[0])
        until[10] = ' ';
    table_add(table, cells);
}

static void print_table(const struct host_pages *hosts)
{
    static const struct table_column columns[] = {{"HOST", false, true},     {"STATE", false, false},
                                                  {"CPUS", true, false},     {"MODE", false, false},
                                                  {"ADDRESS", false, false}, {"VALID UNTIL (UTC)", false, false},
                                                  {"REASON", false, false}};
    struct table table;

    table_init(&table, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < hosts->count; i++)
        for (size_t k = 0; k < hosts->items[i].u.hosts.hosts.count; k++)
            add_row(&table, &hosts->items[i].u.hosts.hosts.items[k]);
    table_print(&table, stdout, table_terminal_width());
    table_fini(&table);
}

/* ---- what hosts lack: each thing once, below the table, with those that lack it ---- */

enum { NAMED = 8 /* hosts; of more only the number is told */ };

struct lack {
    const char *text;
    const char *hosts[NAMED];
    size_t count;
};
struct lacks {
    struct lack *items;
    size_t count, hosts; /* hosts: that are linked */
};

static void add_lack(struct lacks *lacks, const char *text, const char *host)
{
    size_t i = 0;

    while (i < lacks->count && strcmp(lacks->items[i].text, text) != 0)
        i++;
    if (i == lacks->count) {
        lacks->items = must(reallocarray(lacks->items, lacks->count + 1, sizeof(*lacks->items)));
        lacks->items[lacks->count++] = (struct lack){.text = text};
    }
    if (lacks->items[i].count < NAMED)
        lacks->items[i].hosts[lacks->items[i].count] = host;
    lacks->items[i].count++;
}

static void print_lack(const struct lack *lack, size_t hosts)
{
    char *text = printable(lack->text);

    printf("%s (", text);
    if (lack->count == hosts && hosts > 1)
        fputs("all hosts", stdout);
    else if (lack->count > NAMED)
        printf("%zu hosts", lack->count);
    else
        for (size_t i = 0; i < lack->count; i++)
            printf("%s%s", i > 0 ? ", " : "", lack->hosts[i]);
    puts(")");
    free(text);
}

static void print_lacks(const struct host_pages *hosts)
{
    struct lacks lacks = {.count = 0};

    for (size_t i = 0; i < hosts->count; i++)
        for (size_t k = 0; k < hosts->items[i].u.hosts.hosts.count; k++) {
            const struct wire_host_view *view = &hosts->items[i].u.hosts.hosts.items[k];

            lacks.hosts += strcmp(view->state, "never-seen") != 0;
            for (size_t n = 0; n < view->lacks.count; n++)
                add_lack(&lacks, view->lacks.items[n], view->host);
        }
    for (size_t i = 0; i < lacks.count; i++) {
        if (i == 0)
            putchar('\n');
        print_lack(&lacks.items[i], lacks.hosts);
    }
    free(lacks.items);
}

static json_t *time_or_null(int64_t ms)
{
    char text[32];

    if (ms <= 0)
        return must(json_null());
    wall_format((struct wall){ms}, text, sizeof(text));
    return must(json_string(text));
}

static json_t *host_object(const struct wire_host_view *view)
{
    json_t *lacks;

    lacks = must(json_array());
    for (size_t i = 0; i < view->lacks.count; i++)
        json_array_append_new(lacks, must(json_string(view->lacks.items[i])));
    return must(json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:b, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "host", view->host,
                          "state", view->state, "processors", (json_int_t)view->processors, "running",
                          (json_int_t)view->jobs, "mode", view->mode, "address", view->address, "local", view->local,
                          "valid_until", time_or_null(view->certificate ? view->valid_until_ms : -1), "heard",
                          time_or_null(view->heard_ms), "reason", view->reason, "lacks", lacks, "refused",
                          view->refused_ms > 0
                              ? json_pack("{s:o, s:s}", "time", time_or_null(view->refused_ms), "reason", view->refused)
                              : json_null(),
                          "drained",
                          *view->drained_by ? json_pack("{s:o, s:s, s:s}", "time", time_or_null(view->drained_ms), "by",
                                                        view->drained_by, "reason", view->drained_for)
                                            : json_null(),
                          "version", *view->version ? json_string(view->version) : json_null()));
}

static void print_hosts_json(const struct host_pages *hosts)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < hosts->count; i++)
        for (size_t k = 0; k < hosts->items[i].u.hosts.hosts.count; k++)
            json_array_append_new(list, host_object(&hosts->items[i].u.hosts.hosts.items[k]));
    print_json("elmer.hosts/1", "hosts", list);
}

static int query_hosts(bool json)
{
    struct host_pages hosts = {.count = 0};
    struct elmer_error error = {{0}};
    struct elmer *elmer = open_elmer();
    int result = elmer ? host_pages_ask(elmer, &hosts, &error) : ELMER_FAILED;

    elmer_close(elmer);
    if (result == ELMER_OK && json) {
        print_hosts_json(&hosts);
    } else if (result == ELMER_OK) {
        print_table(&hosts);
        print_lacks(&hosts);
    }
    host_pages_free(&hosts);
    if (!elmer)
        return EXIT_REFUSED;
    return result == ELMER_OK ? finish_output(EXIT_DONE) : say_result(result, &error);
}

int eadmin_query(int argc, char **argv, int (*answer)(bool json))
{
    static const int takes[] = {OPTION_JSON, 0};
    bool json = false;
    int c;

    while ((c = eadmin_option(argc, argv, "+", takes)) != -1) {
        if (c != OPTION_JSON)
            return common_option(c, argv);
        json = true;
    }
    return optind < argc ? usage_error("unexpected argument '%s'", argv[optind]) : answer(json);
}

int eadmin_hosts(int argc, char **argv)
{
    return eadmin_query(argc, argv, query_hosts);
}
