/* why.c - equery --why: why a job waits as a whole, of each host the first rule that it fails, and what would help.
 * What helps several hosts is said once. */
#include "config.h"

#include "client/why.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/answers.h"
#include "client/common.h"
#include "client/table.h"
#include "client/words.h"

enum { NAMED = 6 /* hosts; of more only the number is told */ };

static bool waits(const struct wire_explained *job)
{
    return strcmp(job->state, "queued") == 0 || strcmp(job->state, "held") == 0;
}

/* ---- for people ---- */

static void put_line(const char *format, const char *text)
{
    char *clean = printable(text);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    printf(format, clean);
#pragma GCC diagnostic pop
    free(clean);
}

static void show_running(const struct wire_explained *job, const char *id)
{
    bool first = true;

    printf("Job %s does not wait: it is %s", id, job->state);
    if (job->level >= 0)
        printf(" at level %" PRId64, job->level);
    for (size_t i = 0; i < job->above.count; i++, first = false)
        printf("%s%" PRIu64, first ? ", below job " : ", ", job->above.items[i]);
    puts(".");
}

static void show_job(const struct wire_explained *job, const char *id)
{
    printf("Job %s is %s", id, job->state);
    put_line(": %s\n", *job->reason ? job->reason : job->reason_code);
    if (job->first) {
        printf("The first of those ahead that waits for processors is job %" PRIu64, job->first);
        put_line(": %s\n", job->first_reason);
    }
    if (*job->help)
        put_line("What would help: %s.\n", job->help);
}

static void show_hosts(const struct answers *answers, size_t width)
{
    static const struct table_column columns[] = {
        {"HOST", false, true}, {"USABLE", true, false}, {"RULE", false, false}, {"WHY", false, false}};
    struct table table;

    table_init(&table, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < answers->count; i++)
        for (size_t k = 0; k < answers->pages[i].u.explained.hosts.count; k++) {
            const struct wire_host_why *host = &answers->pages[i].u.explained.hosts.items[k];
            char usable[48];

            snprintf(usable, sizeof(usable), "%" PRIu64 "/%" PRIu64, host->usable, host->processors);
            table_add(&table, (const char *[]){host->host, usable, host->rule, host->text});
        }
    if (table.nrows > 0) {
        puts("");
        table_print(&table, stdout, width);
    }
    table_fini(&table);
}

struct help {
    const char *text;
    const char *hosts[NAMED];
    size_t count;
};

static void note_help(struct help **helps, size_t *count, const struct wire_host_why *host)
{
    size_t i = 0;

    if (!*host->help)
        return;
    while (i < *count && strcmp((*helps)[i].text, host->help) != 0)
        i++;
    if (i == *count) {
        *helps = must(reallocarray(*helps, *count + 1, sizeof(**helps)));
        (*helps)[(*count)++] = (struct help){.text = host->help};
    }
    if ((*helps)[i].count < NAMED)
        (*helps)[i].hosts[(*helps)[i].count] = host->host;
    (*helps)[i].count++;
}

static void put_help(const struct help *help)
{
    if (help->count > NAMED)
        printf("  %zu hosts", help->count);
    for (size_t i = 0; help->count <= NAMED && i < help->count; i++)
        put_line(i > 0 ? ", %s" : "  %s", help->hosts[i]);
    put_line(": %s\n", help->text);
}

static void show_helps(const struct answers *answers)
{
    struct help *helps = NULL;
    size_t count = 0;

    for (size_t i = 0; i < answers->count; i++)
        for (size_t k = 0; k < answers->pages[i].u.explained.hosts.count; k++)
            note_help(&helps, &count, &answers->pages[i].u.explained.hosts.items[k]);
    if (count > 0)
        puts("\nWhat would help there:");
    for (size_t i = 0; i < count; i++)
        put_help(&helps[i]);
    free(helps);
}

/* names: where a task has its array and index; NULL: not known. */
static const char *name_of(char text[WORDS_MAX], uint64_t id, const struct elmer_jobs *names)
{
    const struct elmer_job plain = {.id = id}, *job = &plain;

    for (size_t i = 0; names && i < names->count; i++)
        if (names->items[i].id == id)
            job = &names->items[i];
    return words_id(text, job);
}

