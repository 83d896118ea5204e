/* main.c - esim: what would the scheduler do? */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "esim/json.h"
#include "esim/keys.h"
#include "esim/plan.h"
#include "esim/plot.h"
#include "esim/show.h"
#include "esim/snapshot.h"
#include "lib/base/file.h"
#include "lib/base/moment.h"
#include "lib/base/str.h"
#include "lib/memory/mem.h"
#include "lib/options/options.h"

enum { EXIT_GOOD = 0, EXIT_FAULT = 1, EXIT_USAGE = 2, PARALLEL_MAX = 1024, AWAY_MAX = 256 };
enum {
    OPTION_KEY = OPTION_FIRST_FREE, /* its name is that of a key */
    OPTION_SATURATED,
    OPTION_HISTORY,
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_AWAY,
    OPTION_SWEEP,
    OPTION_COMPARE,
    OPTION_JSON,
    OPTION_RECORDS,
    OPTION_PLOT,
    OPTION_PARALLEL
};

static const struct option_row options[] = {
    {OPTION_KEY, "workload", "W",
     "constant, 'square [1,16]', 'rect [1,32]', 'procs [1,8]' or\n'P[1,8]=0.3 P[17,32]=0.7' (default: procs [1,8],\nin "
     "a cube rect [1,16])"},
    {OPTION_KEY, "load", "L", "mean service time / mean time between arrivals (default: 1)"},
    {OPTION_SATURATED, "saturated", NULL, "a queue that is never empty"},
    {OPTION_KEY, "arrivals", "A", "poisson or constant (default: poisson)"},
    {OPTION_KEY, "service", "S", "exponential or constant times (default: exponential)"},
    {OPTION_KEY, "mean-service", "SECONDS", "the mean of these times (default: 4)"},
    {OPTION_KEY, "share", "P", "how much of its time a job computes, in the model shared"},
    {OPTION_KEY, "trace", "FILE", "a trace in the Standard Workload Format, perhaps with gzip"},
    {OPTION_KEY, "feedback", "[=YES]", "of a trace: jobs follow those that they name, yes or no (default: yes)"},
    {OPTION_HISTORY, "history", "FILE", "what Elmer has kept of its jobs: its store, or a copy of it"},
    {OPTION_SINCE, "since", "TIME", "of a history: jobs submitted from then on"},
    {OPTION_UNTIL, "until", "TIME", "and until then"},
    {OPTION_AWAY, "away", "HOST=FROM..UNTIL", "a host took no new jobs then; may be repeated"},
    {OPTION_KEY, "without-user", "NAME", "of a history: without the jobs of one user"},
    {OPTION_KEY, "seed", "N", "the same seed gives the same answer"},
    {0, NULL, NULL, ""},
    {OPTION_KEY, "hosts", "N", "how many hosts the machine has"},
    {OPTION_KEY, "cpus", "N", "and each of them processors"},
    {OPTION_KEY, "add-hosts", "N", "so many more than there are"},
    {OPTION_KEY, "speeds", "SxN,..", "how fast the first N hosts are, and the next ones"},
    {OPTION_KEY, "memory", "SIZE", "of each host, for jobs that ask for some"},
    {OPTION_KEY, "job-memory", "SIZE", "what each processor of a job asks for"},
    {OPTION_KEY, "cube", "N", "a hypercube of 2^N hosts with a processor each"},
    {OPTION_KEY, "allocator", "A", "as in elmer.conf(5)"},
    {OPTION_KEY, "levels", "D", "jobs that may share a processor"},
    {OPTION_KEY, "policy", "P", "the queue's order"},
    {OPTION_KEY, "threshold", "T", "of the allocator v2"},
    {OPTION_KEY, "user-running", "N", "how many jobs of a user may run"},
    {OPTION_KEY, "model", "M", "space or shared: what jobs of one processor do to each other"},
    {OPTION_KEY, "steps", "S", "together or each, in the model shared"},
    {OPTION_KEY, "period", "SECONDS", "of the steps"},
    {0, NULL, NULL, ""},
    {OPTION_KEY, "precision", "P", "until the 95 % interval is so narrow (default: 2%)"},
    {OPTION_KEY, "jobs", "N", "so many jobs and no more"},
    {OPTION_KEY, "jobs-max", "N", "give up the precision then (default: 2000000)"},
    {OPTION_SWEEP, "sweep", "KEY=FROM..TO[:COUNT]", "once for each of these values, with the same jobs"},
    {OPTION_COMPARE, "compare", "KEY=A,B", "once with each, with the same jobs"},
    {OPTION_PARALLEL, "parallel", "N", "simulations at a time (default: one for each CPU)"},
    {OPTION_KEY, "explain", "JOB", "why a job started when it did"},
    {OPTION_JSON, "json", NULL, "lines of JSON instead of a table"},
    {OPTION_PLOT, "plot", "FILE", "a picture of a sweep, in SVG"},
    {OPTION_RECORDS, "records", "FILE", "a line of JSON for each job"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "esim",
    "Usage: esim [options]\n"
    "Run Elmer's scheduler in virtual time on a workload, and say how long jobs take.\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 a simulation failed, 2 usage.\n",
};

struct request {
    struct config config;
    const char *sweep, *compare, *records, *history, *plot;
    int64_t since_ms, until_ms;
    bool json;
    int parallel;
    const char *away[AWAY_MAX];
    int naway;
    struct away times[AWAY_MAX];
};

static int wrong(const char *text)
{
    fprintf(stderr, "esim: %s\n", text);
    return EXIT_USAGE;
}

/* A second one would take the place of the first. */
static int take_once(const char **taken)
{
    char text[80];

    if (*taken) {
        snprintf(text, sizeof(text), "--%s: it is there twice, and one is all that can be done", options_row()->name);
        return wrong(text);
    }
    *taken = optarg;
    return -1;
}

/* -1 to go on, or the exit status. */
static int take(struct request *request, int c, char **argv)
{
    const struct option_row *row = options_row();
    char fault[300];
    uint64_t number;
    struct wall moment;

    switch (c) {
    case OPTION_KEY:
        return keys_set(&request->config, row->name, optarg ? optarg : "yes", fault, sizeof(fault)) ? -1 : wrong(fault);
    case OPTION_SATURATED:
        request->config.world.saturated = true;
        return -1;
    case OPTION_HISTORY:
        request->history = optarg;
        return -1;
    case OPTION_SINCE:
    case OPTION_UNTIL:
        if (!moment_parse(optarg, wall_now(), &moment))
            return wrong("--since, --until: want " MOMENT_FORMS);
        *(c == OPTION_SINCE ? &request->since_ms : &request->until_ms) = moment.ms;
        return -1;
    case OPTION_AWAY:
        if (request->naway == AWAY_MAX)
            return wrong("--away: 256 at most");
        request->away[request->naway++] = optarg;
        return -1;
    case OPTION_SWEEP:
        return take_once(&request->sweep);
    case OPTION_COMPARE:
        return take_once(&request->compare);
    case OPTION_JSON:
        request->json = true;
        return -1;
    case OPTION_RECORDS:
        request->records = optarg;
        request->config.records_said = true;
        return -1;
    case OPTION_PLOT:
        request->plot = optarg;
        return -1;
    case OPTION_PARALLEL:
        if (!str_to_u64(optarg, &number) || number < 1 || number > PARALLEL_MAX)
            return wrong("--parallel: want a number from 1 to 1024");
        request->parallel = (int)number;
        return -1;
    default:
        return options_common(&command, c, argv, EXIT_USAGE);
    }
}

static bool take_history(struct request *request, struct history **history)
{
    struct config *c = &request->config;
    char fault[500];

    *history = history_read(request->history, request->since_ms, request->until_ms, fault, sizeof(fault));
    if (!*history) {
        fprintf(stderr, "esim: %s\n", fault);
        return false;
    }
    for (int i = 0; i < request->naway; i++)
        if (!history_away(*history, request->away[i], &request->times[i], fault, sizeof(fault))) {
            fprintf(stderr, "esim: %s\n", fault);
            return false;
        }
    c->world.away = request->times;
    c->world.naway = request->naway;
    c->history = *history;
    c->whole = c->exactly = true;
    c->jobs_max = (*history)->njobs;
    snprintf(c->workload_name, sizeof(c->workload_name), "%s", request->history);
    return true;
}

/* Closes it; false: not all has been written, errno says why. */
static bool finish(FILE *out)
{
    bool good;

    errno = 0;
    good = fflush(out) == 0 && !ferror(out);
    if (good)
        return fclose(out) == 0;
    fclose(out);
    errno = errno != 0 ? errno : EIO; /* a line before the last could not be written */
    return false;
}

static bool complain(const char *path)
{
    fprintf(stderr, "esim: %s: %s\n", path, strerror(errno));
    return false;
}

static bool draw(const char *path, const struct plan *plan)
{
    FILE *out = fopen(path, "w");
    bool good = out != NULL;

    if (good) {
        plot(out, plan);
        good = finish(out);
    }
    return good || complain(path);
}

/* Before anything is computed. A picture that is there stays until the next one is known. */
static bool open_files(const struct request *request, struct plan *plan)
{
    FILE *picture = request->plot ? fopen(request->plot, "a") : NULL;

    if (request->plot && !picture)
        return complain(request->plot);
    if (picture)
        fclose(picture);
    plan->configs[0].records = request->records ? fopen(request->records, "w") : NULL;
    return plan->configs[0].records || !request->records || complain(request->records);
}

/* Returns the exit status. */
static int answer(const struct request *request, struct plan *plan)
{
    FILE *progress = isatty(STDERR_FILENO) ? stderr : NULL, *records = plan->configs[0].records;
    int code = EXIT_GOOD;

    plan_run(plan, request->parallel, request->config.world.explain != 0 ? NULL : progress);
    if (request->json)
        code = json_print(stdout, plan) ? EXIT_GOOD : EXIT_FAULT;
    else
        show(plan);
    show_notes(plan);
    if (request->plot && !draw(request->plot, plan))
        code = EXIT_FAULT;
    for (size_t i = 0; i < plan->count; i++)
        code = plan->results[i].done && !plan->results[i].unexplained ? code : EXIT_FAULT;
    if (records && !finish(records)) {
        complain(request->records);
        code = EXIT_FAULT;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "esim: cannot write the results: %s\n", strerror(errno));
        code = EXIT_FAULT;
    }
    return code;
}

