#include "config.h"

#include "client/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/filter.h"
#include "client/limits.h"
#include "client/refs.h"
#include "lib/base/str.h"
#include "lib/job/tasks.h"

enum { UNASKED = 10 /* jobs, without a question */ };

struct wanted {
    struct filter filter;
    bool me, yes;
};

/* ---- options ---- */

static int take_option(struct choice *choice, struct wanted *wanted, int c, char **argv)
{
    switch (c) {
    case 'u':
        wanted->filter.user = optarg;
        return -1;
    case OPTION_ME:
        wanted->me = true;
        return -1;
    case OPTION_NAME:
        wanted->filter.name = optarg;
        return -1;
    case OPTION_YES:
        wanted->yes = true;
        return -1;
    case OPTION_SIGNAL:
        choice->signal = limit_signal_number(optarg);
        return choice->signal > 0 ? -1 : usage_error("--signal %s: want a signal, like USR1 or 10", optarg);
    default:
        return common_option(c, argv);
    }
}

static int read_options(const struct option_row *options, struct choice *choice, struct wanted *wanted, int argc,
                        char **argv)
{
    int c, code = -1;

    while (code < 0 && (c = options_next(argc, argv, "+", options)) != -1)
        code = take_option(choice, wanted, c, argv);
    if (code >= 0)
        return code;
    if (wanted->me && wanted->filter.user)
        return usage_error("--me and -u USER exclude each other");
    if (wanted->me && !(wanted->filter.user = filter_me()))
        return EXIT_USAGE;
    if ((wanted->filter.user || wanted->filter.name) && optind < argc)
        return usage_error("ids, and --me, -u or --name, exclude each other");
    if (!wanted->filter.user && !wanted->filter.name && optind == argc)
        return usage_error("the id of a job is missing");
    return -1;
}

/* ---- jobs ---- */

static void add(struct choice *choice, char *word)
{
    choice->argv = must(reallocarray(choice->argv, (size_t)choice->argc + 2, sizeof(char *)));
    choice->argv[choice->argc++] = word;
    choice->argv[choice->argc] = NULL;
}

static bool can_be(const struct choice *choice, const struct elmer_job *job)
{
    return choice->waiting ? strcmp(job->state, "queued") == 0 || strcmp(job->state, "held") == 0
                           : strcmp(job->state, "running") == 0 || strcmp(job->state, "starting") == 0;
}

/* Who ends the tasks that run means the array: elmer would start the next ones in their place. A signal is for those
 * that run. */
static uint64_t meant(const struct choice *choice, const struct elmer_job *job)
{
    return job->array && !choice->waiting && !choice->signal ? job->array : job->id;
}

static void add_chosen(struct choice *choice, const struct elmer_jobs *jobs)
{
    uint64_t last = 0;

    for (size_t i = 0; i < jobs->count; i++) {
        uint64_t id = meant(choice, &jobs->items[i]);

        if (!can_be(choice, &jobs->items[i]) || id == last) /* the tasks of an array stand together */
            continue;
        add(choice, must(str_format("%" PRIu64, id)));
        last = id;
    }
}

static int ask_elmer(struct choice *choice, struct wanted *wanted)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs = NULL;
    struct elmer *elmer = open_elmer();
    int result;

    if (!elmer)
        return EXIT_REFUSED;
    result = elmer_list(elmer, !choice->waiting, choice->waiting, ANSWER_MS, &jobs, &error);
    elmer_close(elmer);
    if (result != ELMER_OK)
        return say_result(result, &error);
    elmer_jobs_keep(jobs, filter_keeps, &wanted->filter);
    add_chosen(choice, jobs);
    elmer_jobs_free(jobs);
    return -1;
}

/* ---- the question ---- */

static bool answered_yes(void)
{
    char line[16];
    bool yes;

    if (!fgets(line, sizeof(line), stdin))
        return false;
    yes = line[0] == 'y' || line[0] == 'Y';
    while (!strchr(line, '\n') && fgets(line, sizeof(line), stdin))
        ;
    return yes;
}

