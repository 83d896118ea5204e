/* equery.c - show jobs. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/columns.h"
#include "client/common.h"
#include "client/filter.h"
#include "client/hosts.h"
#include "client/page.h"
#include "client/refs.h"
#include "client/show.h"
#include "client/since.h"
#include "client/table.h"
#include "client/watch.h"
#include "client/why.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"

enum {
    OPTION_JSON = OPTION_FIRST_FREE,
    OPTION_HISTORY,
    OPTION_SINCE,
    OPTION_ME,
    OPTION_NAME,
    OPTION_STATE,
    OPTION_HOST,
    OPTION_WHY,
    OPTION_HOSTS,
    OPTION_FORMAT
};
static const struct option_row options[] = {
    {'r', NULL, NULL, "running jobs (starting, running, ending)"},
    {'q', NULL, NULL, "queued jobs (queued, held); without -r and -q: both"},
    {OPTION_HISTORY, "history", NULL, "ended jobs, with the CPU time used and the time at each level"},
    {'n', NULL, "COUNT", "the last COUNT of them; 0: all (default 100)"},
    {OPTION_SINCE, "since", "TIME",
     "of these only: ago, such as 2h, or a moment: 2026-11-24, 08:00, yesterday; then -n is 0"},
    {OPTION_WHY, "why", NULL, "why a job waits, host by host, and what would help"},
    {OPTION_HOSTS, "hosts", NULL, "the hosts, how busy they are, and which jobs have which level there"},
    {OPTION_JSON, "json", NULL, "JSON, schemas elmer.jobs/1, elmer.why/1, elmer.hosts/1"},
    {OPTION_FORMAT, "format", "LIST", "these columns: id, name, state and others, separated by commas"},
    {'W', "watch", "[=S]", "show it again and again, every S seconds (default 2), until q"},
    {0, NULL, NULL, "Filters; a job is shown if it passes all that are given:"},
    {OPTION_ME, "me", NULL, "my own jobs"},
    {'u', "user", "USER", "those of USER"},
    {OPTION_NAME, "name", "PATTERN", "those whose name matches a shell pattern, like 'solve*'"},
    {OPTION_STATE, "state", "LIST", "in one of these states, separated by commas"},
    {OPTION_HOST, "host", "LIST", "on one of these hosts, separated by commas"},
    {0, NULL, NULL, ""},
    OPTION_ROWS_END,
};
static const struct command command = {
    "equery",
    "Usage: equery [-r] [-q] [FILTER...] [--json] [ID...]\n"
    "       equery --history [-n COUNT] [--since TIME] [FILTER...] [--json]\n"
    "       equery --why [--json] ID...\n"
    "       equery --hosts [--host LIST] [--json]\n"
    "Show running and queued jobs, or those with the ids given, also if they have ended; of one id all that is\n"
    "known.\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job, 4 elmer not reachable, 5 not permitted,\n"
    "6 not now: try again.\n",
};

enum { HISTORY_COUNT = 100, HISTORY_MORE = 10, WATCH_MAX_S = 3600 };

struct request {
    bool running, queued, json, history, me, why, hosts;
    const char *count_text; /* of the history; NULL: not given */
    const char *since_text; /* the same */
    int64_t since_ms;
    const char *format; /* columns; NULL: those of the lists */
    uint64_t watch_s;   /* 0: once */
    struct filter filter;
    uint64_t count;
    struct ref *refs; /* as they were named */
    size_t nrefs;
    uint64_t *ids; /* and what that means */
    size_t nids;
};

/* The options that only the history has, and those that it has not. */
static int check_history(struct request *request, int rest)
{
    if (!request->history && (request->count_text || request->since_text)) {
        say("%s belongs to --history: add that", request->count_text ? "-n" : "--since");
        return EXIT_USAGE;
    }
    if (request->history && (request->running || request->queued || rest > 0)) {
        say("--history shows ended jobs: it takes neither -r, -q nor ids; equery ID shows one job, also an ended one");
        return EXIT_USAGE;
    }
    if (request->since_text && !since_parse(request->since_text, &request->since_ms))
        return EXIT_USAGE;
    request->count = request->since_text ? 0 : HISTORY_COUNT;
    if (request->count_text && (!str_to_u64(request->count_text, &request->count) || request->count > UINT32_MAX)) {
        say("-n %s: want a number of jobs, 0 for all", request->count_text);
        return EXIT_USAGE;
    }
    return -1;
}

