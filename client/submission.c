/* submission.c - from words to a submission.
 *
 * The command line is read twice: first to find the command, which may be a script with options of its own, and then
 * over these. NPROCS is a first operand of digits only, whatever stands before or behind it; so a command line means
 * the same whatever files there are. */
#include "config.h"

#include "client/submission.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "client/hint.h"
#include "client/limits.h"
#include "lib/base/str.h"
#include "lib/job/tasks.h"

enum { NPROCS_MAX = 1000000 };

/* clang-format off */
enum { OPTION_HOSTS = OPTION_FIRST_FREE, OPTION_EACH, OPTION_PVM, OPTION_REQUEUE, OPTION_COMMENT, OPTION_MESH, OPTION_DRY_RUN,
       OPTION_CPU_TIME, OPTION_SIGNAL, OPTION_AFTER, OPTION_IF_NEVER, OPTION_SPIN, OPTION_POLL_SLEEP,
       OPTION_MAIL_AT, OPTION_NOTIFY, OPTION_ARRAY_FILE, OPTION_PER_HOST, OPTION_PTY, OPTION_KEEP, OPTION_DETACH };
/* clang-format on */
const struct option_row submission_options[] = {
    {'n', "nprocs", "N", "number of processors, as NPROCS"},
    {'J', "name", "NAME", "name of the job (default: the last part of COMMAND)"},
    {'a', "array", "TASKS",
     "an array of jobs, one for each index: 1-1000, 0-99:3, 1,4,7-9; %8\n"
     "behind it: 8 at a time. {} in COMMAND is the index (ELMER_ARRAY_INDEX)"},
    {OPTION_ARRAY_FILE, "array-file", "FILE[%N]",
     "an array of jobs, one for each line of FILE (-: standard input), N at a\n"
     "time. {} is the line, {1} {2} .. are its columns (ELMER_ARRAY_LINE)"},
    {'o', "output", "FILE",
     "standard output (default: elmer-%j.out, with --each\nelmer-%j.%r.out, of a task elmer-%A.%a.out)"},
    {'e', "error", "FILE",
     "standard error (default: the same file as standard output)\n"
     "in FILE: %j job id, %u user, %x job name, %r rank, %A array, %a index,\n"
     "%% percent sign"},
    {'D', "dir", "DIR", "working directory (default: the current one)"},
    {'v', "variable", "VAR[=VALUE]",
     "pass on a variable, or set it; may be repeated\n(without -v: PATH LANG LANGUAGE LC_* TZ)"},
    {OPTION_MESH, "mesh", "XxY", "on X * Y processors that are a mesh in a cube of hosts, like 4x6"},
    {OPTION_HOSTS, "hosts", "LIST", "only on these hosts, separated by commas"},
    {'P', "machine", "N",
     "a PVM virtual machine of N processors, without COMMAND: for a console or\nprograms that are started by hand"},
    {'p', "machine-hosts", "FILE", "the same on the hosts of FILE, a processor of each, or N with -P"},
    {OPTION_PER_HOST, "per-host", "N", "at most N processors of one host"},
    {'m', "memory", "SIZE", "on hosts that have so much memory left for each processor, like 4G;\nit gets no more"},
    {OPTION_EACH, "each", NULL, "run COMMAND on each processor, not once on the first"},
    {OPTION_PVM, "pvm", NULL, "give the job a PVM virtual machine of its own"},
    {OPTION_PTY, "pty", NULL, "COMMAND has a terminal, which is shown here; exit with the job's status"},
    {OPTION_KEEP, "keep", NULL, "that stays while nobody looks; eattach shows it again"},
    {OPTION_DETACH, "detach", NULL, "do not look at it now, print the job's id; with --keep"},
    {'t', "time", "TIME", "end it when it has run for so long, like 2h30m"},
    {OPTION_CPU_TIME, "cpu-time", "TIME", "end it when it has used so much CPU time, on all processors"},
    {OPTION_SIGNAL, "signal", "SIGNAL@SECONDS", "a signal to its processes so long before, like USR1@120"},
    {OPTION_REQUEUE, "requeue", "[=limit]",
     "run it again, from its beginning, if a host is lost;\n=limit: and if a limit has ended it"},
    {OPTION_AFTER, "after", "LIST",
     "wait for other jobs, like ok:41,any:42: ok ended well, fail ended in\n"
     "any other way, any ended, start has been started; may be repeated"},
    {OPTION_IF_NEVER, "if-never", "WHAT", "when that cannot happen any more: cancel the job (default), or keep\nit"},
    {OPTION_MAIL_AT, "mail-at", "LIST",
     "send mail at its begin, end, fail (several with commas); of an array\nonce for all"},
    {OPTION_NOTIFY, "notify", "COMMAND", "run this line of shell here when the job has ended, however"},
    {OPTION_SPIN, "spin", NULL,
     "its processes poll at full speed while they wait: nothing of that\nis left for later jobs"},
    {OPTION_POLL_SLEEP, "poll-sleep", "US", "the longest sleep of a process that polls, in microseconds (100)"},
    {OPTION_COMMENT, "comment", "TEXT", "a line that equery shows with the job, at most 200 bytes"},
    {OPTION_DRY_RUN, "dry-run", NULL, "say what would happen now, and why; nothing is submitted"},
    {'w', "wait", NULL, "wait, and exit with the job's status"},
    OPTION_ROWS_END,
};

