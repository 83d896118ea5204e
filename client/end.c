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

/* Where there is no call for tasks: each by its id. */
static int end_each(struct elmer *elmer, const struct calls *calls, const struct ref *ref)
{
    struct elmer_error text, error = {{0}};
    uint64_t *ids;
    size_t nids;
    int code = refs_ids(elmer, ref, 1, ANSWER_MS, &ids, &nids), worst = EXIT_DONE;

    for (size_t i = 0; code < 0 && i < nids && worst != EXIT_UNREACHABLE; i++) {
        int result = calls->job(elmer, ids[i], ANSWER_MS, &text, &error);
        int one = result == ELMER_OK ? EXIT_DONE : say_result(result, &error);

        worst = one > worst || one == EXIT_UNREACHABLE ? one : worst;
    }
    free(ids);
    return code < 0 ? worst : code;
}

static int end_one(struct elmer *elmer, const struct calls *calls, const struct ref *ref)
{
    struct elmer_error text, error = {{0}};
    int result;

    if (ref->tasks && !calls->tasks)
        return end_each(elmer, calls, ref);
    result = ref->tasks && strcmp(ref->tasks, "*") != 0
                 ? calls->tasks(elmer, ref->id, ref->tasks, ANSWER_MS, &text, &error)
                 : calls->job(elmer, ref->id, ANSWER_MS, &text, &error);

    if (result != ELMER_OK)
        return say_result(result, &error);
    if (text.text[0])
        say("%s", text.text);
    return EXIT_DONE;
}

static int end_all(const struct calls *calls, const struct ref *refs, int count)
{
    struct elmer *elmer = open_elmer();
    int worst = EXIT_DONE;

    if (!elmer)
        return EXIT_REFUSED;
    for (int i = 0; i < count && worst != EXIT_UNREACHABLE; i++) {
        int code = end_one(elmer, calls, &refs[i]);

        if (code == EXIT_UNREACHABLE && i + 1 < count)
            say("job %llu and those after it were not handled", (unsigned long long)refs[i].id);
        worst = code > worst || code == EXIT_UNREACHABLE ? code : worst;
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