/* What answers something else than a list of jobs goes with little beside. */
static int check_kind(const struct request *request, int rest)
{
    const struct filter *filter = &request->filter;
    bool chosen = request->running || request->queued || request->history || request->me || filter->user ||
                  filter->name || filter->states;

    if (request->why && request->hosts)
        return usage_error("--why and --hosts exclude each other");
    if (request->why && (chosen || filter->hosts))
        return usage_error("--why takes ids, and no other options but --json and -W");
    if (request->why && rest == 0)
        return usage_error("--why: the id of a job is missing");
    if (request->hosts && (chosen || rest > 0))
        return usage_error("--hosts takes no ids, and no other options but --host, --json and -W");
    return -1;
}

/* How it looks. */
static int check_look(struct request *request, const char *watch_text)
{
    if (request->format && (request->json || request->why || request->hosts))
        return usage_error("--format goes with lists, the history and ids only, and not with --json");
    if (request->format && !columns_check(request->format))
        return EXIT_USAGE;
    if (watch_text && (request->json || request->history))
        return usage_error("-W shows what changes, to people: not with --json or --history");
    if (watch_text &&
        (!str_to_u64(watch_text, &request->watch_s) || request->watch_s < 1 || request->watch_s > WATCH_MAX_S))
        return usage_error("--watch=%s: want seconds, from 1 to %d", watch_text, WATCH_MAX_S);
    return -1;
}

static int check_filter(struct request *request, bool ids)
{
    if (request->me && request->filter.user)
        return usage_error("--me and -u USER exclude each other");
    if (request->me && !(request->filter.user = filter_me()))
        return EXIT_USAGE;
    return filter_check(&request->filter, request->history || ids, !request->history) ? -1 : EXIT_USAGE;
}

/* -W5, as other programs have it: -W has no value, and its next letter would be an option. */
static bool is_joined_watch(char **argv)
{
    for (; *argv; argv++)
        if (strncmp(*argv, "-W", 2) == 0 && (*argv)[2] >= '0' && (*argv)[2] <= '9') {
            usage_error("%s: the seconds of -W are given as --watch=%s", *argv, *argv + 2);
            return true;
        }
    return false;
}

static int parse(struct request *request, int argc, char **argv)
{
    const char *watch_text = NULL;
    int c;

    while ((c = options_next(argc, argv, "+", options)) != -1) {
        if (c == 'r')
            request->running = true;
        else if (c == 'q')
            request->queued = true;
        else if (c == 'n')
            request->count_text = optarg;
        else if (c == 'u')
            request->filter.user = optarg;
        else if (c == OPTION_SINCE)
            request->since_text = optarg;
        else if (c == OPTION_ME)
            request->me = true;
        else if (c == OPTION_NAME)
            request->filter.name = optarg;
        else if (c == OPTION_STATE)
            request->filter.states = optarg;
        else if (c == OPTION_HOST)
            request->filter.hosts = optarg;
        else if (c == 'W')
            watch_text = optarg ? optarg : "2";
        else if (c == OPTION_FORMAT)
            request->format = optarg;
        else if (c == OPTION_WHY)
            request->why = true;
        else if (c == OPTION_HOSTS)
            request->hosts = true;
        else if (c == OPTION_JSON)
            request->json = true;
        else if (c == OPTION_HISTORY)
            request->history = true;
        else
            return c == '?' && is_joined_watch(argv) ? EXIT_USAGE : common_option(c, argv);
    }
    c = check_kind(request, argc - optind);
    if (c < 0)
        c = check_look(request, watch_text);
    if (c < 0)
        c = check_history(request, argc - optind);
    if (c < 0)
        c = check_filter(request, argc > optind);
    if (c >= 0)
        return c;
    request->refs = must(calloc((size_t)(argc - optind) + 1, sizeof(*request->refs)));
    for (; optind < argc; optind++)
        if (!ref_parse(argv[optind], &request->refs[request->nrefs++]))
            return EXIT_USAGE;
    if (request->nrefs == 0 && !request->running && !request->queued)
        request->running = request->queued = true;
    return -1;
}

/* Ids without a job: said, one by one. */
static int check_ids(const struct request *request, const struct elmer_jobs *jobs)
{
    bool *found = refs_found(request->ids, request->nids, jobs);
    int code = EXIT_DONE;

    for (size_t i = 0; i < request->nids; i++) {
        if (found[i])
            continue;
        say("there is no job %llu%s; equery without an id shows those that run or wait",
            (unsigned long long)request->ids[i], request->running || request->queued ? " in the list asked for" : "");
        code = EXIT_JOB;
    }
    free(found);
    return code;
}

static bool any(const struct elmer_jobs *jobs, enum show_list list)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (show_list_of(&jobs->items[i]) == list)
            return true;
    return false;
}

/* One job that was asked for by its id is a page, whatever else is asked for a table for each list. */
static bool print_page(const struct request *request, const struct elmer_jobs *jobs, const struct elmer_jobs *notices)
{
    if (request->nids != 1 || jobs->count != 1)
        return false;
    page_show(stdout, &jobs->items[0], wall_now().ms);
    page_show_notices(stdout, &jobs->items[0], notices);
    return true;
}

