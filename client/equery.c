/* equery.c - show jobs. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/common.h"
#include "client/show.h"
#include "libelmer/base/clock.h"

static const struct command command = {
    "equery",
    "Usage: equery [-r] [-q] [--json] [ID...]\n"
    "Show running and queued jobs, or those with the ids given, also if they have ended.\n"
    "\n"
    "  -r          running jobs (starting, running, ending)\n"
    "  -q          queued jobs (queued, held); without -r and -q: both\n"
    "  --json      JSON, schema elmer.jobs/1\n"
    "  --help      print this and exit\n"
    "  --version   print the version and exit\n"
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job, 4 elmer not reachable, 5 not permitted.\n",
};

enum { OPTION_JSON = OPTION_FIRST_FREE };

struct request {
    bool running, queued, json;
    uint64_t *ids;
    size_t nids;
};

static int parse(struct request *request, int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON}, COMMON_OPTIONS, {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "+:rq", options, NULL)) != -1) {
        if (c == 'r')
            request->running = true;
        else if (c == 'q')
            request->queued = true;
        else if (c == OPTION_JSON)
            request->json = true;
        else
            return common_option(c, argv);
    }
    request->ids = must(calloc((size_t)(argc - optind) + 1, sizeof(*request->ids)));
    for (; optind < argc; optind++)
        if (!parse_id(argv[optind], &request->ids[request->nids++]))
            return EXIT_USAGE;
    if (request->nids == 0 && !request->running && !request->queued)
        request->running = request->queued = true;
    return -1;
}

/* Ids without a job: said, one by one. */
static int check_ids(const struct request *request, const struct elmer_jobs *jobs)
{
    int code = EXIT_DONE;

    for (size_t i = 0; i < request->nids; i++) {
        bool found = false;

        for (size_t j = 0; j < jobs->count && !found; j++)
            found = jobs->items[j].id == request->ids[i];
        if (found)
            continue;
        say("there is no job %llu%s; equery without an id shows those that run or wait", (unsigned long long)request->ids[i],
            request->running || request->queued ? " in the list asked for" : "");
        code = EXIT_JOB;
    }
    return code;
}

/* Of the terminal, 0 when it is none. */
static size_t terminal_width(void)
{
    struct winsize size;

    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static bool any(const struct elmer_jobs *jobs, enum show_list list)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (show_list_of(&jobs->items[i]) == list)
            return true;
    return false;
}

static void print_tables(const struct request *request, const struct elmer_jobs *jobs)
{
    const bool wanted[SHOW_COUNT] = {[SHOW_RUNNING] = request->running, [SHOW_QUEUED] = request->queued};
    bool first = true;

    for (enum show_list list = 0; list < SHOW_COUNT; list++) {
        if (request->nids > 0 ? !any(jobs, list) : !wanted[list])
            continue;
        if (!first)
            putchar('\n');
        first = false;
        show_jobs(stdout, jobs, list, request->nids == 0, terminal_width(), wall_now().ms);
    }
}

static int query(const struct request *request)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    struct elmer *elmer = open_elmer();
    int result, code;

    if (!elmer)
        return EXIT_REFUSED;
    result = elmer_query(elmer, request->running, request->queued, request->ids, request->nids, ANSWER_MS, &jobs, &error);
    elmer_close(elmer);
    if (result != ELMER_OK)
        return say_result(result, &error);
    code = check_ids(request, jobs);
    if (request->json) {
        char *text = must(elmer_jobs_json(jobs));

        puts(text);
        free(text);
    } else {
        print_tables(request, jobs);
    }
    elmer_jobs_free(jobs);
    return finish_output(code);
}

int main(int argc, char **argv)
{
    struct request request = {0};
    int code;

    command_begin(&command);
    code = parse(&request, argc, argv);
    if (code < 0)
        code = query(&request);
    free(request.ids);
    return code;
}