static void show(const struct answers *answers, const struct elmer_jobs *names, size_t width)
{
    const struct wire_explained *job = &answers->pages[0].u.explained;
    char id[WORDS_MAX];

    name_of(id, job->job, names);
    if (!waits(job)) {
        show_running(job, id);
        return;
    }
    show_job(job, id);
    show_hosts(answers, width);
    show_helps(answers);
}

/* ---- for programs ---- */

static json_t *text_or_null(const char *text)
{
    return must(*text ? json_string(text) : json_null());
}

static json_t *hosts_array(const struct answers *answers)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < answers->count; i++)
        for (size_t k = 0; k < answers->pages[i].u.explained.hosts.count; k++) {
            const struct wire_host_why *host = &answers->pages[i].u.explained.hosts.items[k];

            json_array_append_new(
                list, must(json_pack("{s:s, s:s, s:I, s:I, s:s, s:o}", "host", host->host, "rule", host->rule,
                                     "processors", (json_int_t)host->processors, "usable", (json_int_t)host->usable,
                                     "text", host->text, "help", text_or_null(host->help))));
        }
    return list;
}

static json_t *job_object(const struct answers *answers)
{
    const struct wire_explained *job = &answers->pages[0].u.explained;
    json_t *above = must(json_array());

    for (size_t i = 0; i < job->above.count; i++)
        json_array_append_new(above, must(json_integer((json_int_t)job->above.items[i])));
    return must(json_pack(
        "{s:I, s:s, s:I, s:o, s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "id", (json_int_t)job->job, "state", job->state,
        "nprocs", (json_int_t)job->nprocs, "level", job->level >= 0 ? json_integer(job->level) : json_null(),
        "reason_code", job->reason_code, "reason", text_or_null(job->reason), "help", text_or_null(job->help), "ahead",
        (json_int_t)job->ahead, "first", job->first ? json_integer((json_int_t)job->first) : json_null(),
        "first_reason", text_or_null(job->first_reason), "above", above, "hosts", hosts_array(answers)));
}

static void put_json(json_t *jobs)
{
    json_t *top = must(json_pack("{s:s, s:o}", "schema", "elmer.why/1", "jobs", jobs));
    char *text = must(json_dumps(top, JSON_COMPACT));

    puts(text);
    free(text);
    json_decref(top);
}

/* ---- asking ---- */

/* Whether it has been answered; *code: the worst so far. */
static bool ask(struct elmer *elmer, uint64_t id, struct answers *answers, int *code)
{
    struct wire_message request = {.type = WIRE_explain, .u.explain = {.job = id}};
    struct elmer_error error = {{0}};
    int result = answers_ask(elmer, &request, WIRE_explained, answers, &error);
    int worse = result == ELMER_OK ? EXIT_DONE : say_result(result, &error);

    *code = worse > *code ? worse : *code;
    return result == ELMER_OK;
}

static bool has_tasks(const struct ref *refs, size_t nrefs)
{
    size_t i = 0;

    while (i < nrefs && !refs[i].tasks)
        i++;
    return i < nrefs;
}

int why_show(const struct ref *refs, size_t nrefs, bool json, size_t width)
{
    struct elmer *elmer = open_elmer();
    struct elmer_jobs *names = NULL;
    json_t *jobs;
    uint64_t *ids;
    size_t nids;
    int worst;

    if (!elmer)
        return EXIT_REFUSED;
    worst = refs_ids(elmer, refs, nrefs, ANSWER_MS, &ids, &nids);
    if (worst >= 0) {
        free(ids);
        elmer_close(elmer);
        return worst;
    }
    if (!json && has_tasks(refs, nrefs))
        (void)elmer_query(elmer, false, false, ids, nids, ANSWER_MS, &names, NULL);
    jobs = must(json_array());
    worst = EXIT_DONE;
    for (size_t i = 0; i < nids && worst != EXIT_UNREACHABLE; i++) {
        struct answers answers;

        if (ask(elmer, ids[i], &answers, &worst)) {
            if (json)
                json_array_append_new(jobs, job_object(&answers));
            else if (i > 0)
                puts("");
            if (!json)
                show(&answers, names, width);
        }
        answers_free(&answers);
    }
    free(ids);
    elmer_jobs_free(names);
    elmer_close(elmer);
    if (json)
        put_json(jobs);
    else
        json_decref(jobs);
    return finish_output(worst);
}