/* ---- options ---- */

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
    while ((name = strsep(&rest, ","))) {
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

static bool set_nprocs(struct request *request, const char *text)
{
    uint64_t nprocs;

    if (!str_to_u64(text, &nprocs) || nprocs < 1 || nprocs > NPROCS_MAX) {
        usage_error("'%s' is no number of processors; give a whole number from 1 to %d", text, NPROCS_MAX);
        return false;
    }
    request->submission.nprocs = (uint32_t)nprocs;
    request->submission.mesh_rows = 0;
    return true;
}

/* Of this and --array-file the later one counts. */
static bool set_tasks(struct request *request, const char *text)
{
    static struct tasks tasks;
    char why[TASKS_WHY];

    if (tasks_parse(text, true, &tasks, why) < 0) {
        usage_error("-a: %s", why);
        return false;
    }
    request->submission.tasks = text;
    request->lines = NULL;
    return true;
}

/* when: NULL, or "limit". */
static bool set_requeue(struct elmer_submission *s, const char *when)
{
    if (when && strcmp(when, "limit") != 0) {
        usage_error("--requeue=%s: there are --requeue, for lost hosts, and --requeue=limit, for these and limits",
                    when);
        return false;
    }
    s->requeue = true;
    s->limit_requeue = s->limit_requeue || when;
    return true;
}

/* Limits, and what belongs to them, whichever line they came from. */
static int check_limits(const struct elmer_submission *s)
{
    uint64_t shortest = s->time_limit_ms;

    if (!shortest || (s->cpu_limit_ms && s->cpu_limit_ms < shortest))
        shortest = s->cpu_limit_ms;
    if (!shortest && s->warning_signal)
        return usage_error("--signal comes before a limit: give --time or --cpu-time");
    if (!shortest && s->limit_requeue)
        return usage_error("--requeue=limit: there is no limit; give --time or --cpu-time");
    if (s->warning_signal && s->warning_ms >= shortest)
        return usage_error("--signal: the signal would come before the job begins; the limit is %llu s",
                           (unsigned long long)(shortest / 1000));
    if (s->warning_signal && s->pvm)
        return usage_error("--signal does not go with --pvm: the daemons of the virtual machine would get it, too");
    return -1;
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
    case 'a':
        return set_tasks(request, optarg) ? -1 : EXIT_USAGE;
    case OPTION_ARRAY_FILE:
        s->tasks = NULL;
        request->lines = optarg;
        return -1;
    case 'v':
        return environment_add(&request->environment, optarg) ? -1 : EXIT_USAGE;
    case 'n':
        return set_nprocs(request, optarg) ? -1 : EXIT_USAGE;
    case 'P':
        request->machine.asked = true;
        return set_nprocs(request, optarg) ? -1 : EXIT_USAGE;
    case 'p':
        request->machine.asked = true;
        request->machine.file = optarg;
        return -1;
    case 'w':
        request->wait = true;
        return -1;
    case OPTION_HOSTS:
        return set_hosts(request, optarg) ? -1 : EXIT_USAGE;
    case OPTION_MESH:
        return limit_mesh(optarg, &s->mesh_rows, &s->nprocs) ? -1 : EXIT_USAGE;
    case OPTION_DRY_RUN:
        request->dry_run = true;
        return -1;
    case OPTION_EACH:
        s->each = true;
        return -1;
    case OPTION_PVM:
        s->pvm = true;
        return -1;
    case OPTION_PTY:
        request->pty.asked = true;
        return -1;
    case OPTION_KEEP:
        request->pty.keep = true;
        return -1;
    case OPTION_DETACH:
        request->pty.detach = true;
        return -1;
    case OPTION_REQUEUE:
        return set_requeue(s, optarg) ? -1 : EXIT_USAGE;
    case 't':
        return limit_time("--time", optarg, &s->time_limit_ms) ? -1 : EXIT_USAGE;
    case 'm':
        return limit_memory("-m", optarg, &s->memory_bytes) ? -1 : EXIT_USAGE;
    case OPTION_PER_HOST:
        return limit_per_host(optarg, &s->per_host) ? -1 : EXIT_USAGE;
    case OPTION_CPU_TIME:
        return limit_time("--cpu-time", optarg, &s->cpu_limit_ms) ? -1 : EXIT_USAGE;
    case OPTION_SIGNAL:
        return limit_signal(optarg, &s->warning_signal, &s->warning_ms) ? -1 : EXIT_USAGE;
    case OPTION_COMMENT:
        s->comment = optarg;
        return -1;
    case OPTION_SPIN:
        environment_set(&request->environment, "ELMER_SPIN", "1");
        return -1;
    case OPTION_POLL_SLEEP:
        if (!limit_poll_sleep(optarg))
            return EXIT_USAGE;
        environment_set(&request->environment, "ELMER_POLL_SLEEP", optarg); /* libelmer-yield.so reads it */
        return -1;
    case OPTION_MAIL_AT:
        return notices_mail_at(&request->notices, optarg) ? -1 : EXIT_USAGE;
    case OPTION_NOTIFY:
        return notices_command(&request->notices, optarg) ? -1 : EXIT_USAGE;
    case OPTION_AFTER:
        return after_add(&request->after, optarg) ? -1 : EXIT_USAGE;
    case OPTION_IF_NEVER:
        return after_if_never(optarg, &s->keep_never) ? -1 : EXIT_USAGE;
    default:
        return common_option(c, argv);
    }
}

