/* erun_plan.c - the command line of erun.
 *
 *   erun [-n N] [--host H | --rank R | --each] [--mpi=pmi1] COMMAND [ARG..]
 *   erun [options of ssh or rsh] [USER@]HOST [COMMAND [ARG..]]
 *
 * It is the second form if the first word that is no option is a host of the job, and none of the first form's options
 * was given. So `erun ws2 date` is ssh's, as every program that takes an ssh writes it, and `erun date` is a command.
 * Options of the first form behind the host would have no effect: they are refused, with what to write.
 */
#include "config.h"

#include "client/erun_plan.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/run/link.h"

enum { OWN_EXIT = 255, HOSTFILE_BYTES = 16 << 20 }; /* as ssh */

/* ---- the job ---- */

static bool no_job(const char *why)
{
    say("this is no process of a job (%s): erun starts processes of the job that it is in; see esubmit(1)", why);
    return false;
}

static bool split_hosts(struct erun_job *job, char separator)
{
    size_t count = 1;
    for (const char *c = job->text; *c; c++)
        count += *c == separator;
    job->hosts = must(calloc(count, sizeof(*job->hosts)));
    for (char *at = job->text; at && *at;) {
        char *end = strchr(at, separator);
        if (end)
            *end++ = 0;
        if (*at)
            job->hosts[job->nprocs++] = at;
        at = end;
    }
    return job->nprocs > 0 || no_job("it has no hosts");
}

bool erun_job_read(struct erun_job *job)
{
    const char *id = getenv("ELMER_JOB_ID"), *hosts = getenv("ELMER_HOSTS"), *file = getenv("ELMER_HOSTFILE");
    struct err err = ERR_INIT;
    *job = (struct erun_job){.id = 0};
    if (!id || !str_to_u64(id, &job->id) || job->id == 0)
        return no_job("ELMER_JOB_ID is not set");
    if (hosts) {
        job->text = must(strdup(hosts));
        return split_hosts(job, ':');
    }
    if (!file || file_read(-100, file, HOSTFILE_BYTES, &job->text, &err) < 0)
        return no_job(file ? err.text : "neither ELMER_HOSTS nor ELMER_HOSTFILE is set");
    return split_hosts(job, '\n');
}

void erun_job_fini(struct erun_job *job)
{
    free(job->hosts);
    free(job->text);
}

/* Its name in the job, which may be its first label here or there; NULL: it is no host of the job. */
static const char *host_of(const struct erun_job *job, const char *name)
{
    size_t label = strcspn(name, ".");
    const char *found = NULL;
    for (size_t i = 0; i < job->nprocs; i++)
        if (strcmp(job->hosts[i], name) == 0)
            return job->hosts[i];
    for (size_t i = 0; i < job->nprocs && !found; i++)
        if (strcspn(job->hosts[i], ".") == label && strncmp(job->hosts[i], name, label) == 0 &&
            (!name[label] || !job->hosts[i][label]))
            found = job->hosts[i];
    return found;
}

/* ---- options ---- */

/* Read in a way of their own: ssh has -n without a value, and what follows a host may be options again. */
enum { OPTION_HOST = OPTION_FIRST_FREE, OPTION_RANK, OPTION_EACH, OPTION_MPI, OPTION_PTY };
const struct option_row erun_options[] = {
    {'n', "nprocs", "N", "N processes, over the processors of the job in their order"},
    {OPTION_HOST, "host", "HOST", "on this host of the job"},
    {OPTION_RANK, "rank", "R", "on the processor with this number"},
    {OPTION_EACH, "each", NULL, "one process on each processor of the job"},
    {OPTION_MPI, "mpi", "KIND", "pmi1: the processes are ranks of an MPICH program"},
    {OPTION_PTY, "pty", NULL, "with a terminal of its own"},
    OPTION_ROWS_END,
};

struct options {
    const char *host;
    uint64_t number, rank;
    bool has_number, has_rank, each, mpi, pty, no_pty, no_input;
    const char *user;
    bool of_ssh, subsystem;
};

static bool is_own_user(const char *name)
{
    const struct passwd *entry = getpwuid(getuid());
    return entry && strcmp(entry->pw_name, name) == 0;
}

