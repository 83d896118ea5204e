/* end.c - commands that do one thing to each of some jobs: ekill, ecancel, ehold, erelease, etop. */
#include "config.h"

#include "client/end.h"

#include <stdlib.h>

static int end_one(struct elmer *elmer, end_call call, uint64_t id)
{
    struct elmer_error text, error = {{0}};
    int result = call(elmer, id, ANSWER_MS, &text, &error);

    if (result != ELMER_OK)
        return say_result(result, &error);
    if (text.text[0])
        say("%s", text.text);
    return EXIT_DONE;
}

static int end_all(end_call call, const uint64_t *ids, int count)
{
    struct elmer *elmer = open_elmer();
    int worst = EXIT_DONE;

    if (!elmer)
        return EXIT_REFUSED;
    for (int i = 0; i < count && worst != EXIT_UNREACHABLE; i++) {
        int code = end_one(elmer, call, ids[i]);

        if (code == EXIT_UNREACHABLE && i + 1 < count)
            say("job %llu and those after it were not handled", (unsigned long long)ids[i]);
        worst = code > worst || code == EXIT_UNREACHABLE ? code : worst;
    }
    elmer_close(elmer);
    return worst;
}

int end_main(const struct command *command, end_call call, int argc, char **argv)
{
    static const struct option options[] = {COMMON_OPTIONS, {NULL, 0, NULL, 0}};
    uint64_t *ids;
    int c, code = EXIT_DONE;

    command_begin(command);
    c = next_option(argc, argv, "+:hV", options);
    if (c != -1) /* there are no others */
        return common_option(c, argv);
    if (optind == argc)
        return usage_error("the id of a job is missing");
    ids = must(calloc((size_t)(argc - optind), sizeof(*ids)));
    for (int i = optind; i < argc && code == EXIT_DONE; i++)
        if (!parse_id(argv[i], &ids[i - optind]))
            code = EXIT_USAGE;
    if (code == EXIT_DONE)
        code = end_all(call, ids, argc - optind);
    free(ids);
    return code;
}
