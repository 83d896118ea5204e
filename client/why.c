/* why.c - equery --why: why a job waits as a whole, of each host the first rule that it fails, and what would help.
 * What helps several hosts is said once. */
#include "config.h"

#include "client/why.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/table.h"
#include "client/words.h"
#include "libelmer/client.h"

enum { NAMED = 6 /* hosts; of more only the number is told */ };

static bool waits(const struct elmer_explained *job)
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

static void show_running(const struct elmer_explained *job, const char *id)
{
    bool first = true;

    printf("Job %s does not wait: it is %s", id, job->state);
    if (job->level >= 0)
        printf(" at level %d", job->level);
    for (size_t i = 0; i < job->nabove; i++, first = false)
        printf("%s%" PRIu64, first ? ", below job " : ", ", job->above[i]);
    puts(".");
}

static void show_job(const struct elmer_explained *job, const char *id)
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

static void show_hosts(const struct elmer_explained *job, size_t width)
{
    static const struct table_column columns[] = {
        {"HOST", false, true}, {"USABLE", true, false}, {"RULE", false, false}, {"WHY", false, false}};
    struct table table;

    table_init(&table, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < job->nhosts; i++) {
        const struct elmer_host_why *host = &job->hosts[i];
        char usable[48];

        snprintf(usable, sizeof(usable), "%" PRIu32 "/%" PRIu32, host->usable, host->processors);
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

static void note_help(struct help **helps, size_t *count, const struct elmer_host_why *host)
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

static void show_helps(const struct elmer_explained *job)
{
    struct help *helps = NULL;
    size_t count = 0;

    for (size_t i = 0; i < job->nhosts; i++)
        note_help(&helps, &count, &job->hosts[i]);
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

static void show(const struct elmer_explained *job, const struct elmer_jobs *names, size_t width)
{
    char id[WORDS_MAX];

    name_of(id, job->job, names);
    if (!waits(job)) {
        show_running(job, id);
        return;
    }
    show_job(job, id);
    show_hosts(job, width);
    show_helps(job);
}

/* ---- for programs ---- */

static void put_json(const struct elmer_explained *const *explained, size_t count)
{
    char *text = must(client_explained_json(explained, count));

    puts(text);
    free(text);
}

/* ---- asking ---- */

/* NULL: it has said why not; *code: the worst so far. */
static struct elmer_explained *ask(struct elmer *elmer, uint64_t id, int *code)
{
    struct elmer_error error = {{0}};
    struct elmer_explained *explained;
    int result = elmer_explain(elmer, id, ANSWER_MS, &explained, &error);
    int worse = result == ELMER_OK ? EXIT_DONE : say_result(result, &error);

    *code = worse > *code ? worse : *code;
    return explained;
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
    struct elmer_explained **explained;
    uint64_t *ids;
    size_t nids, count = 0;
    int worst;

    if (!elmer)
        return EXIT_REFUSED;
    worst = refs_ids(elmer, refs, nrefs, REFS_ONCE, &ids, &nids);
    if (worst >= 0) {
        free(ids);
        elmer_close(elmer);
        return worst;
    }
    if (!json && has_tasks(refs, nrefs))
        (void)elmer_query(elmer, false, false, ids, nids, ANSWER_MS, &names, NULL);
    explained = must(calloc(nids + 1, sizeof(*explained)));
    worst = EXIT_DONE;
    for (size_t i = 0; i < nids && worst != EXIT_UNREACHABLE; i++) {
        struct elmer_explained *job = ask(elmer, ids[i], &worst);

        if (json && job) {
            explained[count++] = job;
        } else if (job) {
            if (i > 0)
                puts("");
            show(job, names, width);
            elmer_explained_free(job);
        }
    }
    if (json)
        put_json((const struct elmer_explained *const *)explained, count);
    for (size_t i = 0; i < count; i++)
        elmer_explained_free(explained[i]);
    free(explained);
    free(ids);
    elmer_jobs_free(names);
    elmer_close(elmer);
    return finish_output(worst);
}
