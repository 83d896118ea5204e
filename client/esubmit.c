/* esubmit.c - submit a job. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "client/environment.h"
#include "client/wait.h"
#include "lib/base/str.h"

static const struct command command = {
    "esubmit",
    "Usage: esubmit [options] NPROCS COMMAND [ARG...]\n"
    "       esubmit [options] --mesh XxY COMMAND [ARG...]\n"
    "Submit COMMAND as a job on NPROCS processors; print its id on standard output.\n"
    "\n"
    "  -J NAME           name of the job (default: the last part of COMMAND)\n"
    "  -o FILE           standard output (default: elmer-%j.out, with --each elmer-%j.%r.out)\n"
    "  -e FILE           standard error (default: the same file as standard output)\n"
    "                    in FILE: %j job id, %u user, %x job name, %r rank, %% percent sign\n"
    "  -D DIR            working directory (default: the current one)\n"
    "  -v VAR[=VALUE]    pass on a variable, or set it; may be repeated\n"
    "                    (without -v: PATH LANG LANGUAGE LC_* TZ)\n"
    "  --mesh XxY        on X * Y processors that are a mesh in a cube of hosts, like 4x6\n"
    "  --hosts LIST      only on these hosts, separated by commas\n"
    "  --each            run COMMAND on each processor, not once on the first\n"
    "  --pvm             give the job a PVM virtual machine of its own\n"
    "  --requeue         run it again, from its beginning, if a host is lost\n"
    "  --comment TEXT    a line that equery shows with the job, at most 200 bytes\n"
    "  -w                wait, and exit with the job's status\n"
    "  --help            print this and exit\n"
    "  --version         print the version and exit\n"
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 4 elmer not reachable, 5 not permitted, 6 not\n"
    "possible now (elmer's disk is full): try again later. With -w that of the\n"
    "job, 128+N if it died by signal N, 125 if Elmer could not run it to its end.\n",
};

enum { MESH_SIDE_MAX = 65536 };

struct request {
    struct elmer_submission submission;
    struct environment environment;
    char *dir;
    const char **hosts;
    char *host_names; /* what hosts points into */
    bool wait;
};

enum { OPTION_HOSTS = OPTION_FIRST_FREE, OPTION_EACH, OPTION_PVM, OPTION_REQUEUE, OPTION_COMMENT, OPTION_MESH };

static bool set_dir(struct request *request, const char *dir)
{
    char *here;

    free(request->dir);
    request->dir = NULL;
    if (!*dir) {
        usage_error("-D: the directory's name is empty");
        return false;
    }
    if (dir[0] == '/') {
        request->dir = must(strdup(dir));
    } else {
        here = get_current_dir_name();
        if (!here) {
            usage_error("-D %s: the current directory cannot be found; give an absolute path", dir);
            return false;
        }
        request->dir = must(str_format("%s/%s", strcmp(here, "/") == 0 ? "" : here, dir));
        free(here);
    }
    request->submission.dir = request->dir;
    return true;
}

static bool known(const char **hosts, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(hosts[i], name) == 0)
            return true;
    return false;
}

static bool set_hosts(struct request *request, const char *list)
{
    size_t count = 0;
    char *name, *rest;

    free(request->host_names);
    free(request->hosts);
    rest = request->host_names = must(strdup(list));
    request->hosts = must(calloc(strlen(list) + 2, sizeof(*request->hosts)));
    while ((name = strsep(&rest, ",")) != NULL) {
        if (!str_valid_hostname(name)) {
            usage_error("--hosts: '%s' is no host name; give names separated by commas, like ws1,ws2", name);
            return false;
        }
        if (!known(request->hosts, count, name))
            request->hosts[count++] = name;
    }
    request->submission.hosts = request->hosts;
    return true;
}

static bool set_mesh(struct request *request, const char *text)
{
    const char *x = strchr(text, 'x');
    char rows[24] = "";
    uint64_t nrows, ncolumns;

    if (x && x - text < (long)sizeof(rows))
        memcpy(rows, text, (size_t)(x - text));
    if (!x || !str_to_u64(rows, &nrows) || !str_to_u64(x + 1, &ncolumns) || nrows < 1 || ncolumns < 1 ||
        nrows > MESH_SIDE_MAX || ncolumns > MESH_SIDE_MAX || nrows * ncolumns > MESH_SIDE_MAX) {
        usage_error("--mesh %s: want rows and columns, like 4x6, of at most %d processors", text, MESH_SIDE_MAX);
        return false;
    }
    request->submission.mesh_rows = (uint32_t)nrows;
    request->submission.nprocs = (uint32_t)(nrows * ncolumns);
    return true;
}

