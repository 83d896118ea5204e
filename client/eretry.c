/* eretry.c - run jobs that have ended again.
 *
 * What was asked for then is with elmer (query_asked), but for the environment, which is nobody's any more when a job
 * has ended: that is the caller's, as esubmit takes it. Tasks of an array become a new array with their indices and
 * lines, or several where these do not fit into one list. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/again.h"
#include "client/common.h"
#include "client/environment.h"
#include "client/notices.h"
#include "client/refs.h"
#include "client/script.h"
#include "lib/base/str.h"
#include "lib/job/lines.h"
#include "lib/job/tasks.h"
#include "libelmer/client.h"

enum { OPTION_SCRIPT = OPTION_FIRST_FREE };
static const struct option_row options[] = {
    {'f', "failed", NULL, "only what has not ended with status 0"},
    {'v', "variable", "VAR[=VALUE]",
     "pass on a variable, or set it; may be repeated: the environment of a job\nis not kept"},
    {OPTION_SCRIPT, "script", "FILE", "the text of a job script, which is not kept either"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "eretry",
    "Usage: eretry [--failed] [-v VAR[=VALUE]].. [--script FILE] ID..\n"
    "Submit a job that has ended again. ID: a job, an array, or tasks of one like 57[3-9,12]; these become\n"
    "a new array with their indices. Prints the new id on standard output.\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job, or none of these has failed,\n"
    "4 elmer not reachable, 5 not permitted, 6 not now.\n",
};

struct request {
    bool failed;
    struct environment environment;
    struct script script;
    struct ref *refs;
    size_t nrefs;
};

/* ---- options ---- */

static int take_option(struct request *request, int c, char **argv)
{
    switch (c) {
    case 'f':
        request->failed = true;
        return -1;
    case 'v':
        return environment_add(&request->environment, optarg) ? -1 : EXIT_USAGE;
    case OPTION_SCRIPT:
        script_fini(&request->script);
        return script_read_again(&request->script, optarg);
    default:
        return common_option(c, argv);
    }
}

static int parse(struct request *request, int argc, char **argv)
{
    int c, code = -1;

    while (code < 0 && (c = options_next(argc, argv, "", options)) != -1)
        code = take_option(request, c, argv);
    if (code >= 0)
        return code;
    if (optind == argc)
        return usage_error("the id of a job is missing");
    request->refs = must(calloc((size_t)(argc - optind), sizeof(*request->refs)));
    for (; optind < argc; optind++)
        if (!ref_parse(argv[optind], &request->refs[request->nrefs++]))
            return EXIT_USAGE;
    if (request->script.text)
        environment_set(&request->environment, SCRIPT_VARIABLE, request->script.text);
    return -1;
}

/* ---- the submission ---- */

static int take_script(struct request *request, struct elmer_submission *s)
{
    const char *const *arguments;
    const char *name = script_of_command(s->command, &arguments);

    if (script_is_foreign(s->command)) {
        say("it ran a script that another version of esubmit has sent, and would run an empty one: submit the script "
            "again by esubmit");
        return EXIT_REFUSED;
    }
    if (!name && request->script.text)
        return usage_error("--script: this job was no script");
    if (!name)
        return -1;
    if (!request->script.text)
        return usage_error("it ran the script '%s', and the text of a script is not kept: --script FILE", name);
    free(request->script.command);
    s->command = script_command(&request->script, (char **)(uintptr_t)arguments);
    return -1;
}

/* Who was told the first time is told again: from here, as the environment is from here, too. */
static int take_notices(const struct elmer_submission *s, struct notices *notices)
{
    if (s->mail_at && *s->mail_at && !notices_mail_at(notices, s->mail_at))
        return EXIT_USAGE;
    if (s->notify && *s->notify && !notices_command(notices, s->notify))
        return EXIT_USAGE;
    return notices_check(notices);
}

/* For people; the id for programs is on stdout. */
static int submit(struct elmer *elmer, const struct elmer_submission *s, const struct notices *notices,
                  const struct again *again, uint32_t count)
{
    struct elmer_error error = {{0}};
    struct elmer_submitted *answer;
    int result = client_submit(elmer, s, ANSWER_MS, &answer, &error), code, told;

    if (result != ELMER_OK)
        return say_result(result, &error);
    told = notices_submit(elmer, notices, answer->job);
    printf("%" PRIu64 "\n", answer->job);
    code = finish_output(EXIT_DONE);
    if (code == EXIT_DONE && told >= 0)
        code = told;
    if (again->is_array)
        fprintf(stderr, "array %" PRIu64 ": %" PRIu32 " task%s of array %" PRIu64 " again, %s\n", answer->job, count,
                count == 1 ? "" : "s", again->id, answer->state);
    else
        fprintf(stderr, "job %" PRIu64 ": job %" PRIu64 " again, %s\n", answer->job, again->id, answer->state);
    elmer_submitted_free(answer);
    return code == EXIT_DONE ? -1 : code;
}

/* ---- new arrays ---- */

struct piece { /* one new array */
    char tasks[TASKS_TEXT_MAX + 1];
    size_t used;
    uint32_t count;
    char *lines; /* NULL: there are none */
    size_t nlines;
};

