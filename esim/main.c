/* main.c - esim: what would the scheduler do? */
#include "config.h"

#include <errno.h>
#include <getopt.h>
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
#include "lib/base/str.h"

enum { EXIT_GOOD = 0, EXIT_FAULT = 1, EXIT_USAGE = 2, PARALLEL_MAX = 1024 };
enum {
    OPTION_KEY = 1000,
    OPTION_SATURATED,
    OPTION_HISTORY,
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_SWEEP,
    OPTION_COMPARE,
    OPTION_JSON,
    OPTION_RECORDS,
    OPTION_PLOT,
    OPTION_CPUS_USED,
    OPTION_HELP,
    OPTION_VERSION
};

static const char usage[] =
    "Usage: esim [options]\n"
    "Run Elmer's scheduler in virtual time on a workload, and say how long jobs take.\n"
    "\n"
    "  --workload W      constant, 'square [1,16]', 'rect [1,32]', 'procs [1,8]' or\n"
    "                    'P[1,8]=0.3 P[17,32]=0.7' (default: rect [1,16])\n"
    "  --trace FILE      a trace in the Standard Workload Format, perhaps with gzip\n"
    "    --feedback=yes|no           jobs follow those that they name (default: yes)\n"
    "  --history FILE    what Elmer has kept of its jobs: its store, or a copy of it\n"
    "    --since TIME --until TIME   of that, by the times of submission\n"
    "    --without-user NAME         without the jobs of one user\n"
    "  --load L          mean service time / mean time between arrivals (default: 1)\n"
    "  --saturated       a queue that is never empty\n"
    "  --arrivals, --service, --mean-service, --share    see esim(1)\n"
    "  --hosts N --cpus N | --cube N  [--add-hosts N]     the machine\n"
    "    --speeds SxN,SxN..          how fast the first N hosts are, and the next ones\n"
    "    --memory SIZE               of each host; --job-memory SIZE for each processor of a job\n"
    "  --allocator A --levels D --policy P --threshold T --user-running N\n"
    "  --model space|shared --steps together|each --period SECONDS\n"
    "  --precision P     until the 95 % interval is so narrow (default: 2%)\n"
    "  --jobs N          so many jobs and no more\n"
    "  --jobs-max N      give up the precision then (default: 2000000)\n"
    "  --seed N          the same seed gives the same answer\n"
    "  --sweep KEY=FROM..TO[:COUNT]   and --compare KEY=A,B   with the same jobs\n"
    "  --explain JOB     why a job started when it did\n"
    "  --records FILE    a line of JSON for each job\n"
    "  --plot FILE       a picture of a sweep, in SVG\n"
    "  --json            lines of JSON instead of a table\n"
    "  --parallel N      simulations at a time (default: one for each CPU)\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 done, 1 a simulation failed, 2 usage.\n";

struct request {
    struct config config;
    const char *sweep, *compare, *records, *history, *plot;
    int64_t since_ms, until_ms;
    bool json;
    int parallel;
};

static int wrong(const char *text)
{
    fprintf(stderr, "esim: %s\n", text);
    return EXIT_USAGE;
}

static const char *const keys[] = {
    "workload",     "trace",  "load",      "arrivals",   "service", "mean-service", "share",        "hosts",
    "cpus",         "cube",   "allocator", "levels",     "policy",  "threshold",    "user-running", "model",
    "steps",        "period", "precision", "jobs",       "seed",    "explain",      "jobs-max",     "add-hosts",
    "without-user", "speeds", "memory",    "job-memory", "feedback"};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static void make_options(struct option *options)
{
    static const struct option others[] = {{"saturated", no_argument, NULL, OPTION_SATURATED},
                                           {"history", required_argument, NULL, OPTION_HISTORY},
                                           {"since", required_argument, NULL, OPTION_SINCE},
                                           {"until", required_argument, NULL, OPTION_UNTIL},
                                           {"sweep", required_argument, NULL, OPTION_SWEEP},
                                           {"compare", required_argument, NULL, OPTION_COMPARE},
                                           {"json", no_argument, NULL, OPTION_JSON},
                                           {"records", required_argument, NULL, OPTION_RECORDS},
                                           {"plot", required_argument, NULL, OPTION_PLOT},
                                           {"parallel", required_argument, NULL, OPTION_CPUS_USED},
                                           {"help", no_argument, NULL, OPTION_HELP},
                                           {"version", no_argument, NULL, OPTION_VERSION},
                                           {NULL, 0, NULL, 0}};

    for (int i = 0; i < KEYS; i++)
        options[i] = (struct option){keys[i], required_argument, NULL, OPTION_KEY};
    options[KEYS - 1].has_arg = optional_argument; /* feedback */
    memcpy(&options[KEYS], others, sizeof(others));
}