static void print_tables(const struct request *request, const struct elmer_jobs *jobs)
{
    const bool wanted[SHOW_ENDED + 1] = {[SHOW_RUNNING] = request->running, [SHOW_QUEUED] = request->queued};
    bool first = true;

    for (enum show_list list = 0; list <= SHOW_ENDED; list++) {
        if (request->nids > 0 ? !any(jobs, list) : !wanted[list])
            continue;
        if (!first)
            putchar('\n');
        first = false;
        show_jobs(stdout, jobs, list, request->nids == 0, table_terminal_width(), wall_now().ms);
    }
}

/* The last ones that pass the filter: where it leaves too few of those that were asked for, more are. */
static int ask_history(struct elmer *elmer, struct request *request, struct elmer_jobs **jobs,
                       struct elmer_error *error)
{
    bool all;
    uint64_t asked = request->count;

    for (;;) {
        int result = elmer_history_since(elmer, request->filter.user, request->since_ms, asked, ANSWER_MS, jobs, error);

        if (result != ELMER_OK || !filter_set(&request->filter))
            return result;
        all = asked == 0 || (*jobs)->count < asked;
        elmer_jobs_keep(*jobs, filter_keeps, &request->filter);
        if (all || (*jobs)->count >= request->count) {
            if (request->count)
                elmer_jobs_last(*jobs, request->count);
            return ELMER_OK;
        }
        elmer_jobs_free(*jobs);
        asked = asked < UINT32_MAX / HISTORY_MORE ? asked * HISTORY_MORE : 0;
    }
}

/* Of a page: the jobs that tell about it. NULL: none, or not now, and then the page says less. */
static struct elmer_jobs *ask_notices(struct elmer *elmer, const struct request *request, const struct elmer_jobs *jobs)
{
    struct elmer_jobs *notices = NULL;
    uint64_t ids[2];
    size_t count = 0;

    if (request->nids != 1 || jobs->count != 1 || request->json || request->format)
        return NULL;
    if (jobs->items[0].begin_notice)
        ids[count++] = jobs->items[0].begin_notice;
    if (jobs->items[0].end_notice)
        ids[count++] = jobs->items[0].end_notice;
    if (count == 0 || elmer_query(elmer, false, false, ids, count, ANSWER_MS, &notices, NULL) != ELMER_OK)
        return NULL;
    return notices;
}

static int query(struct request *request)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs, *notices;
    struct elmer *elmer = open_elmer();
    int result, code;

    if (!elmer)
        return EXIT_REFUSED;
    free(request->ids); /* of the picture before */
    request->ids = NULL;
    code = refs_ids(elmer, request->refs, request->nrefs, REFS_ONCE, &request->ids, &request->nids);
    if (code >= 0) {
        elmer_close(elmer);
        return code;
    }
    if (request->history)
        result = ask_history(elmer, request, &jobs, &error);
    else if (request->nids == 0 && !request->json && !request->format)
        result = elmer_list(elmer, request->running, request->queued, ANSWER_MS, &jobs, &error);
    else
        result = elmer_query(elmer, request->running, request->queued, request->ids, request->nids, ANSWER_MS, &jobs,
                             &error);
    notices = result == ELMER_OK ? ask_notices(elmer, request, jobs) : NULL;
    elmer_close(elmer);
    if (result != ELMER_OK)
        return say_result(result, &error);
    code = check_ids(request, jobs);
    if (!request->history)
        elmer_jobs_keep(jobs, filter_keeps, &request->filter);
    if (request->json) {
        char *text = must(elmer_jobs_json(jobs));

        puts(text);
        free(text);
    } else if (request->format) {
        columns_show(stdout, jobs, request->format, table_terminal_width(), wall_now().ms);
    } else if (request->history) {
        show_jobs(stdout, jobs, SHOW_HISTORY, true, table_terminal_width(), wall_now().ms);
    } else if (!print_page(request, jobs, notices)) {
        print_tables(request, jobs);
    }
    elmer_jobs_free(notices);
    elmer_jobs_free(jobs);
    return finish_output(code);
}

static int show(void *data)
{
    struct request *request = data;

    if (request->why)
        return why_show(request->refs, request->nrefs, request->json, table_terminal_width());
    if (request->hosts)
        return hosts_show(request->filter.hosts, request->json, table_terminal_width());
    return query(request);
}

int main(int argc, char **argv)
{
    struct request request = {0};
    int result;

    command_begin(&command);
    result = parse(&request, argc, argv);
    if (result < 0)
        result = request.watch_s > 0 ? watch((int)request.watch_s * 1000, show, &request) : show(&request);
    free(request.ids);
    refs_fini(request.refs, request.nrefs);
    return result;
}
