/* ewait.c - wait for jobs that are there. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/patience.h"
#include "client/refs.h"
#include "client/wait.h"
#include "lib/base/clock.h"
#include "libelmer/client.h"

enum { OPTION_ANY = OPTION_FIRST_FREE };
static const struct option_row options[] = {
    {OPTION_ANY, "any", NULL, "until one has ended, and exit with its status"},
    {'t', "time", "TIME", "no longer than this, like 90, 90s, 10m, 2h30m or 1d"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "ewait",
    "Usage: ewait [--any] [-t TIME] ID...\n"
    "Wait until the jobs have ended, and exit with their status: that of the first, in the order\n"
    "given, that is not 0.\n"
    "\n",
    options,
    "\n"
    "Exit status: that of the job, 128+N if it died by signal N, 125 if Elmer could not run it to\n"
    "its end or there is no such job, 124 after TIME, 2 usage.\n",
};

enum { IDS_MAX = 4096, ANY_MAX = 256 };
enum { EXIT_TIME = 124 }; /* as timeout(1) */

struct request {
    bool any;
    int64_t until_ms;
    struct ref *refs; /* as they were named */
    size_t nrefs;
    uint64_t *ids; /* and what that means */
    size_t nids;
};

/* Numbers with d, h, m, s, each unit once and the large ones first; without a unit: seconds. */
static bool parse_time(const char *text, int64_t *ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'d', 86400000}, {'h', 3600000}, {'m', 60000}, {'s', 1000}};
    const char *at = text;
    size_t next = 0;

    *ms = 0;
    while (*at) {
        int64_t number = 0;
        const char *digits = at;

        for (; *at >= '0' && *at <= '9' && at - digits < 9; at++)
            number = 10 * number + (*at - '0');
        while (next < 4 && units[next].unit != (*at ? *at : 's'))
            next++;
        if (at == digits || next == 4 || (!*at && digits != text))
            return false;
        *ms += number * units[next++].ms;
        at += *at != '\0';
    }
    return *ms > 0;
}

static int parse(struct request *request, int argc, char **argv)
{
    int64_t ms;
    int c;

    while ((c = options_next(argc, argv, "+", options)) != -1) {
        if (c == OPTION_ANY) {
            request->any = true;
        } else if (c == 't') {
            if (!parse_time(optarg, &ms))
                return usage_error("-t %s: want a time like 90, 90s, 10m, 2h30m or 1d", optarg);
            request->until_ms = mono_ms(mono_now()) + ms;
        } else {
            return common_option(c, argv);
        }
    }
    if (optind == argc)
        return usage_error("the id of a job is missing");
    if (argc - optind > (request->any ? ANY_MAX : IDS_MAX))
        return usage_error("%d jobs are named; %s%d at a time", argc - optind, request->any ? "with --any " : "",
                           request->any ? ANY_MAX : IDS_MAX);
    request->refs = must(calloc((size_t)(argc - optind), sizeof(*request->refs)));
    for (; optind < argc; optind++)
        if (!ref_parse(argv[optind], &request->refs[request->nrefs++]))
            return EXIT_USAGE;
    return -1;
}

/* Tasks of arrays have ids of their own. */
static int find_ids(struct elmer *elmer, struct request *request)
{
    int code = refs_ids(elmer, request->refs, request->nrefs, request->until_ms, &request->ids, &request->nids);

    if (code == EXIT_UNREACHABLE || code == EXIT_UNAVAILABLE)
        return EXIT_TIME;
    if (code < 0 && request->any && request->nids > ANY_MAX)
        return usage_error("%zu jobs are named; with --any %d at a time", request->nids, ANY_MAX);
    return code < 0 || code == EXIT_USAGE ? code : EXIT_ELMER;
}

/* Before a long wait for the first: is there each of them? Returns -1, or the exit code. */
static int check_ids(struct elmer *elmer, const struct request *request)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs = NULL;
    int result = patience_query(elmer, request->ids, request->nids, request->until_ms, &jobs, &error), code = -1;
    bool *found;

    if (result == ELMER_UNREACHABLE || result == ELMER_UNAVAILABLE)
        return EXIT_TIME;
    if (result != ELMER_OK) {
        say("%s", error.text);
        return EXIT_ELMER;
    }
    found = refs_found(request->ids, request->nids, jobs);
    for (size_t i = 0; i < request->nids; i++) {
        if (found[i])
            continue;
        say("there is no job %llu", (unsigned long long)request->ids[i]);
        code = EXIT_ELMER;
    }
    free(found);
    elmer_jobs_free(jobs);
    return code;
}

/* -1: there was not enough time for all of them. */
static int wait_for_all(struct elmer *elmer, const struct request *request)
{
    int first = EXIT_DONE;

    for (size_t i = 0; i < request->nids; i++) {
        int code = wait_for_any(elmer, &request->ids[i], 1, request->until_ms);

        if (code < 0)
            return -1;
        if (first == EXIT_DONE)
            first = code;
    }
    return first;
}

int main(int argc, char **argv)
{
    struct request request = {.until_ms = INT64_MAX};
    struct elmer *elmer;
    int code;

    command_begin(&command);
    code = parse(&request, argc, argv);
    elmer = code < 0 ? open_elmer() : NULL;
    if (code < 0 && !elmer)
        code = EXIT_ELMER;
    if (elmer && request.until_ms != INT64_MAX)
        client_wait_for_pages(elmer, 0, NULL); /* the time that was given is all that there is */
    if (code < 0)
        code = find_ids(elmer, &request);
    if (code < 0)
        code = check_ids(elmer, &request);
    if (code < 0)
        code = request.any ? wait_for_any(elmer, request.ids, request.nids, request.until_ms)
                           : wait_for_all(elmer, &request);
    if (code < 0)
        code = EXIT_TIME;
    elmer_close(elmer);
    free(request.ids);
    refs_fini(request.refs, request.nrefs);
    return code;
}
