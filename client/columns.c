#include "config.h"

#include "client/columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/colour.h"
#include "client/common.h"
#include "client/table.h"
#include "client/words.h"

enum { COLUMNS_MAX = 64 };

/* What stands in a cell goes to out; nothing: it is not known. */
typedef void (*put_cell)(FILE *out, const struct elmer_job *job, int64_t now_ms);

#define CELL(name) static void put_##name(FILE *out, const struct elmer_job *job, int64_t now_ms)
#define TEXT_CELL(name)                                                                                                \
    CELL(name)                                                                                                         \
    {                                                                                                                  \
        (void)now_ms;                                                                                                  \
        fputs(job->name, out);                                                                                         \
    }
#define COUNT_CELL(name)                                                                                               \
    CELL(name)                                                                                                         \
    {                                                                                                                  \
        (void)now_ms;                                                                                                  \
        fprintf(out, "%" PRIu64, (uint64_t)job->name);                                                                 \
    }
#define TIME_CELL(name)                                                                                                \
    CELL(name)                                                                                                         \
    {                                                                                                                  \
        char text[WORDS_MAX];                                                                                          \
        (void)now_ms;                                                                                                  \
        fputs(words_local_time(text, job->name##_ms), out);                                                            \
    }

/* clang-format off */
COUNT_CELL(attempt)
COUNT_CELL(nprocs)
COUNT_CELL(ahead)
TEXT_CELL(name)
TEXT_CELL(user)
TEXT_CELL(state)
TEXT_CELL(reason)
TEXT_CELL(comment)
TEXT_CELL(dir)
TIME_CELL(submitted)
TIME_CELL(started)
TIME_CELL(ended)
/* clang-format on */

CELL(id)
{
    char text[WORDS_MAX];

    (void)now_ms;
    fputs(words_id(text, job), out);
}

CELL(array)
{
    (void)now_ms;
    if (job->array)
        fprintf(out, "%" PRIu64, job->array);
}

CELL(index)
{
    (void)now_ms;
    if (job->array)
        fprintf(out, "%d", job->index);
}

CELL(level)
{
    (void)now_ms;
    if (job->level >= 0)
        fprintf(out, "%d", job->level);
}

CELL(time)
{
    char text[WORDS_MAX];

    fputs(words_duration(text, job->started_ms, job->ended_ms, now_ms), out);
}

CELL(cpu)
{
    double sum = 0;

    (void)now_ms;
    for (size_t i = 0; i < job->nusage; i++)
        sum += job->usage[i].cpu_seconds > 0 ? job->usage[i].cpu_seconds : 0;
    if (job->nusage > 0)
        fprintf(out, "%.2fs", sum);
}

CELL(levels)
{
    (void)now_ms;
    for (size_t i = 0; i < job->nlevels; i++)
        fprintf(out, "%sL%zu %.1fs", i > 0 ? "  " : "", i, job->level_seconds[i]);
}

CELL(hosts)
{
    char *text = words_hosts(job);

    (void)now_ms;
    fputs(text, out);
    free(text);
}

CELL(command)
{
    char *text = words_command(job);

    (void)now_ms;
    fputs(text, out);
    free(text);
}

/* Of the first rank, with its host. */
CELL(output)
{
    char *path = elmer_job_output(job, 0, false);

    (void)now_ms;
    if (path)
        fprintf(out, "%s%s%s", job->nprocessors > 0 ? job->processors[0].host : "", job->nprocessors > 0 ? ":" : "",
                path);
    free(path);
}

CELL(result)
{
    char text[WORDS_MAX];

    (void)now_ms;
    fputs(words_outcome(text, job), out);
}

static const struct known {
    const char *name;
    struct table_column column;
    put_cell put;
} known[] = {
    {"id", {"JOB", true, false}, put_id},
    {"name", {"NAME", false, true}, put_name},
    {"user", {"USER", false, false}, put_user},
    {"state", {"STATE", false, false}, put_state},
    {"level", {"LEVEL", true, false}, put_level},
    {"nprocs", {"NPROCS", true, false}, put_nprocs},
    {"ahead", {"AHEAD", true, false}, put_ahead},
    {"attempt", {"ATTEMPT", true, false}, put_attempt},
    {"array", {"ARRAY", true, false}, put_array},
    {"index", {"INDEX", true, false}, put_index},
    {"time", {"TIME", true, false}, put_time},
    {"cpu", {"CPU", true, false}, put_cpu},
    {"levels", {"LEVELS", false, false}, put_levels},
    {"hosts", {"HOSTS", false, true}, put_hosts},
    {"submitted", {"SUBMITTED", false, false}, put_submitted},
    {"started", {"STARTED", false, false}, put_started},
    {"ended", {"ENDED", false, false}, put_ended},
    {"result", {"RESULT", false, false}, put_result},
    {"reason", {"REASON", false, true}, put_reason},
    {"command", {"COMMAND", false, true}, put_command},
    {"dir", {"DIRECTORY", false, true}, put_dir},
    {"output", {"OUTPUT", false, true}, put_output},
    {"comment", {"COMMENT", false, true}, put_comment},
};

/* The number of columns, in wanted; 0: *wrong is none of them, or there are too many. */
static size_t parse(const char *list, const struct known *wanted[COLUMNS_MAX], char **wrong)
{
    char *copy = must(strdup(list)), *rest = copy, *item;
    size_t count = 0;

    *wrong = NULL;
    while (!*wrong && (item = strsep(&rest, ","))) {
        size_t i = 0;

        while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i].name, item) != 0)
            i++;
        if (i == sizeof(known) / sizeof(known[0]) || count == COLUMNS_MAX)
            *wrong = must(strdup(item));
        else
            wanted[count++] = &known[i];
    }
    free(copy);
    return *wrong ? 0 : count;
}

bool columns_check(const char *list)
{
    const struct known *wanted[COLUMNS_MAX];
    char names[400] = "", *wrong;
    bool good = parse(list, wanted, &wrong) > 0;

    for (size_t i = 0, at = 0; i < sizeof(known) / sizeof(known[0]); i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i > 0 ? ", " : "", known[i].name);
    if (!good)
        usage_error("--format: '%s' is no column; there are %s", wrong ? wrong : "", names);
    free(wrong);
    return good;
}

static void add_row(struct table *table, const struct known *const *wanted, size_t count, const struct elmer_job *job,
                    int64_t now_ms)
{
    char *cells[COLUMNS_MAX];

    for (size_t i = 0; i < count; i++) {
        size_t size;
        FILE *out = must(open_memstream(&cells[i], &size));

        wanted[i]->put(out, job, now_ms);
        if (fclose(out) != 0)
            must(NULL);
    }
    table_add(table, (const char *const *)cells);
    for (size_t i = 0; i < count; i++) {
        if (wanted[i]->put == put_state || wanted[i]->put == put_result)
            table_paint(table, i, colour_of(job));
        free(cells[i]);
    }
}

void columns_show(FILE *out, const struct elmer_jobs *jobs, const char *list, size_t width, int64_t now_ms)
{
    const struct known *wanted[COLUMNS_MAX];
    struct table_column columns[COLUMNS_MAX];
    struct table table;
    char *wrong;
    size_t count = parse(list, wanted, &wrong);

    free(wrong);
    for (size_t i = 0; i < count; i++)
        columns[i] = wanted[i]->column;
    table_init(&table, columns, count);
    for (size_t i = 0; i < jobs->count; i++)
        add_row(&table, wanted, count, &jobs->items[i], now_ms);
    if (count > 0)
        table_print(&table, out, width);
    table_fini(&table);
}