/* Returns -1 to go on, or the exit code. */
static int take_option(struct request *request, int c, char **argv)
{
    struct elmer_submission *s = &request->submission;

    switch (c) {
    case 'J':
        s->name = optarg;
        return -1;
    case 'o':
        s->output = optarg;
        return -1;
    case 'e':
        s->errors = optarg;
        return -1;
    case 'D':
        return set_dir(request, optarg) ? -1 : EXIT_USAGE;
    case 'v':
        return environment_add(&request->environment, optarg) ? -1 : EXIT_USAGE;
    case 'w':
        request->wait = true;
        return -1;
    case OPTION_HOSTS:
        return set_hosts(request, optarg) ? -1 : EXIT_USAGE;
    case OPTION_MESH:
        return set_mesh(request, optarg) ? -1 : EXIT_USAGE;
    case OPTION_EACH:
        s->each = true;
        return -1;
    case OPTION_PVM:
        s->pvm = true;
        return -1;
    case OPTION_REQUEUE:
        s->requeue = true;
        return -1;
    case OPTION_COMMENT:
        s->comment = optarg;
        return -1;
    default:
        return common_option(c, argv);
    }
}

static int take_operands(struct request *request, int argc, char **argv)
{
    uint64_t nprocs;

    if (request->submission.mesh_rows) {
        if (optind == argc)
            return usage_error("COMMAND is missing; with --mesh there is no number of processors before it");
        request->submission.command = (const char *const *)&argv[optind];
        return -1;
    }
    if (optind == argc)
        return usage_error("NPROCS, the number of processors, and COMMAND are missing");
    if (!str_to_u64(argv[optind], &nprocs) || nprocs < 1 || nprocs > 1000000)
        return usage_error("'%s' is no number of processors; give a whole number from 1 to 1000000 before the command",
                           argv[optind]);
    if (optind + 1 == argc)
        return usage_error("COMMAND is missing behind the number of processors");
    request->submission.nprocs = (uint32_t)nprocs;
    request->submission.command = (const char *const *)&argv[optind + 1];
    return -1;
}

static int parse(struct request *request, int argc, char **argv)
{
    static const struct option options[] = {{"hosts", required_argument, NULL, OPTION_HOSTS},
                                            {"each", no_argument, NULL, OPTION_EACH},
                                            {"pvm", no_argument, NULL, OPTION_PVM},
                                            {"requeue", no_argument, NULL, OPTION_REQUEUE},
                                            {"comment", required_argument, NULL, OPTION_COMMENT},
                                            {"mesh", required_argument, NULL, OPTION_MESH},
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    int c, code = -1;

    while (code < 0 && (c = getopt_long(argc, argv, "+:J:o:e:D:v:w", options, NULL)) != -1)
        code = take_option(request, c, argv);
    return code < 0 ? take_operands(request, argc, argv) : code;
}

/* For people; the id for programs is on stdout. */
static void tell(const struct elmer_submitted *answer)
{
    bool waits = strcmp(answer->state, "queued") == 0 || strcmp(answer->state, "held") == 0;
    char *text = NULL, *clean;
    size_t size;
    FILE *out = must(open_memstream(&text, &size));

    fprintf(out, "job %llu ", (unsigned long long)answer->job);
    if (waits) {
        fprintf(out, "%s: %lu ahead", answer->state, (unsigned long)answer->ahead);
        if (answer->reason[0])
            fprintf(out, "; %s", answer->reason);
    } else if (answer->level >= 0 && answer->nhosts > 0) {
        fprintf(out, "allocated");
        for (size_t i = 0; i < answer->nhosts; i++)
            fprintf(out, " %s", answer->hosts[i]);
        fprintf(out, " at level %d", answer->level);
    } else {
        fprintf(out, "%s", answer->state); /* the answer to a repeated submission: it may have ended */
    }
    if (fclose(out) != 0)
        must(NULL);
    clean = printable(text);
    fprintf(stderr, "%s\n", clean);
    free(clean);
    free(text);
}

static int submit(const struct request *request)
{
    struct elmer_error error = {{0}};
    struct elmer_submitted *answer;
    struct elmer *elmer = open_elmer();
    int result, code;

    if (!elmer)
        return EXIT_REFUSED;
    result = elmer_submit(elmer, &request->submission, ANSWER_MS, &answer, &error);
    if (result != ELMER_OK) {
        code = say_result(result, &error);
        elmer_close(elmer);
        return code;
    }
    if (request->wait)
        wait_catch_signals(answer->job);
    printf("%llu\n", (unsigned long long)answer->job);
    code = finish_output(EXIT_DONE);
    tell(answer);
    if (request->wait && code == EXIT_DONE)
        code = wait_for_job(elmer, answer->job);
    elmer_submitted_free(answer);
    elmer_close(elmer);
    return code;
}

int main(int argc, char **argv)
{
    struct request request = {.submission.umask = -1};
    int code;

    command_begin(&command);
    environment_init(&request.environment);
    code = parse(&request, argc, argv);
    request.submission.environment = (const char *const *)request.environment.items;
    if (code < 0)
        code = submit(&request);
    environment_fini(&request.environment);
    free(request.hosts);
    free(request.host_names);
    free(request.dir);
    return code;
}
