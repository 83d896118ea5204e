/* hosts.c - equery --hosts: a row for each host, with a column for each level that is in use. */
#include "config.h"

#include "client/hosts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/filter.h"
#include "client/table.h"
#include "client/words.h"
#include "lib/base/bytes.h"
#include "libelmer/client.h"

enum { LEVELS_MAX = 16, BEFORE_MAX = 7 /* columns */, COLUMNS_MAX = BEFORE_MAX + LEVELS_MAX + 1, SMALL = 48 };

struct seen {
    const struct elmer_host **hosts; /* those that are wanted */
    size_t nhosts;
    const struct elmer_jobs *jobs;
    size_t before; /* columns before those of levels: one more where some job has asked for memory */
};

static double outside(const struct elmer_host *host)
{
    return host->busy > host->busy_jobs ? host->busy - host->busy_jobs : 0;
}

/* ---- for people ---- */

static size_t levels_in_use(const struct elmer_jobs *jobs)
{
    size_t levels = 1;

    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i].level >= (int)levels)
            levels = (size_t)jobs->items[i].level + 1;
    return levels < LEVELS_MAX ? levels : LEVELS_MAX;
}

/* "12 alice*2, 14 bob": the jobs of this level on the host; malloc'd. */
static char *at_level(const struct seen *seen, const char *host, int level)
{
    char *text = NULL;
    size_t size, count;
    FILE *out = must(open_memstream(&text, &size));
    const char *between = "";
    char id[WORDS_MAX];

    for (size_t i = 0; i < seen->jobs->count; i++) {
        const struct elmer_job *job = &seen->jobs->items[i];

        if (job->level != level || (count = client_share(job, host)) == 0)
            continue;
        fprintf(out, "%s%s %s", between, words_id(id, job), job->user);
        if (count > 1)
            fprintf(out, "*%zu", count);
        between = ", ";
    }
    if (fclose(out) != 0)
        must(NULL);
    return text;
}

static const char *percent(char text[SMALL], const struct elmer_host *host, double share)
{
    snprintf(text, SMALL, "%.0f %%", share * 100);
    return host->busy >= 0 ? text : "";
}

/* "3.1 of 15.6 GiB" */
static const char *memory(char text[SMALL], const struct elmer_host *host)
{
    const double gib = 1 << 30;

    snprintf(text, SMALL, "%.1f of %.1f GiB", (double)host->memory_free_bytes / gib, (double)host->memory_bytes / gib);
    return host->memory_bytes > 0 && host->memory_free_bytes >= 0 ? text : "";
}

/* Of what jobs may ask for there, what they have asked for: "2 GiB of 8 GiB". */
static const char *asked(char text[2 * BYTES_TEXT + 8], const struct elmer_host *host)
{
    char some[BYTES_TEXT], all[BYTES_TEXT];

    snprintf(text, 2 * BYTES_TEXT + 8, "%s of %s", bytes_text(some, host->memory_asked_bytes),
             bytes_text(all, host->memory_for_jobs_bytes));
    return host->memory_for_jobs_bytes > 0 && host->memory_asked_bytes > 0 ? text : "";
}

static void add_row(struct table *table, const struct seen *seen, const struct elmer_host *host, size_t levels)
{
    char processors[SMALL], busy[SMALL], foreign[SMALL], free_memory[SMALL], asked_memory[2 * BYTES_TEXT + 8];
    char *at[LEVELS_MAX];
    const char *cells[COLUMNS_MAX] = {host->host,
                                      host->state,
                                      processors,
                                      percent(busy, host, host->busy),
                                      percent(foreign, host, outside(host)),
                                      memory(free_memory, host),
                                      asked(asked_memory, host)};

    snprintf(processors, sizeof(processors), "%" PRIu32, host->processors);
    for (size_t i = 0; i < levels; i++)
        cells[seen->before + i] = at[i] = at_level(seen, host->host, (int)i);
    cells[seen->before + levels] = host->reason;
    table_add(table, cells);
    for (size_t i = 0; i < levels; i++)
        free(at[i]);
}

static void show_table(const struct seen *seen, size_t width)
{
    static const char *const level_titles[LEVELS_MAX] = {"L0", "L1", "L2",  "L3",  "L4",  "L5",  "L6",  "L7",
                                                         "L8", "L9", "L10", "L11", "L12", "L13", "L14", "L15"};
    struct table_column columns[COLUMNS_MAX] = {
        {"HOST", false, true},    {"STATE", false, false},      {"CPUS", true, false},     {"BUSY", true, false},
        {"OUTSIDE", true, false}, {"FREE MEMORY", true, false}, {"ASKED FOR", true, false}};
    size_t levels = levels_in_use(seen->jobs);
    struct table table;

    for (size_t i = 0; i < levels; i++)
        columns[seen->before + i] = (struct table_column){level_titles[i], false, true};
    columns[seen->before + levels] = (struct table_column){"REASON", false, false};
    table_init(&table, columns, seen->before + levels + 1);
    for (size_t i = 0; i < seen->nhosts; i++)
        add_row(&table, seen, seen->hosts[i], levels);
    table_print(&table, stdout, width);
    table_fini(&table);
}

/* ---- asking ---- */

static void collect(struct seen *seen, const struct elmer_host_list *all, const char *list)
{
    seen->hosts = must(calloc(all->count + 1, sizeof(struct elmer_host *)));
    for (size_t i = 0; i < all->count; i++)
        if (!list || filter_in_list(list, all->items[i].host))
            seen->hosts[seen->nhosts++] = &all->items[i];
    seen->before = BEFORE_MAX - 1;
    for (size_t i = 0; i < seen->nhosts; i++)
        if (seen->hosts[i]->memory_asked_bytes > 0)
            seen->before = BEFORE_MAX;
}

/* Of the names and patterns that are asked for: EXIT_DONE; EXIT_JOB: said which of them no host has. */
static int check_names(const struct elmer_host_list *all, const char *list)
{
    char *copy = must(strdup(list)), *rest = copy, *item;
    int code = EXIT_DONE;

    while ((item = strsep(&rest, ","))) {
        bool found = false;

        for (size_t i = 0; i < all->count && !found; i++)
            found = filter_in_list(item, all->items[i].host);
        if (!found) {
            say("there is no host %s", item);
            code = EXIT_JOB;
        }
    }
    free(copy);
    return code;
}

int hosts_show(const char *list, bool json, size_t width)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs = NULL;
    struct elmer_host_list *hosts = NULL;
    struct seen seen = {.nhosts = 0};
    char *text = NULL;
    struct elmer *elmer = open_elmer();
    int result, code = EXIT_DONE;

    if (!elmer)
        return EXIT_REFUSED;
    result = elmer_query_hosts(elmer, ANSWER_MS, &hosts, &error);
    if (result == ELMER_OK)
        result = elmer_list(elmer, true, false, ANSWER_MS, &jobs, &error);
    elmer_close(elmer);
    if (result == ELMER_OK) {
        seen.jobs = jobs;
        collect(&seen, hosts, list);
        if (json)
            puts(text = must(client_hosts_json(seen.hosts, seen.nhosts, jobs)));
        else if (seen.nhosts > 0)
            show_table(&seen, width);
        code = list ? check_names(hosts, list) : EXIT_DONE;
    }
    free(text);
    free(seen.hosts);
    elmer_host_list_free(hosts);
    elmer_jobs_free(jobs);
    return result == ELMER_OK ? finish_output(code) : say_result(result, &error);
}