/* Where the next run of chosen tasks begins and ends. */
static bool next_run(const struct again *again, uint32_t *from, uint32_t *to)
{
    for (*from = *to; *from < again->all.count && !again->chosen[*from];)
        ++*from;
    for (*to = *from; *to < again->all.count && again->chosen[*to];)
        ++*to;
    return *from < *to;
}

/* false: the run does not fit behind the others. */
static bool add_run(struct piece *piece, const struct again *again, uint32_t from, uint32_t to, size_t room)
{
    static struct tasks tasks;
    char text[TASKS_TEXT_MAX + 1], why[TASKS_WHY];
    size_t used = piece->used;

    memcpy(text, piece->tasks, sizeof(text));
    used = tasks_text(&again->all, from, to, text, used, room);
    if (tasks_parse(text, false, &tasks, why) < 0 || tasks.count != piece->count + (to - from))
        return false;
    memcpy(piece->tasks, text, sizeof(text));
    piece->used = used;
    piece->count += to - from;
    return true;
}

/* `at` goes on through all lines; `done` of them are behind it. */
static void add_lines(struct piece *piece, const char **at, uint32_t *done, uint32_t from, uint32_t to)
{
    for (; **at && *done < to; ++*done) {
        const char *line = *at;
        size_t length = lines_next(at);

        if (*done < from)
            continue;
        memcpy(piece->lines + piece->nlines, line, length);
        piece->lines[piece->nlines + length] = '\n';
        piece->nlines += length + 1;
        piece->lines[piece->nlines] = '\0';
    }
}

static int submit_piece(struct elmer *elmer, struct elmer_submission *s, const struct notices *notices,
                        const struct again *again, struct piece *piece)
{
    char limit[16] = "", *tasks;
    int code;

    if (again->all.limit > 0)
        snprintf(limit, sizeof(limit), "%%%" PRIu32, again->all.limit);
    tasks = must(str_format("%s%s", piece->tasks, limit));
    s->tasks = tasks;
    s->lines = piece->lines;
    code = submit(elmer, s, notices, again, piece->count);
    free(tasks);
    piece->used = piece->nlines = piece->count = 0;
    piece->tasks[0] = '\0';
    return code;
}

static int submit_tasks(struct elmer *elmer, struct elmer_submission *s, const struct notices *notices,
                        const struct again *again, const char *lines)
{
    struct piece piece = {.lines = *lines ? must(malloc(strlen(lines) + 2)) : NULL};
    size_t room = TASKS_TEXT_MAX + 1 - (again->all.limit ? sizeof("%2000000000") : 0);
    uint32_t from, to = 0, done = 0;
    int code = -1;

    while (code < 0 && next_run(again, &from, &to)) {
        bool fits = add_run(&piece, again, from, to, room);

        if (!fits && piece.count > 0) {
            code = submit_piece(elmer, s, notices, again, &piece);
            fits = code < 0 && add_run(&piece, again, from, to, room);
        }
        if (!fits && code < 0) {
            say("these are too many ranges of array %" PRIu64 ": name fewer at a time", again->id);
            code = EXIT_REFUSED;
        }
        if (code < 0 && piece.lines)
            add_lines(&piece, &lines, &done, from, to);
    }
    if (code < 0)
        code = submit_piece(elmer, s, notices, again, &piece);
    free(piece.lines);
    return code;
}

static int retry(struct elmer *elmer, struct request *request, const struct again *again)
{
    struct elmer_error error = {{0}};
    struct elmer_submission *asked, s;
    struct notices notices = {.environment = &request->environment};
    int result = elmer_asked(elmer, again->id, ANSWER_MS, &asked, &error), code;

    if (result != ELMER_OK)
        return say_result(result, &error);
    s = *asked;
    s.environment = (const char *const *)request->environment.items;
    s.after = NULL; /* that has been */
    s.keep_never = false;
    s.tasks = s.lines = NULL;
    code = take_script(request, &s);
    if (code < 0)
        code = take_notices(&s, &notices);
    if (code < 0)
        code = again->is_array ? submit_tasks(elmer, &s, &notices, again, asked->lines ? asked->lines : "")
                               : submit(elmer, &s, &notices, again, 1);
    notices_fini(&notices);
    elmer_asked_free(asked);
    return code;
}

static int retry_all(struct elmer *elmer, struct request *request)
{
    static struct again again;
    int code = -1;

    for (size_t i = 0; code < 0 && i < request->nrefs; i++) {
        again = (struct again){.id = 0};
        code = again_look_up(elmer, request->failed, &request->refs[i], &again);
        if (code < 0)
            code = retry(elmer, request, &again);
        free(again.chosen);
    }
    return code < 0 ? EXIT_DONE : code;
}

int main(int argc, char **argv)
{
    struct request request = {.failed = false};
    struct elmer *elmer;
    int code;

    command_begin(&command);
    environment_init(&request.environment);
    code = parse(&request, argc, argv);
    elmer = code < 0 ? open_elmer() : NULL;
    if (elmer) {
        code = retry_all(elmer, &request);
        elmer_close(elmer);
    } else if (code < 0) {
        code = EXIT_REFUSED;
    }
    refs_fini(request.refs, request.nrefs);
    script_fini(&request.script);
    environment_fini(&request.environment);
    return code;
}