/* Those of ssh that say nothing here, and whether a value follows. */
static bool ignored_by_ssh(char letter, bool *value)
{
    *value = strchr("BbcDEeFIiJLmOoPpQRSWw", letter) != NULL;
    return letter && strchr("46AaCfGgKkMNqvXxYyBbcEeFIiJmoPpSw", letter);
}

static int wants(const char *option, const char *what)
{
    return usage_error("%s needs %s", option, what);
}

static bool number_of(const char *text, uint64_t *number)
{
    return text && str_to_u64(text, number);
}

/* Letters as ssh has them; -n with a number behind it is ours. */
static int letters(struct options *o, char **argv, int argc, int *at)
{
    const char *word = argv[*at];
    for (size_t i = 1; word[i]; i++) {
        const char *next = *at + 1 < argc ? argv[*at + 1] : NULL, *rest = word + i + 1;
        bool value = false;
        if (word[i] == 'n' && i == 1 && (*rest ? number_of(rest, &o->number) : number_of(next, &o->number))) {
            o->has_number = true;
            *at += !*rest;
            return -1;
        }
        if (word[i] == 'n') {
            o->no_input = o->of_ssh = true;
        } else if (word[i] == 't' || word[i] == 'T') {
            o->pty = word[i] == 't';
            o->no_pty = word[i] == 'T';
            o->of_ssh = true;
        } else if (word[i] == 's') {
            o->subsystem = o->of_ssh = true;
        } else if (word[i] == 'l') {
            o->user = *rest ? rest : next;
            *at += !*rest;
            o->of_ssh = true;
            return o->user ? -1 : wants("-l", "a user");
        } else if (ignored_by_ssh(word[i], &value)) {
            o->of_ssh = true;
            if (!value)
                continue;
            *at += !*rest;
            return *rest || next ? -1 : usage_error("-%c needs a value", word[i]);
        } else {
            return usage_error("there is no option -%c", word[i]);
        }
    }
    return -1;
}

/* The server of PMIx takes a daemon on each host, and a fence between them: Open MPI's own, which mpirun starts. */
static int take_mpi(struct options *o, const char *value)
{
    o->mpi = value && strcmp(value, "pmi1") == 0;
    if (o->mpi)
        return -1;
    if (value && strcmp(value, "pmix") == 0)
        return usage_error("--mpi=pmix: there is no such way; start programs of Open MPI with mpirun, which finds the "
                           "hosts of the job; see elmer-mpi(7)");
    return usage_error("--mpi takes pmi1, which is for programs of MPICH");
}

static int take(struct erun_plan *plan, struct options *o, const struct option_row *row, const char *value)
{
    switch (row->c) {
    case OPTION_HOST:
        o->host = value;
        return value ? -1 : wants("--host", "a host of the job");
    case OPTION_RANK:
        o->has_rank = number_of(value, &o->rank);
        return o->has_rank ? -1 : wants("--rank", "the number of a processor of the job, from 0");
    case 'n':
        o->has_number = number_of(value, &o->number);
        return o->has_number ? -1 : wants("--nprocs", "a number");
    case OPTION_EACH:
        o->each = true;
        return -1;
    case OPTION_MPI:
        return take_mpi(o, value);
    case OPTION_PTY:
        o->pty = true;
        return -1;
    default:
        *(row->c == 'h' ? &plan->help : &plan->version) = true;
        return -1;
    }
}

static int long_option(struct erun_plan *plan, struct options *o, char **argv, int argc, int *at)
{
    char *word = argv[*at], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
    const struct option_row *row = options_find(erun_options, word + 2, length - 2);
    if (!row || (equals && !row->value))
        return usage_error("there is no option %s", word);
    *at += row->value && !equals;
    return take(plan, o, row, equals ? equals + 1 : next);
}

/* From *at to the first word that is none; -1, or an exit status. */
static int options_read(struct erun_plan *plan, struct options *o, char **argv, int argc, int *at)
{
    for (; *at < argc && argv[*at][0] == '-' && argv[*at][1]; ++*at) {
        int result;
        if (strcmp(argv[*at], "--") == 0) {
            ++*at;
            return -1;
        }
        if (strcmp(argv[*at], "-h") == 0 || strcmp(argv[*at], "-V") == 0) {
            plan->help = argv[*at][1] == 'h';
            plan->version = argv[*at][1] == 'V';
            result = -1;
        } else {
            result = argv[*at][1] == '-' ? long_option(plan, o, argv, argc, at) : letters(o, argv, argc, at);
        }
        if (result >= 0)
            return result;
    }
    return -1;
}

