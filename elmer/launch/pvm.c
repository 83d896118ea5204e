/* pvm.c - the helpers of a job with PVM: what master, agent and slaves are started with. When is in launch.c. */
#include "config.h"

#include "elmer/launch/internal.h"

#include <string.h>

enum { MAX_SPAWN_WORDS = 64 };

/* The address of a job's host as the others see it; the queue host's own rsd has no TCP link, but the others see elmer
 * there. */
static const char *address_of(const struct launch *l, int place)
{
    struct host_facts facts = hosts_facts(l->launches->hosts, l->hosts[place]);
    const char *address = facts.address;
    if (!*address && !strcmp(facts.name, l->launches->settings->queue_host))
        for (int i = 0; i < l->nhosts && !*address; i++)
            address = hosts_local_address(l->launches->hosts, l->hosts[i]);
    return strncmp(address, "127.", 4) ? address : "";
}

void pvm_start_master(struct launch *l)
{
    struct arena memory = {0};
    struct host_facts facts = hosts_facts(l->launches->hosts, l->hosts[0]);
    const char *address = address_of(l, 0);
    const char **argv = arena_array(&memory, 2, sizeof(char *));
    argv[0] = "pvmd";
    /* With a loopback address for its own name a master cannot reach its slaves: then it must be told the address. */
    argv[1] = arena_format(&memory, "-n%s", l->nhosts > 1 && facts.name_loopback && *address ? address : facts.name);
    struct process p = {
        .number = pvm_master(l), .role = "pvmd", .argv = {argv, 2}, .output = "", .errors = "", .capture = true};
    launch_start(l, &p, &memory);
    arena_fini(&memory);
}

void pvm_start_agent(struct launch *l)
{
    struct arena memory = {0};
    const char **argv = arena_array(&memory, (size_t)l->nhosts + 3, sizeof(char *));
    size_t count = 0;
    argv[count++] = ELMER_LIBEXECDIR "/elmer-pvm-agent"; /* a host starts its own, wherever that is */
    argv[count++] = "--wd";
    argv[count++] = job_submit(l->job)->dir;
    for (int i = 1; i < l->nhosts; i++) {
        const char *address = address_of(l, i);
        argv[count++] = *address ? arena_format(&memory, "%s=%s", launch_host(l, i), address) : launch_host(l, i);
    }
    struct process p = {.number = pvm_agent(l), .role = "agent", .argv = {argv, count}, .pvmsock = l->pvmsock};
    if (launch_files(l, 0, &memory, &p.output, &p.errors))
        launch_start(l, &p, &memory);
    arena_fini(&memory);
}

void pvm_spawned(struct launch *l, uint32_t request, const char *line)
{
    struct wire_message message = {.type = WIRE_pvm_spawned};
    message.u.pvm_spawned.job = l->job->id;
    message.u.pvm_spawned.attempt = l->attempt;
    message.u.pvm_spawned.request = request;
    message.u.pvm_spawned.line = line;
    hosts_send(l->launches->hosts, l->hosts[0], &message);
}

/* The command is a line of words without quotes, made by the master: "pvmd -s -d0x0 -nws2 ...". */
void pvm_start_slave(struct launch *l, int place)
{
    struct arena memory = {0};
    struct slave *slave = &l->slaves[place];
    const char **argv = arena_array(&memory, MAX_SPAWN_WORDS + 2, sizeof(char *));
    size_t count = 0;
    char *rest = arena_strdup(&memory, slave->command);
    for (char *word; (word = strsep(&rest, " \t")) && count < MAX_SPAWN_WORDS;)
        if (*word)
            argv[count++] = word;
    argv[count++] = "-f"; /* stay our child */
    struct process p = {.number = pvm_slave(l, place),
                        .role = "pvmd",
                        .place = place,
                        .argv = {argv, count},
                        .output = "",
                        .errors = "",
                        .capture = true};
    launch_start(l, &p, &memory);
    arena_fini(&memory);
}

void pvm_spawn(struct launch *l, const struct wire_pvm_spawn *spawn)
{
    int place = launch_place(l, core_host_by_name(engine_core(l->launches->room.engine), spawn->host));
    const char *command = spawn->command + strspn(spawn->command, " \t");
    if (place < 1) {
        pvm_spawned(l, (uint32_t)spawn->request, place < 0 ? "PvmNoHost" : "PvmDupHost");
    } else if (!*command || l->state != LAUNCH_SLAVES) {
        pvm_spawned(l, (uint32_t)spawn->request, "PvmCantStart");
    } else if (l->slaves[place].asked && l->slaves[place].request != spawn->request) {
        pvm_spawned(l, (uint32_t)spawn->request, "PvmDupHost");
    } else if (!l->slaves[place].asked) {
        l->slaves[place] = (struct slave){
            .asked = true, .request = (uint32_t)spawn->request, .command = arena_strdup(&l->memory, command)};
        pvm_start_slave(l, place);
    }
}

bool pvm_everywhere(struct launch *l)
{
    for (int i = 0; i < l->nhosts; i++) {
        if (hosts_facts(l->launches->hosts, l->hosts[i]).pvm)
            continue;
        launch_fail(l, EVENT_LAUNCH_FAILED, REASON_PVM_FAILED,
                    "host %s has no PVM: install it there, or leave the host out with --hosts", launch_host(l, i));
        return false;
    }
    return true;
}