/* What asks something of esubmit itself, not of the job. */
static bool only_typed(int c)
{
    return c == 'w' || c == 'P' || c == 'p' || c == OPTION_DRY_RUN || c == OPTION_PTY || c == OPTION_KEEP ||
           c == OPTION_DETACH || c == 'h' || c == 'V';
}

static int take_options(struct request *request, int argc, char **argv, bool typed)
{
    int c, at = 1, result = -1;

    optind = 0; /* from the beginning */
    for (; result < 0 && (c = options_next(argc, argv, "+", submission_options)) != -1; at = optind)
        result = typed || !only_typed(c) ? take_option(request, c, argv)
                                         : usage_error("'%s' is for the command line only", argv[at]);
    return result;
}

/* ---- the script's lines ---- */

static int take_directive(struct request *request, const struct directive *directive)
{
    char *place = must(str_format("%s:%u", request->script.place, directive->line));
    int result;

    say_where(place);
    result = take_options(request, directive->count, directive->words, false);
    if (result < 0 && optind < directive->count)
        result =
            usage_error("'%s' is no option; a line of a script that begins with #ELMER has only options, and values "
                        "with blanks in quotes",
                        directive->words[optind]);
    say_where(NULL);
    free(place);
    return result;
}

/* ---- operands ---- */

/* Digits only. */
static bool is_number(const char *word)
{
    return *word && strspn(word, "0123456789") == strlen(word);
}

/* What stands behind the options: NPROCS, perhaps another --, command. */
static int split_operands(int argc, char **argv, const char **nprocs, char ***command)
{
    *nprocs = NULL;
    if (optind < argc && is_number(argv[optind])) {
        *nprocs = argv[optind++];
        if (optind < argc && strcmp(argv[optind], "--") == 0)
            optind++;
        else if (optind < argc && argv[optind][0] == '-' && argv[optind][1])
            return usage_error("'%s' stands behind the number of processors, and options come before it: esubmit %s .. "
                               "%s COMMAND (a command of this name: esubmit %s -- %s)",
                               argv[optind], argv[optind], *nprocs, *nprocs, argv[optind]);
    }
    if (optind == argc && *nprocs)
        return usage_error("COMMAND is missing behind the number of processors (a program of the name %s: ./%s)",
                           *nprocs, *nprocs);
    if (optind == argc)
        return usage_error("COMMAND is missing");
    *command = &argv[optind];
    return -1;
}

/* The number of processors that stands before the command. */
static int take_nprocs(struct request *request, const char *word, const struct request *typed)
{
    const struct elmer_submission *s = &typed->submission;
    uint64_t nprocs;

    if (word && s->mesh_rows)
        return usage_error("with --mesh there is no number of processors before the command (a program of the name %s: "
                           "./%s)",
                           word, word);
    if (word && s->nprocs && (!str_to_u64(word, &nprocs) || nprocs != s->nprocs))
        return usage_error("the number of processors is given twice: -n %lu, and %s before the command",
                           (unsigned long)s->nprocs, word);
    if (word && !set_nprocs(request, word))
        return EXIT_USAGE;
    if (!request->submission.nprocs)
        request->submission.nprocs = 1;
    return -1;
}