static int simulate(struct request *request)
{
    struct history *history = NULL;
    struct plan plan;
    char fault[300];
    int code;

    if (request->history && request->config.trace)
        return wrong("--history and --trace: one of them");
    if (!request->history && (request->since_ms != INT64_MIN || request->until_ms != INT64_MAX))
        return wrong("--since and --until: of --history");
    if (!request->history && request->naway > 0)
        return wrong("--away: of --history");
    if (request->history && request->config.jobs_said)
        return wrong("--jobs and --jobs-max: a history has the jobs that it has; see --since and --until");
    request->config.world.told = request->json ? stderr : stdout; /* lines of JSON stay such */
    if (request->records && (request->sweep || request->compare))
        return wrong("--records is for one simulation, without --sweep and --compare");
    if (request->history && !take_history(request, &history)) {
        history_destroy(history);
        return EXIT_FAULT;
    }
    if (!plan_make(&plan, &request->config, request->sweep, request->compare, fault, sizeof(fault))) {
        wrong(fault);
        code = plan.failed ? EXIT_FAULT : EXIT_USAGE;
    } else if (request->plot && !plot_possible(&plan))
        code = wrong("--plot needs --sweep with numbers");
    else
        code = open_files(request, &plan) ? answer(request, &plan) : EXIT_FAULT;
    plan_fini(&plan);
    history_destroy(history);
    return code;
}

static void no_memory(void)
{
    static const char text[] = "esim: out of memory: simulate a smaller machine or fewer jobs, or fewer at a time\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);

    (void)written; /* there is nothing else to be done */
    snapshot_abandon();
    _exit(EXIT_FAULT);
}

int main(int argc, char **argv)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct request request = {.parallel = cpus > 0 ? (int)cpus : 1, .until_ms = INT64_MAX, .since_ms = INT64_MIN};
    int c, result = -1;

    file_fill_standard(); /* what is said must not go into the records */
    mem_set_end(no_memory);
    keys_default(&request.config);
    while (result < 0 && (c = options_next(argc, argv, "", options)) != -1)
        result = take(&request, c, argv);
    if (result < 0 && optind < argc)
        result = options_surplus(&command, argv[optind], EXIT_USAGE);
    return result < 0 ? simulate(&request) : result;
}
