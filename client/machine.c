/* machine.c - esubmit -P and -p, as in 1995: the daemons of a PVM virtual machine, for a console or programs that are
 * started by hand.
 *
 * The job's command is elmer-machine (rsd/pvm/hold.c), which does nothing. The file of hosts is one of PVM's: a host in
 * each line, with options of PVM's own behind it, which are about how daemons are started and have no use here. */
#include "config.h"

#include "client/machine.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/job/variables.h"

enum { LINE_MAX_BYTES = 4096, HOSTS_MAX = 1024, START_MS = 60000, LOOK_MS = 100 };

static const char *const hold[] = {JOB_MACHINE, NULL};

/* ---- the file of hosts ---- */

/* The name in a line; NULL: it names none. '&': a host that is not to be there from the beginning; '*': options. */
static char *name_in(char *line, char *own, size_t size)
{
    char *name = line + strspn(line, " \t\r\n");

    name[strcspn(name, " \t\r\n")] = '\0';
    if (!*name || strchr("#*&$", *name))
        return NULL;
    if (strcmp(name, ".") != 0)
        return name;
    if (gethostname(own, size) < 0)
        return NULL;
    own[size - 1] = '\0';
    own[strcspn(own, ".")] = '\0';
    return own;
}

static bool known(const char **hosts, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(hosts[i], name) == 0)
            return true;
    return false;
}

/* Returns how many hosts, or -1: it has said what is wrong. */
static int read_hosts(struct machine *machine)
{
    FILE *file = fopen(machine->file, "re");
    char line[LINE_MAX_BYTES], own[256];
    size_t size, count = 0;
    FILE *text = must(open_memstream(&machine->text, &size));
    bool good = file != NULL;

    if (!file)
        say("-p %s: %m", machine->file);
    for (unsigned number = 1; good && fgets(line, sizeof(line), file); number++) {
        const char *name = name_in(line, own, sizeof(own));

        if (name && !str_valid_hostname(name)) {
            usage_error("-p %s: line %u: '%s' is no host name", machine->file, number, name);
            good = false;
        } else if (name) {
            fprintf(text, "%s\n", name);
            good = ++count <= HOSTS_MAX;
            if (!good)
                usage_error("-p %s: there are more than %d hosts", machine->file, HOSTS_MAX);
        }
    }
    if (good && ferror(file)) {
        say("-p %s: %m", machine->file);
        good = false;
    }
    if (file)
        fclose(file);
    if (fclose(text) != 0)
        must(NULL);
    if (good && count == 0)
        usage_error("-p %s: it names no host", machine->file);
    return good && count > 0 ? (int)count : -1;
}

/* Each once. */
static uint32_t take_hosts(struct machine *machine, int count)
{
    char *name, *rest = machine->text;
    uint32_t kept = 0;

    machine->hosts = must(calloc((size_t)count + 1, sizeof(*machine->hosts)));
    while ((name = strsep(&rest, "\n")))
        if (*name && !known(machine->hosts, kept, name))
            machine->hosts[kept++] = name;
    return kept;
}

void machine_fini(struct machine *machine)
{
    free(machine->text);
    free(machine->hosts);
}

/* ---- as a job ---- */

int machine_complete(struct machine *machine, struct elmer_submission *s, char *const *operands)
{
    uint32_t count;
    int found;

    if (operands[0])
        return usage_error("'%s': a virtual machine that -P or -p starts has no command; for one with a command there "
                           "is --pvm",
                           operands[0]);
    if (s->each || s->tasks || s->requeue)
        return usage_error("-P, -p: a virtual machine without a command has neither --each nor --array nor --requeue");
    if (machine->file) {
        if (s->hosts)
            return usage_error("-p and --hosts both name hosts: give one of them");
        found = read_hosts(machine);
        if (found < 0)
            return EXIT_USAGE;
        count = take_hosts(machine, found);
        s->hosts = machine->hosts;
        if (!s->nprocs) { /* a processor of each, as each of them had one in 1995 */
            s->nprocs = count;
            s->per_host = s->per_host ? s->per_host : 1;
        }
    }
    s->pvm = true;
    s->command = hold;
    if (!s->name)
        s->name = "pvm";
    return -1;
}

/* ---- how it is used ---- */

const char *machine_use(char *text, size_t size, const struct elmer_job *job)
{
    *text = '\0';
    if (job->ncommand == 1 && strcmp(job->command[0], JOB_MACHINE) == 0 && strcmp(job->state, "running") == 0)
        (void)snprintf(text, size, "export PVM_TMP=%s/jobs/%" PRIu64 ".%" PRIu32, ELMER_RSD_RUNDIR, job->id,
                       job->attempt);
    return text;
}

/* What it knows of the job; NULL: nothing more, and it is no failure of the submission. */
static struct elmer_jobs *look(struct elmer *elmer, uint64_t id)
{
    struct elmer_jobs *jobs = NULL;
    struct elmer_error error = {{0}};

    if (elmer_query(elmer, false, false, &id, 1, ANSWER_MS, &jobs, &error) != ELMER_OK || jobs->count != 1) {
        elmer_jobs_free(jobs);
        return NULL;
    }
    return jobs;
}

static void say_how(const struct elmer_job *job)
{
    char *hosts, use[MACHINE_USE];

    if (strcmp(job->state, "running") != 0) {
        char *reason = printable(job->reason);
        fprintf(stderr, "job %" PRIu64 " is %s%s%s\n", job->id, job->state, *reason ? ": " : "", reason);
        free(reason);
        return;
    }
    fprintf(stderr, "the virtual machine of job %" PRIu64 " is up; on", job->id);
    for (size_t i = 0; i < job->nhosts; i++) {
        hosts = printable(job->hosts[i]);
        fprintf(stderr, "%s %s", i > 0 && i + 1 == job->nhosts ? " or" : i > 0 ? "," : "", hosts);
        free(hosts);
    }
    fprintf(stderr, "\n    %s\n    pvm\nit ends with ekill %" PRIu64 ", or when it is halted (halt in pvm)\n",
            machine_use(use, sizeof(use), job), job->id);
}

void machine_tell(struct elmer *elmer, const struct elmer_submitted *submitted)
{
    int64_t deadline_ms = mono_ms(mono_now()) + START_MS;
    uint64_t id = submitted->job;
    struct elmer_jobs *jobs;

    if (strcmp(submitted->state, "queued") == 0 || strcmp(submitted->state, "held") == 0) {
        fprintf(stderr, "equery %" PRIu64 " says when it is up, and how it is used\n", id);
        return;
    }
    while ((jobs = look(elmer, id)) && strcmp(jobs->items[0].state, "starting") == 0 &&
           mono_ms(mono_now()) < deadline_ms) {
        elmer_jobs_free(jobs);
        poll(NULL, 0, LOOK_MS);
    }
    if (jobs)
        say_how(&jobs->items[0]);
    elmer_jobs_free(jobs);
}
