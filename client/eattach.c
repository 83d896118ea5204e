/* eattach.c - look at the terminal of a job again. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "client/common.h"
#include "client/look.h"
#include "lib/job/terminal.h"
#include "libelmer/client.h"

static const struct option_row options[] = {
    {'a', "all", NULL, "first show all that is kept, also what was seen before"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "eattach",
    "Usage: eattach [-a] ID\n"
    "Show the terminal of a job that was submitted with --pty --keep, from any host, and type\n"
    "into it. What nobody has seen comes first. ~. at the begin of a line leaves, the job goes on.\n"
    "\n",
    options,
    "\n"
    "Exit status: that of the job when it has ended, 0 if you have left, 1 refused, 2 usage, 3 no such\n"
    "job, 4 elmer not reachable, 5 not permitted, 6 not now, 125 the connection is lost for good.\n",
};

/* -1, or an exit code: it cannot be looked at, and that was said. */
static int check(struct elmer *elmer, uint64_t id, struct look_options *look)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    unsigned long long number = id;
    int result = elmer_query(elmer, false, false, &id, 1, ANSWER_MS, &jobs, &error), code = -1;

    if (result != ELMER_OK)
        return say_result(result, &error);
    if (jobs->count == 0) {
        say("there is no job %llu", number);
        code = EXIT_JOB;
    } else if (jobs->items[0].hidden) {
        say("job %llu belongs to %s: only he may see its terminal", number, jobs->items[0].user);
        code = EXIT_PERMISSION;
    } else if (client_minor(elmer) < WIRE_TERMINAL_MINOR) {
        say("elmer, or rsd of this host, is of version 1.%u and knows no terminals: that takes 1.%d",
            client_minor(elmer), WIRE_TERMINAL_MINOR);
        code = EXIT_REFUSED;
    } else if (!*jobs->items[0].terminal) {
        say("job %llu has no terminal: it was submitted without --pty; etail %llu shows its output", number, number);
        code = EXIT_REFUSED;
    } else if (elmer_job_ended(&jobs->items[0])) {
        say("job %llu has ended, and its terminal with it; etail %llu shows what nobody had seen", number, number);
        code = EXIT_JOB;
    } else {
        look->keep = strcmp(jobs->items[0].terminal, TERMINAL_KEEP) == 0;
    }
    elmer_jobs_free(jobs);
    return code;
}

int main(int argc, char **argv)
{
    struct look_options look = {.all = false};
    struct elmer *elmer;
    uint64_t id;
    int c, code;

    command_begin(&command);
    while ((c = options_next(argc, argv, "", options)) != -1) {
        if (c != 'a')
            return common_option(c, argv);
        look.all = true;
    }
    if (optind + 1 != argc)
        return usage_error(optind == argc ? "ID is missing" : "one job is looked at, not several");
    if (!parse_id(argv[optind], &id))
        return EXIT_USAGE;
    elmer = open_elmer();
    if (!elmer)
        return EXIT_REFUSED;
    code = check(elmer, id, &look);
    if (code < 0)
        code = look_at(elmer, id, &look);
    elmer_close(elmer);
    return code;
}
