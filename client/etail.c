/* etail.c - show what a job writes.
 *
 * The last lines are looked for from the end, part by part, so far and no further; then all is copied that was there at
 * the first look: a job may write faster than we read. With -f that goes on until the job has ended and everything is
 * read: whether it has is asked before each look, so that what it wrote last is seen. A job that is run again, perhaps
 * on another host, is followed there. */
#include "config.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/patience.h"
#include "client/refs.h"
#include "client/source.h"
#include "lib/base/str.h"

static const struct option_row options[] = {
    {'f', "follow", NULL, "go on until the job has ended"},
    {'n', "lines", "N", "the last N lines (default 10); 'all': from the beginning"},
    {'r', "rank", "RANK", "of this rank (default 0); see esubmit --each"},
    {'e', "errors", NULL, "the error output, where that is another file"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "etail",
    "Usage: etail [-f] [-n LINES] [-r RANK] [-e] ID\n"
    "Show the last lines of a job's output, from any host. ID: a job, or a task of an array like 57[12].\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 refused or the file cannot be read, 2 usage, 3 no such job or not started,\n"
    "4 elmer not reachable, 5 not permitted, 6 not now.\n",
};

enum { LINES_DEFAULT = 10, PARTS_BACK = 256 /* 4 MiB */, LOOK_MS = 500, WAIT_MS = 1000 };

struct request {
    struct ref ref; /* as it was named */
    uint64_t id, lines;
    uint32_t rank;
    bool follow, errors, all;
};

/* ---- options ---- */

static int take_option(struct request *request, int c, char **argv)
{
    uint64_t rank;

    switch (c) {
    case 'f':
        request->follow = true;
        return -1;
    case 'e':
        request->errors = true;
        return -1;
    case 'n':
        request->all = strcmp(optarg, "all") == 0;
        if (!request->all && !str_to_u64(optarg, &request->lines))
            return usage_error("-n %s: want a number of lines, or 'all'", optarg);
        return -1;
    case 'r':
        if (!str_to_u64(optarg, &rank) || rank > UINT32_MAX)
            return usage_error("-r %s: want a rank, from 0 on", optarg);
        request->rank = (uint32_t)rank;
        return -1;
    default:
        return common_option(c, argv);
    }
}

static int parse(struct request *request, int argc, char **argv)
{
    int c, code = -1;

    while (code < 0 && (c = options_next(argc, argv, "+", options)) != -1)
        code = take_option(request, c, argv);
    if (code >= 0)
        return code;
    if (optind == argc)
        return usage_error("the id of a job is missing");
    if (argc - optind > 1)
        return usage_error("one job at a time: '%s' is too many", argv[optind + 1]);
    return ref_parse(argv[optind], &request->ref) ? -1 : EXIT_USAGE;
}

/* ---- the job ---- */

static uint64_t first_index(const char *tasks)
{
    return strtoull(tasks, NULL, 10);
}

/* An exit code; -1: request->id is the one that was named. */
static int find(struct elmer *elmer, struct request *request)
{
    uint64_t *ids;
    size_t count;
    int code = refs_ids(elmer, &request->ref, 1, REFS_ONCE, &ids, &count);

    if (code < 0 && count != 1 && strcmp(request->ref.tasks, "*") == 0)
        ids[0] = request->ref.id; /* as the array itself */
    else if (code < 0 && count != 1)
        code = usage_error("one task at a time, and these are %zu: name one, like %" PRIu64 "[%" PRIu64 "]", count,
                           request->ref.id, first_index(request->ref.tasks));
    if (code < 0)
        request->id = ids[0];
    free(ids);
    return code;
}

/* An exit code; -1: *jobs is the one job, to be freed. patient: elmer may be away. */
static int look_up(struct elmer *elmer, uint64_t id, bool patient, struct elmer_jobs **jobs)
{
    struct elmer_error error = {{0}};
    int result = patient ? patience_query(elmer, &id, 1, INT64_MAX, jobs, &error)
                         : elmer_query(elmer, false, false, &id, 1, ANSWER_MS, jobs, &error);

    if (result != ELMER_OK)
        return say_result(result, &error);
    if ((*jobs)->count == 1 && (*jobs)->items[0].ntasks == 0)
        return -1;
    if ((*jobs)->count == 1)
        say("job %" PRIu64 " is an array; its tasks write, each for itself: name one, like %" PRIu64 "[%" PRIu64 "]",
            id, id, first_index((*jobs)->items[0].tasks));
    else
        say("there is no job %" PRIu64, id);
    elmer_jobs_free(*jobs);
    return EXIT_JOB;
}

static bool has_begun(const struct elmer_job *job)
{
    return job->nprocessors > 0 && (elmer_job_ended(job) ? job->started_ms >= 0 : strcmp(job->state, "starting") != 0);
}

/* The same, once it has begun to run; without -f that must have happened. */
static int await_begin(struct elmer *elmer, const struct request *request, bool patient, struct elmer_jobs **jobs)
{
    bool said = false;
    int code;

    for (;;) {
        code = look_up(elmer, request->id, patient || said, jobs);
        if (code >= 0 || has_begun(&(*jobs)->items[0]))
            return code;
        if (!request->follow || elmer_job_ended(&(*jobs)->items[0])) {
            say("job %" PRIu64 " has written nothing: it is %s%s%s", request->id, (*jobs)->items[0].state,
                *(*jobs)->items[0].reason ? ": " : "", (*jobs)->items[0].reason);
            elmer_jobs_free(*jobs);
            return EXIT_JOB;
        }
        if (!said)
            say("job %" PRIu64 " is %s; waiting for it", request->id, (*jobs)->items[0].state);
        said = true;
        elmer_jobs_free(*jobs);
        poll(NULL, 0, WAIT_MS);
    }
}

enum now { RUNS, ENDED, RUN_AGAIN };

/* RUNS, too, if elmer cannot be asked now, which ends nothing. */
static enum now look_now(struct elmer *elmer, const struct elmer_job *job)
{
    struct elmer_jobs *jobs;
    enum now now = RUNS;

    if (elmer_query(elmer, false, false, &job->id, 1, ANSWER_MS, &jobs, NULL) != ELMER_OK)
        return RUNS;
    if (jobs->count == 0 || elmer_job_ended(&jobs->items[0]))
        now = ENDED;
    else if (jobs->items[0].attempt != job->attempt || !has_begun(&jobs->items[0]))
        now = RUN_AGAIN;
    elmer_jobs_free(jobs);
    return now;
}

/* ---- the file ---- */

/* Goes back through the bytes until the newline before the wanted lines; the one that ends the file is none of these.
 * Whether it is in this part: then *begin is behind it. */
static bool find_in(const struct part *part, bool *at_end, uint64_t *left, int64_t *begin)
{
    for (size_t i = part->count; i > 0; i--) {
        bool newline = part->bytes[i - 1] == '\n' && !*at_end;

        *at_end = false;
        if (newline && --*left == 0) {
            *begin = part->offset + (int64_t)i;
            return true;
        }
    }
    return false;
}

/* Where the last lines begin; of lines that are too long, or too many, where we have got to. */
static int find_lines(struct source *source, uint64_t lines, bool ended, int64_t *begin)
{
    static struct part part;
    bool at_end = true;
    int code = source_read(source, -SOURCE_BYTES, ended, &part);

    *begin = part.offset + (int64_t)part.count;
    for (int i = 0; i < PARTS_BACK && code < 0 && lines > 0; i++) {
        int64_t end = part.offset;

        if (find_in(&part, &at_end, &lines, begin))
            return -1;
        *begin = end;
        if (end == 0)
            return -1;
        code = source_read(source, end > SOURCE_BYTES ? end - SOURCE_BYTES : 0, ended, &part);
        if (part.offset + (int64_t)part.count > end)
            part.count = end > part.offset ? (size_t)(end - part.offset) : 0;
    }
    return code;
}

/* All that is there from *at on; all: also what comes meanwhile. */
static int copy(struct source *source, bool ended, bool all, int64_t *at)
{
    static struct part part;
    int64_t end = all ? INT64_MAX : -1;

    for (;;) {
        int code = source_read(source, *at, ended, &part);

        if (code >= 0)
            return code;
        if (end < 0)
            end = part.size;
        if (part.size < *at) { /* it has been written anew */
            say("the file is shorter than before; from its beginning again");
            *at = 0;
            continue;
        }
        if (part.count > 0 && fwrite(part.bytes, 1, part.count, stdout) == part.count) {
            *at += (int64_t)part.count;
            if (*at <= end)
                continue;
        }
        (void)fflush(stdout);
        if (source_ended_by() != 0)
            return EXIT_REFUSED;
        return finish_output(EXIT_DONE) == EXIT_DONE ? -1 : EXIT_REFUSED;
    }
}

struct look {
    struct source source;
    int64_t at;  /* -1: where the last lines begin */
    bool helper; /* the job does not run any more, so that its host is asked in another way */
};

static int look_at(const struct request *request, struct look *look)
{
    int code = -1;

    if (look->at < 0) {
        look->at = 0;
        if (!request->all)
            code = find_lines(&look->source, request->lines, look->helper, &look->at);
        if (code >= 0)
            look->at = -1;
    }
    return code < 0 ? copy(&look->source, look->helper, request->follow, &look->at) : code;
}

/* An exit code; -1: all has been shown; -2: the job is run again. */
enum { SHOW_AGAIN = -2 };
static int show_all(struct elmer *elmer, const struct request *request, const struct elmer_job *job, struct look *look)
{
    enum now now = elmer_job_ended(job) ? ENDED : RUNS;

    for (;;) {
        int code;

        look->helper = look->helper || now == ENDED;
        code = look_at(request, look);
        if (code >= 0 && (code != EXIT_JOB || look->helper)) /* EXIT_JOB: it does not run */
            return code;
        if (code < 0 && (now == ENDED || !request->follow))
            return -1;
        if (request->follow)
            poll(NULL, 0, LOOK_MS);
        now = look_now(elmer, job);
        if (now == RUN_AGAIN)
            return SHOW_AGAIN;
        look->helper = !request->follow; /* its processes may be ending */
    }
}

static int show(struct elmer *elmer, const struct request *request, const struct elmer_job *job)
{
    struct look look = {.at = -1};
    int code = source_open(&look.source, elmer, job, request->rank, request->errors);

    look.source.patient = request->follow;
    if (code < 0)
        code = show_all(elmer, request, job, &look);
    source_close(&look.source);
    return code == -1 ? EXIT_DONE : code;
}

/* All attempts of a job that is followed; the second one from its beginning. */
static int follow(struct elmer *elmer, struct request *request)
{
    struct elmer_jobs *jobs;
    bool again = false;
    int code;

    for (;; again = request->follow) {
        code = await_begin(elmer, request, again, &jobs);
        if (code >= 0)
            return code;
        code = show(elmer, request, &jobs->items[0]);
        elmer_jobs_free(jobs);
        if (code != SHOW_AGAIN)
            return code;
        if (request->follow)
            say("job %" PRIu64 " is run again; its output from the beginning", request->id);
        request->all = request->follow;
    }
}

int main(int argc, char **argv)
{
    struct request request = {.lines = LINES_DEFAULT};
    struct elmer *elmer;
    int code;

    command_begin(&command);
    code = parse(&request, argc, argv);
    elmer = code < 0 ? open_elmer() : NULL;
    if (!elmer) {
        free(request.ref.tasks);
        return code < 0 ? EXIT_REFUSED : code;
    }
    code = find(elmer, &request);
    if (code < 0)
        code = follow(elmer, &request);
    elmer_close(elmer);
    free(request.ref.tasks);
    source_leave();
    return code;
}