static void begin(struct request *request)
{
    *request = (struct request){.submission.umask = -1};
    environment_init(&request->environment);
}

/* What the options have gathered. */
static int take_environment(struct request *request)
{
    int result = check_limits(&request->submission);

    request->submission.environment = (const char *const *)request->environment.items;
    request->submission.after = (const char *const *)request->after.items;
    request->submission.mail_at = request->notices.mail_at;
    request->submission.notify = request->notices.command;
    request->notices.environment = &request->environment;
    return result < 0 ? notices_check(&request->notices) : result;
}

/* A script is a file with a slash in its name, or one that PATH has. */
static int read_script(struct request *request, const struct request *typed, const char *command)
{
    if (strcmp(command, "-") == 0 && typed->pty.asked)
        return usage_error("--pty: standard input would be the script and what is typed; give the script as a file");
    if (strcmp(command, "-") == 0)
        return script_read_input(&request->script);
    request->found = hint_find(command, typed->dir, environment_get(&typed->environment, "PATH"));
    return script_read_file(&request->script, typed->dir, request->found ? request->found : command);
}

/* typed: what the command line alone says. */
static int take_all(struct request *request, const struct request *typed, int argc, char **argv, const char *nprocs,
                    char **command)
{
    struct script *script = &request->script;
    int result = read_script(request, typed, command[0]);

    for (size_t i = 0; result < 0 && i < script->ndirectives; i++)
        result = take_directive(request, &script->directives[i]);
    if (result < 0)
        result = take_options(request, argc, argv, true);
    if (result < 0)
        result = take_nprocs(request, nprocs, typed);
    if (result < 0)
        result = check_limits(&request->submission);
    if (result < 0)
        result = pty_take(&request->pty, &request->submission, &request->environment);
    if (result < 0 && request->lines && strcmp(request->lines, "-") == 0 && strcmp(command[0], "-") == 0)
        result = usage_error("--array-file -: standard input is the script; name a file of lines");
    if (result < 0 && request->lines)
        result = array_file_read(&request->array_file, request->lines);
    if (result >= 0)
        return result;
    request->submission.command = (const char *const *)command;
    if (!script->text)
        result = hint_command(command, request->dir, environment_get(&request->environment, "PATH"), nprocs != NULL);
    if (result >= 0)
        return result;
    hint_interpreter(command, request->dir);
    if (script->text) {
        request->submission.command = script_command(script, command + 1);
        environment_set(&request->environment, SCRIPT_VARIABLE, script->text);
        script_job_name(script, request->name);
        if (!request->submission.name)
            request->submission.name = request->name;
    }
    result = take_environment(request);
    if (result >= 0)
        return result;
    return request->lines ? array_file_use(&request->array_file, &request->submission) : -1;
}

/* Without a command. */
static int take_machine(struct request *request, int argc, char **argv)
{
    int result = take_options(request, argc, argv, true);

    if (result < 0 && (request->pty.asked || request->pty.keep || request->pty.detach || request->lines ||
                       request->submission.mesh_rows))
        return usage_error("-P, -p: a virtual machine without a command has neither --pty (nor --keep, --detach) nor "
                           "--array-file nor --mesh");
    if (result < 0)
        result = machine_complete(&request->machine, &request->submission, &argv[optind]);
    return result < 0 ? take_environment(request) : result;
}

int request_parse(struct request *request, int argc, char **argv)
{
    struct request typed;
    const char *nprocs = NULL;
    char **command = NULL;
    int result;

    begin(&typed);
    begin(request);
    result = take_options(&typed, argc, argv, true);
    if (result < 0 && typed.machine.asked)
        result = take_machine(request, argc, argv);
    else if (result < 0)
        result = split_operands(argc, argv, &nprocs, &command);
    if (result < 0 && !typed.machine.asked)
        result = take_all(request, &typed, argc, argv, nprocs, command);
    request_fini(&typed);
    return result;
}

void request_fini(struct request *request)
{
    environment_fini(&request->environment);
    script_fini(&request->script);
    after_fini(&request->after);
    notices_fini(&request->notices);
    array_file_fini(&request->array_file);
    machine_fini(&request->machine);
    free(request->hosts);
    free(request->host_names);
    free(request->found);
    free(request->dir);
}
