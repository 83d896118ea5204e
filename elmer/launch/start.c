/* start.c - the message that starts a process of a job: its command line, environment, files and processors. */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "elmer/launch/environment.h"
#include "elmer/launch/launcher.h"
#include "elmer/launch/paths.h"

enum { LAUNCHER_VARIABLES = 16 };

static struct wire_uints cpus_of(const struct launch *l, const struct launch_process *p, struct arena *memory)
{
    struct wire_uints cpus = {arena_array(memory, l->nprocs, sizeof(uint64_t)), 0};
    if (p->cpu >= 0)
        cpus.items[cpus.count++] = (uint64_t)p->cpu;
    for (uint32_t i = 0; p->cpu < 0 && i < l->nprocs; i++)
        if (l->processors[i].host == l->hosts[p->place])
            cpus.items[cpus.count++] = (uint64_t)l->processors[i].cpu;
    return cpus;
}

/* The queue host's own rsd has no TCP link, but the others see elmer there. */
const char *launch_address(const struct launch *l, int place)
{
    struct host_facts facts = hosts_facts(l->launches->hosts, l->hosts[place]);
    const char *address = facts.address;
    if (!*address && strcmp(facts.name, l->launches->settings->queue_host) == 0)
        for (int i = 0; i < l->nhosts && !*address; i++)
            address = hosts_local_address(l->launches->hosts, l->hosts[i]);
    return strncmp(address, "127.", 4) != 0 ? address : "";
}

/* An older one takes it for a variable that nobody has signed. */
static bool knows_address(const struct launch *l, int place)
{
    return hosts_minor(l->launches->hosts, l->hosts[place]) >= WIRE_ADDRESS_MINOR;
}

void launch_start(struct launch *l, const struct launch_process *p, struct arena *memory)
{
    const struct wire_submit *submit = job_submit(l->job);
    const char *items[LAUNCHER_VARIABLES];
    struct wire_strs variables = {items, LAUNCHER_VARIABLES};
    if (l->launcher->environment)
        l->launcher->environment(l, p, memory, &variables);
    else
        variables.count = 0;
    struct environment_facts facts = {.submit = submit,
                                      .job = l->job->id,
                                      .array = l->job->array,
                                      .index = l->index,
                                      .line = l->job->line,
                                      .rank = p->rank,
                                      .ranks = l->names,
                                      .mesh_rows = l->mesh_rows,
                                      .address = knows_address(l, p->place) ? launch_address(l, p->place) : "",
                                      .tmpdir = l->tmpdir,
                                      .reserved = l->launcher->reserved,
                                      .variables = variables};
    struct wire_message message = {.type = WIRE_start};
    struct wire_start *s = &message.u.start;
    s->job = l->job->id;
    s->attempt = l->attempt;
    s->process = p->number;
    s->role = role_name(p->role);
    s->argv = p->argv;
    s->environment = environment_build(&facts, memory);
    s->dir = submit->dir;
    s->output = p->output;
    s->errors = p->errors;
    s->capture = p->capture;
    s->umask = submit->umask;
    s->cpus = cpus_of(l, p, memory);
    launch_send(l, p->place, &message);
}

bool launch_files(struct launch *l, uint32_t rank, struct arena *memory, const char **output, const char **errors)
{
    const struct wire_submit *submit = job_submit(l->job);
    const char *pattern = *submit->output ? submit->output : l->launcher->output(l);
    struct path_facts facts = {.job = l->job->id,
                               .array = l->job->array ? l->job->array : l->job->id,
                               .index = l->job->array ? l->index : 0,
                               .user = l->job->user,
                               .name = submit->name,
                               .rank = rank};
    if (l->job->array && !*submit->output)
        pattern = submit->each ? PATH_DEFAULT_TASK_EACH : PATH_DEFAULT_TASK;
    *output = path_expand(memory, pattern, &facts);
    *errors = *submit->errors ? path_expand(memory, submit->errors, &facts) : *output;
    if (*output && *errors)
        return true;
    launch_fail(l, EVENT_LAUNCH_FAILED, REASON_START_FAILED,
                "the name of its output file is too long: give a shorter one with -o and -e");
    return false;
}

void launch_rank(struct launch *l, uint32_t rank)
{
    assert(rank < l->ranks && (l->state == LAUNCH_COMMAND || l->state == LAUNCH_LAUNCHED));
    struct arena memory = {0};
    struct launch_process p = {.number = rank,
                               .role = ROLE_COMMAND,
                               .place = launch_place(l, l->processors[rank].host),
                               .rank = rank,
                               .cpu = l->launcher->cpu(l, rank),
                               .argv = job_submit(l->job)->command,
                               .capture = rank == 0 && *job_submit(l->job)->terminal};
    if (launch_files(l, rank, &memory, &p.output, &p.errors))
        launch_start(l, &p, &memory);
    arena_fini(&memory);
}