/* ---- where ---- */

static struct erun_part *part_of(struct erun_plan *plan, const char *host, size_t most)
{
    for (size_t i = 0; i < plan->nparts; i++)
        if (strcmp(plan->parts[i].host, host) == 0)
            return &plan->parts[i];
    plan->parts = must(reallocarray(plan->parts, plan->nparts + 1, sizeof(*plan->parts)));
    plan->parts[plan->nparts] =
        (struct erun_part){.host = host, .ranks = must(calloc(most ? most : 1, sizeof(struct run_rank)))};
    return &plan->parts[plan->nparts++];
}

static void put(struct erun_plan *plan, const char *host, uint32_t rank, uint32_t cpu, size_t most)
{
    struct erun_part *part = part_of(plan, host, most);
    part->ranks[part->nranks++] = (struct run_rank){rank, cpu};
}

/* The how-manieth processor of its host the processor of that rank is. */
static uint32_t cpu_of(const struct erun_job *job, size_t rank)
{
    uint32_t cpu = 0;
    for (size_t i = 0; i < rank; i++)
        cpu += strcmp(job->hosts[i], job->hosts[rank]) == 0;
    return cpu;
}

static size_t count_on(const struct erun_job *job, const char *host)
{
    size_t count = 0;
    for (size_t i = 0; i < job->nprocs; i++)
        count += strcmp(job->hosts[i], host) == 0;
    return count;
}

/* Over the processors of the job in their order, or of one host; each to its own, if there are enough. 0: one on each.
 */
static void spread(struct erun_plan *plan, const struct erun_job *job, const char *host, size_t number)
{
    size_t there = host ? count_on(job, host) : job->nprocs;
    number = number ? number : there;
    for (size_t i = 0; i < number; i++) {
        const char *at = host ? host : job->hosts[i % there];
        uint32_t cpu = number > there ? (uint32_t)RUN_NO_CPU : host ? (uint32_t)i : cpu_of(job, i);
        put(plan, at, (uint32_t)i, cpu, number);
    }
    plan->total = (uint32_t)number;
}

static int place(struct erun_plan *plan, const struct erun_job *job, const struct options *o)
{
    const char *host = o->host ? host_of(job, o->host) : NULL;
    if ((o->host != NULL) + o->has_rank + o->each > 1)
        return usage_error("--host, --rank and --each exclude each other");
    if (o->has_number && (o->has_rank || o->each))
        return usage_error("-n says how many, and so does %s", o->each ? "--each" : "--rank");
    if (o->host && !host)
        return usage_error("%s is no host of job %llu", o->host, (unsigned long long)job->id);
    if (o->has_rank && o->rank >= job->nprocs)
        return usage_error("job %llu has processors 0 to %zu", (unsigned long long)job->id, job->nprocs - 1);
    if (o->has_number && (o->number == 0 || o->number > RUN_RANKS_MAX))
        return usage_error("-n takes 1 to %d", RUN_RANKS_MAX);
    if (o->mpi && (o->has_rank || o->pty))
        return usage_error("%s and --mpi exclude each other", o->pty ? "--pty" : "--rank");
    if (o->has_number || o->each || o->mpi) {
        spread(plan, job, host, o->has_number ? (size_t)o->number : 0);
    } else if (o->has_rank) {
        put(plan, job->hosts[o->rank], (uint32_t)o->rank, cpu_of(job, (size_t)o->rank), 1);
        plan->total = (uint32_t)job->nprocs;
    } else {
        put(plan, host ? host : job->hosts[0], 0, RUN_NO_CPU, 1);
    }
    return -1;
}

/* ---- all ---- */

/* What sshd's configuration says of it, on Debian and elsewhere. */
static int use_subsystem(struct erun_plan *plan, char **argv, int argc)
{
    if (argc != 1 || strcmp(argv[0], "sftp") != 0)
        return usage_error("-s: there is no subsystem %s, only sftp", argc > 0 ? argv[0] : "without a name");
    plan->line = must(strdup("exec sh -c 'for p in /usr/lib/openssh /usr/libexec/openssh /usr/lib/ssh; do "
                             "test -x $p/sftp-server && exec $p/sftp-server; done; "
                             "echo no sftp-server on this host: its package is openssh-sftp-server >&2; exit 127'"));
    plan->argc = 1;
    plan->argv = &plan->line;
    return -1;
}