struct count {
    uint64_t jobs;
    bool tasks; /* some of them are */
    uint64_t *ids;
    size_t nids;
};

static bool is_named(const struct count *count, uint64_t id)
{
    size_t i = 0;

    while (i < count->nids && count->ids[i] != id)
        i++;
    return i < count->nids;
}

/* An array is its tasks that have not ended; one of these that is named, too, is no other one. */
static int add_arrays(struct count *count)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs = NULL;
    struct elmer *elmer = count->nids > 0 ? open_elmer() : NULL;
    int result;

    if (!elmer)
        return count->nids > 0 ? EXIT_REFUSED : -1;
    result = elmer_query(elmer, false, false, count->ids, count->nids, ANSWER_MS, &jobs, &error);
    elmer_close(elmer);
    if (result != ELMER_OK)
        return say_result(result, &error);
    for (size_t i = 0; i < jobs->count; i++) {
        const struct elmer_job *job = &jobs->items[i];

        count->jobs += job->ntasks - job->tasks_ok - job->tasks_failed;
        count->jobs -= job->ntasks > 0 || (job->array && is_named(count, job->array));
        count->tasks |= job->ntasks > 0;
    }
    elmer_jobs_free(jobs);
    return -1;
}

/* How many jobs and tasks are meant. */
static int count_all(const struct choice *choice, struct count *count)
{
    static struct tasks tasks;
    char why[TASKS_WHY];

    for (int i = 1; i < choice->argc; i++) {
        struct ref ref;
        bool good = ref_parse(choice->argv[i], &ref), some = good && ref.tasks && strcmp(ref.tasks, "*") != 0;

        if (some && tasks_parse(ref.tasks, false, &tasks, why) == 0)
            count->jobs += tasks.count;
        else if (good)
            count->ids[count->nids++] = ref.id;
        count->tasks |= some;
        free(ref.tasks);
        if (!good)
            return EXIT_USAGE;
    }
    count->jobs += count->nids;
    return add_arrays(count);
}

/* Who is at a terminal and may have meant something else; scripts mean what they say. An exit code; -1: go on. */
static int confirm(const struct choice *choice, const struct wanted *wanted)
{
    struct count count = {.jobs = 0};
    int code;

    if (wanted->yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return -1;
    count.ids = must(calloc((size_t)choice->argc, sizeof(*count.ids)));
    code = count_all(choice, &count);
    free(count.ids);
    if (code >= 0 || count.jobs <= UNASKED)
        return code;
    fprintf(stderr, "%s %" PRIu64 " jobs%s? [y/N] ", choice->signal ? "signal" : choice->deed, count.jobs,
            count.tasks ? " and tasks" : "");
    fflush(stderr);
    if (answered_yes())
        return -1;
    say("nothing was done");
    return EXIT_REFUSED;
}

int choose_jobs(const struct command *command, struct choice *choice, int argc, char **argv)
{
    struct wanted wanted = {.me = false};
    int code;

    command_begin(command);
    add(choice, must(strdup(command->name)));
    code = read_options(command->options, choice, &wanted, argc, argv);
    if (code < 0 && optind == argc)
        code = ask_elmer(choice, &wanted);
    for (; code < 0 && optind < argc; optind++)
        add(choice, must(strdup(argv[optind])));
    if (code < 0 && choice->argc == 1) {
        say("no such job %s", choice->waiting ? "waits" : "runs");
        code = EXIT_JOB;
    }
    if (code < 0)
        code = confirm(choice, &wanted);
    if (code >= 0)
        choose_free(choice);
    optind = 1; /* the ids are read once more */
    return code;
}

void choose_free(struct choice *choice)
{
    for (int i = 0; i < choice->argc; i++)
        free(choice->argv[i]);
    free(choice->argv);
    choice->argv = NULL;
    choice->argc = 0;
}
