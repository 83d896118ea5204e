/* end.c - commands that do one thing to each of some jobs: ekill, ecancel, ehold, erelease, etop. */
#include "config.h"

#include "client/end.h"

#include <stdlib.h>
#include <string.h>

#include "client/refs.h"

struct calls {
    end_call job;
    end_tasks_call tasks;
};

static int tell(int result, const struct elmer_error *text, const struct elmer_error *error)
{
    if (result != ELMER_OK)
        return say_result(result, error);
    if (text->text[0])
        say("%s", text->text);
    return EXIT_DONE;
}

/* left_out: counts it instead of saying that it is in no state for this; NULL: that is said. */
static int end_job(struct elmer *elmer, const struct calls *calls, uint64_t id, size_t *left_out)
{
    struct elmer_error text, error = {{0}};
    int result = calls->job(elmer, id, ANSWER_MS, &text, &error);

    if (result == ELMER_WRONG_STATE && left_out) {
        ++*left_out;
        return EXIT_DONE;
    }
    return tell(result, &text, &error);
}

/* Signals have no call for tasks: each gets it by its id. Those that wait or have ended are left out, unless all do. */
static int end_each(struct elmer *elmer, const struct calls *calls, const struct ref *ref, bool *lost)
{
    size_t nids, left_out = 0;
    uint64_t *ids;
    int code = refs_ids(elmer, ref, 1, REFS_ONCE, &ids, &nids), worst = EXIT_DONE;

    *lost = code == EXIT_UNREACHABLE;
    for (size_t i = 0; code < 0 && i < nids && !*lost; i++) {
        int one = end_job(elmer, calls, ids[i], nids > 1 ? &left_out : NULL);

        *lost = one == EXIT_UNREACHABLE;
        worst = one > worst ? one : worst;
    }
    free(ids);
    if (code < 0 && nids > 1 && left_out == nids) {
        say("none of the tasks %llu[%s] runs: no process can get a signal", (unsigned long long)ref->id, ref->tasks);
        worst = EXIT_JOB;
    }
    return code < 0 ? worst : code;
}

/* *lost: elmer could not be reached, so that it is not asked about the next ones. */
static int end_one(struct elmer *elmer, const struct calls *calls, const struct ref *ref, bool *lost)
{
    struct elmer_error text, error = {{0}};
    int code;

    if (ref->tasks && strcmp(ref->tasks, "*") != 0 && !calls->tasks)
        return end_each(elmer, calls, ref, lost);
    if (!ref->tasks || strcmp(ref->tasks, "*") == 0)
        code = end_job(elmer, calls, ref->id, NULL);
    else
        code = tell(calls->tasks(elmer, ref->id, ref->tasks, ANSWER_MS, &text, &error), &text, &error);
    *lost = code == EXIT_UNREACHABLE;
    return code;
}

static int end_all(const struct calls *calls, const struct ref *refs, int count)
{
    struct elmer *elmer = open_elmer();
    int worst = EXIT_DONE;
    bool lost = false;

    if (!elmer)
        return EXIT_REFUSED;
    for (int i = 0; i < count && !lost; i++) {
        int code = end_one(elmer, calls, &refs[i], &lost);

        if (lost && i + 1 < count)
            say("job %llu and those after it were not handled", (unsigned long long)refs[i].id);
        worst = code > worst ? code : worst;
    }
    elmer_close(elmer);
    return worst;
}

int end_main(const struct command *command, end_call call, end_tasks_call tasks_call, int argc, char **argv)
{
    const struct calls calls = {call, tasks_call};
    struct ref *refs;
    size_t count;
    int c, code = EXIT_DONE;

    command_begin(command);
    c = options_next(argc, argv, "+", command->options);
    if (c != -1) /* there are no others */
        return common_option(c, argv);
    if (optind == argc)
        return usage_error("the id of a job is missing");
    count = (size_t)(argc - optind);
    refs = must(calloc(count, sizeof(*refs)));
    for (size_t i = 0; i < count && code == EXIT_DONE; i++)
        if (!ref_parse(argv[optind + (int)i], &refs[i]))
            code = EXIT_USAGE;
    if (code == EXIT_DONE)
        code = end_all(&calls, refs, (int)count);
    refs_fini(refs, count);
    return code;
}