/* -1 to go on, or the exit status. */
static int take(struct request *request, int c, const char *name)
{
    char fault[300];
    uint64_t number;

    switch (c) {
    case OPTION_KEY:
        return keys_set(&request->config, name, optarg ? optarg : "yes", fault, sizeof(fault)) ? -1 : wrong(fault);
    case OPTION_SATURATED:
        request->config.world.saturated = true;
        return -1;
    case OPTION_HISTORY:
        request->history = optarg;
        return -1;
    case OPTION_SINCE:
    case OPTION_UNTIL:
        return history_time(optarg, c == OPTION_SINCE ? &request->since_ms : &request->until_ms)
                   ? -1
                   : wrong("--since, --until: want '2026-11-01', '2026-11-01 14:30' or '@' and seconds of Unix time");
    case OPTION_SWEEP:
        request->sweep = optarg;
        return -1;
    case OPTION_COMPARE:
        request->compare = optarg;
        return -1;
    case OPTION_JSON:
        request->json = true;
        return -1;
    case OPTION_RECORDS:
        request->records = optarg;
        return -1;
    case OPTION_PLOT:
        request->plot = optarg;
        return -1;
    case OPTION_CPUS_USED:
        if (!str_to_u64(optarg, &number) || number < 1 || number > PARALLEL_MAX)
            return wrong("--parallel: want a number from 1 to 1024");
        request->parallel = (int)number;
        return -1;
    case 'h':
    case OPTION_HELP:
        fputs(usage, stdout);
        return EXIT_GOOD;
    case 'V':
    case OPTION_VERSION:
        printf("esim %s\n", PACKAGE_VERSION);
        return EXIT_GOOD;
    default:
        return EXIT_USAGE;
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

static bool draw(const char *path, const struct plan *plan)
{
    FILE *out = fopen(path, "w");
    bool good = out != NULL;

    if (good) {
        plot(out, plan);
        good = finish(out);
    }
    if (!good)
        fprintf(stderr, "esim: %s: %s\n", path, strerror(errno));
    return good;
}

static int simulate(struct request *request)
{
    FILE *progress = isatty(STDERR_FILENO) ? stderr : NULL;
    struct history *history = NULL;
    struct plan plan;
    char fault[300];
    int code = EXIT_GOOD;

    if (request->history && request->config.trace)
        return wrong("--history and --trace: one of them");
    if (!request->history && (request->since_ms != INT64_MIN || request->until_ms != INT64_MAX))
        return wrong("--since and --until: of --history");
    if (request->history && request->config.jobs_said)
        return wrong("--jobs and --jobs-max: a history has the jobs that it has; see --since and --until");
    if (request->config.world.explain != 0 && (request->sweep || request->compare))
        return wrong("--explain is for one simulation, without --sweep and --compare");
    request->config.world.told = request->json ? stderr : stdout; /* lines of JSON stay such */
    if (request->records && (request->sweep || request->compare))
        return wrong("--records is for one simulation, without --sweep and --compare");
    if (request->records && !(request->config.records = fopen(request->records, "w"))) {
        perror(request->records);
        return EXIT_FAULT;
    }
    if (request->history && !take_history(request, &history))
        return EXIT_FAULT;
    if (!plan_make(&plan, &request->config, request->sweep, request->compare, fault, sizeof(fault))) {
        plan_fini(&plan);
        history_destroy(history);
        return wrong(fault);
    }
    if (request->plot && !plot_possible(&plan)) {
        plan_fini(&plan);
        history_destroy(history);
        return wrong("--plot needs --sweep with numbers");
    }
    plan_run(&plan, request->parallel, request->config.world.explain != 0 ? NULL : progress);
    if (request->json)
        code = json_print(stdout, &plan) ? EXIT_GOOD : EXIT_FAULT;
    else
        show(&plan);
    show_notes(&plan);
    if (request->plot && !draw(request->plot, &plan))
        code = EXIT_FAULT;
    for (size_t i = 0; i < plan.count; i++)
        code = plan.results[i].done && !plan.results[i].unexplained ? code : EXIT_FAULT;
    plan_fini(&plan);
    history_destroy(history);
    if (request->config.records && !finish(request->config.records)) {
        fprintf(stderr, "esim: %s: %s\n", request->records, strerror(errno));
        code = EXIT_FAULT;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "esim: cannot write the results: %s\n", strerror(errno));
        return EXIT_FAULT;
    }
    return code;
}

int main(int argc, char **argv)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct request request = {.parallel = cpus > 0 ? (int)cpus : 1, .until_ms = INT64_MAX, .since_ms = INT64_MIN};
    struct option options[KEYS + 13];
    int c, which = 0, result = -1;

    keys_default(&request.config);
    make_options(options);
    while (result < 0 && (c = getopt_long(argc, argv, "hV", options, &which)) != -1)
        result = take(&request, c, options[which].name);
    if (result < 0 && optind < argc)
        result = wrong("there is an argument too many; see esim --help");
    return result < 0 ? simulate(&request) : result;
}