/* As sshd has it: with blanks between, for a shell. */
static void join(struct erun_plan *plan, char **argv, int argc)
{
    size_t size;
    FILE *out = must(open_memstream(&plan->line, &size));
    for (int i = 0; i < argc; i++)
        fprintf(out, "%s%s", i ? " " : "", argv[i]);
    if (fclose(out) != 0)
        must(NULL);
    plan->argc = argc > 0;
    plan->argv = &plan->line;
}

/* As ssh has -n without a value, one with a number is ours here, too. */
static int refuse_own(const struct options *o, const char *host)
{
    char number[32] = "";
    if (o->host)
        return usage_error("%s is a host, and --host %s another: write erun --host %s COMMAND", host, o->host, o->host);
    if (o->each)
        return usage_error("%s says where, and so does --each: write erun --each COMMAND", host);
    if (o->has_rank)
        return usage_error("%s says where, and so does --rank: write erun --rank %llu COMMAND", host,
                           (unsigned long long)o->rank);
    if (o->has_number)
        snprintf(number, sizeof(number), " -n %llu", (unsigned long long)o->number);
    return usage_error("%s behind a host is no option of ssh: write erun%s%s --host %s COMMAND",
                       o->has_number ? number + 1 : "--mpi", o->mpi ? " --mpi=pmi1" : "", number, host);
}

static bool is_own(const struct options *o)
{
    return o->host || o->has_rank || o->each || o->has_number || o->mpi;
}

static int plan_ssh(struct erun_plan *plan, const struct erun_job *job, struct options *o, char **argv, int argc,
                    int at, bool terminal)
{
    char *host = strchr(argv[at], '@') ? strchr(argv[at], '@') + 1 : argv[at];
    int result;
    if (host != argv[at]) {
        host[-1] = 0;
        o->user = argv[at];
    }
    at++;
    result = options_read(plan, o, argv, argc, &at);
    if (result >= 0)
        return result;
    if (is_own(o))
        return refuse_own(o, host_of(job, host));
    if (o->user && !is_own_user(o->user))
        return usage_error("processes of a job run as its user: not as %s", o->user);
    plan->like_ssh = true;
    if (o->subsystem) {
        result = use_subsystem(plan, argv + at, argc - at);
        if (result >= 0)
            return result;
    } else {
        join(plan, argv + at, argc - at);
    }
    plan->pty = !o->no_pty && (o->pty || (plan->argc == 0 && terminal));
    put(plan, host_of(job, host), 0, RUN_NO_CPU, 1);
    return -1;
}

/* USER@HOST; the path of a command may have the character too. */
static const char *user_ends(const char *word)
{
    return strchr(word, '/') ? NULL : strchr(word, '@');
}

static bool names_host(const struct erun_job *job, const char *word)
{
    const char *at = user_ends(word);
    return host_of(job, at ? at + 1 : word) != NULL;
}

int erun_plan_read(struct erun_plan *plan, const struct erun_job *job, int argc, char **argv, bool terminal)
{
    struct options o = {.host = NULL};
    int at = 1, result;
    bool own;
    *plan = (struct erun_plan){.nparts = 0};
    result = options_read(plan, &o, argv, argc, &at);
    if (result >= 0 || plan->help || plan->version)
        return result;
    own = is_own(&o);
    if (at >= argc)
        return usage_error("there is no command");
    if (!own && names_host(job, argv[at])) {
        result = plan_ssh(plan, job, &o, argv, argc, at, terminal);
    } else if (!own && (o.of_ssh || user_ends(argv[at]))) {
        result = usage_error("%s is no host of job %llu", argv[at], (unsigned long long)job->id);
    } else {
        plan->argv = argv + at;
        plan->argc = (size_t)(argc - at);
        plan->pty = o.pty;
        plan->mpi = o.mpi;
        plan->bare = !own && plan->argc > 1 && !strchr(argv[at], '/');
        result = place(plan, job, &o);
        if (result < 0 && plan->pty && plan->total > 1 && !o.has_rank)
            result = usage_error("--pty is for one process");
    }
    plan->input = !o.no_input;
    return result;
}

void erun_plan_fini(struct erun_plan *plan)
{
    for (size_t i = 0; i < plan->nparts; i++)
        free(plan->parts[i].ranks);
    free(plan->parts);
    free(plan->line);
}
