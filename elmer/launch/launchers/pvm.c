/* pvm.c - the command in a PVM virtual machine of the job's own.
 *
 * Normal: MASTER (master pvmd on the first host; its first line is its socket) -> AGENT (started) -> SLAVES (the agent
 * asks for a daemon on each of the other hosts: started there, the first line is the answer) -> pvm_ready -> RUNNING,
 * the command starts as it would without PVM -> the last rank has exited: FINISHING (the agent is told to drain the
 * tasks' output) -> agent and master have exited, or FINISH_MS -> the core gets that exit. Failures: a helper that
 * cannot be started ends the job with EVENT_LAUNCH_FAILED, as does an agent that gives up on the way; an agent or a
 * daemon that exits on the way with EVENT_ABORT; a daemon that dies by a signal also when the command has followed it
 * already. One that ends by itself while the command runs may have been halted by it, as programs do as their last act
 * (pvm_halt): HALTED, and only if the command has not ended within HALT_MS it is a failure; if it has, FINISHING gives
 * the death of a daemon VERDICT_MS to be told, because its sockets are closed, and noticed, before.
 *
 * Helpers: 0 the master, 1 the agent, and 1 + place the pvmd of each host but the first. */
#include "config.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "elmer/launch/launchers/launchers.h"
#include "lib/base/log.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "lib/job/variables.h"

enum { FINISH_MS = 2000, HALT_MS = 1000, VERDICT_MS = 200, MAX_SPAWN_WORDS = 64, PVM_LOG_BYTES = 1000000 };

enum pvm_state { PVM_MASTER, PVM_AGENT, PVM_SLAVES, PVM_RUNNING, PVM_HALTED, PVM_FINISHING, PVM_OVER, PVM_STATE_COUNT };
static const struct moves_row states[PVM_STATE_COUNT] = {
    [PVM_MASTER] = {"master", MOVE_TO(PVM_AGENT) | MOVE_TO(PVM_RUNNING) | MOVE_TO(PVM_OVER)}, /* RUNNING: resumed */
    [PVM_AGENT] = {"agent", MOVE_TO(PVM_SLAVES) | MOVE_TO(PVM_OVER)},
    [PVM_SLAVES] = {"slaves", MOVE_TO(PVM_RUNNING) | MOVE_TO(PVM_OVER)},
    [PVM_RUNNING] = {"running", MOVE_TO(PVM_HALTED) | MOVE_TO(PVM_FINISHING) | MOVE_TO(PVM_OVER)},
    [PVM_HALTED] = {"halted", MOVE_TO(PVM_FINISHING) | MOVE_TO(PVM_OVER)},
    [PVM_FINISHING] = {"finishing", MOVE_TO(PVM_OVER)},
    [PVM_OVER] = {"over", 0},
};

enum { MASTER, AGENT, SLAVES /* SLAVES + place - 1 */ };

struct slave {
    bool asked, answered;
    uint32_t request;
    char *command;
    const char *line; /* the answer; NULL: it failed */
};

struct pvm {
    enum pvm_state state;
    struct slave *slaves; /* [nhosts]; 0 is not used */
    const char *socket;   /* of the master; NULL: not known */
    bool agent_gone, master_gone;
    char halted[300]; /* HALTED: what has ended, should the command not follow */
};

static struct pvm *pvm_of(const struct launch *l)
{
    return l->own;
}

static void move(struct launch *l, enum pvm_state state)
{
    struct pvm *pvm = pvm_of(l);
    MOVES_CHECK("pvm", states, pvm->state, state);
    log_debug("job=%" PRIu64 " pvm %s -> %s", l->job->id, states[pvm->state].name, states[state].name);
    pvm->state = state;
}

static uint32_t slave_at(int place)
{
    return (uint32_t)(SLAVES + place - 1);
}

/* The slave of that helper, if the agent has asked for it and not been answered; else NULL. */
static struct slave *awaited_slave(const struct launch *l, uint64_t helper)
{
    if (helper < SLAVES)
        return NULL;
    struct slave *slave = &pvm_of(l)->slaves[helper - SLAVES + 1];
    return slave->asked && !slave->answered ? slave : NULL;
}

static int place_of_helper(const struct launch *l, uint64_t helper)
{
    if (helper < SLAVES)
        return 0;
    return helper - SLAVES + 1 < (uint64_t)l->nhosts ? (int)(helper - SLAVES + 1) : -1;
}

/* ---- starting helpers ---- */

static struct launch_process helper_process(const struct launch *l, uint32_t number, enum job_role role, int place,
                                            const char **argv, size_t count)
{
    return (struct launch_process){.number = l->nprocs + number,
                                   .role = role,
                                   .place = place,
                                   .cpu = -1,
                                   .argv = {argv, count},
                                   .output = "",
                                   .errors = "",
                                   .capture = role == ROLE_DAEMON};
}

static void start_master(struct launch *l)
{
    struct arena memory = {0};
    struct host_facts facts = hosts_facts(l->launches->hosts, l->hosts[0]);
    const char *address = launch_address(l, 0);
    const char **argv = arena_array(&memory, 2, sizeof(char *));
    argv[0] = "pvmd";
    /* With a loopback address for its own name a master cannot reach its slaves: then it must be told the address. */
    argv[1] = arena_format(&memory, "-n%s", l->nhosts > 1 && facts.name_loopback && *address ? address : facts.name);
    struct launch_process p = helper_process(l, MASTER, ROLE_DAEMON, 0, argv, 2);
    launch_start(l, &p, &memory);
    arena_fini(&memory);
}

static void start_agent(struct launch *l)
{
    struct arena memory = {0};
    const char **argv = arena_array(&memory, (size_t)l->nhosts + 3, sizeof(char *));
    size_t count = 0;
    argv[count++] = ELMER_LIBEXECDIR "/elmer-pvm-agent"; /* a host starts its own, wherever that is */
    argv[count++] = "--wd";
    argv[count++] = job_submit(l->job)->dir;
    for (int i = 1; i < l->nhosts; i++) {
        const char *address = launch_address(l, i);
        argv[count++] = *address ? arena_format(&memory, "%s=%s", launch_host(l, i), address) : launch_host(l, i);
    }
    struct launch_process p = helper_process(l, AGENT, ROLE_AGENT, 0, argv, count);
    if (launch_files(l, 0, &memory, &p.output, &p.errors))
        launch_start(l, &p, &memory);
    arena_fini(&memory);
}

/* The command is a line of words without quotes, made by the master: "pvmd -s -d0x0 -nws2 ...". */
static void start_slave(struct launch *l, int place)
{
    struct arena memory = {0};
    const char **argv = arena_array(&memory, MAX_SPAWN_WORDS + 2, sizeof(char *));
    size_t count = 0;
    char *rest = arena_strdup(&memory, pvm_of(l)->slaves[place].command);
    for (char *word; (word = strsep(&rest, " \t")) && count < MAX_SPAWN_WORDS;)
        if (*word)
            argv[count++] = word;
    argv[count++] = "-f"; /* stay our child */
    struct launch_process p = helper_process(l, slave_at(place), ROLE_DAEMON, place, argv, count);
    launch_start(l, &p, &memory);
    arena_fini(&memory);
}

static void environment(const struct launch *l, const struct launch_process *p, struct arena *memory,
                        struct wire_strs *list)
{
    const char *socket = pvm_of(l)->socket;
    size_t count = 0;
    list->items[count++] = arena_format(memory, "PVM_TMP=%s", l->tmpdir);
    list->items[count++] = arena_format(memory, "PVM_WD=%s", job_submit(l->job)->dir);
    list->items[count++] = "PVM_RSH=/bin/false"; /* nothing leaves the job's hosts, whatever happens to its hoster */
    list->items[count++] = arena_format(memory, "PVMDLOGMAX=%d", PVM_LOG_BYTES);
    if (socket && p->role != ROLE_DAEMON)
        list->items[count++] = arena_format(memory, "PVMSOCK=%s", socket);
    list->count = count;
}

/* ---- before the start ---- */

static void begin(struct launch *l)
{
    pvm_of(l)->slaves = arena_array(&l->memory, (size_t)l->nhosts, sizeof(struct slave));
    start_master(l);
}

static void resume(struct launch *l)
{
    pvm_of(l)->slaves = arena_array(&l->memory, (size_t)l->nhosts, sizeof(struct slave));
    move(l, PVM_RUNNING);
}

static void answer(struct launch *l, uint64_t request, const char *line)
{
    struct wire_message message = {.type = WIRE_pvm_spawned};
    message.u.pvm_spawned.job = l->job->id;
    message.u.pvm_spawned.attempt = l->attempt;
    message.u.pvm_spawned.request = request;
    message.u.pvm_spawned.line = line;
    launch_send(l, 0, &message);
}

/* The agent asks for a daemon. */
static void on_spawn(struct launch *l, const struct wire_pvm_spawn *spawn)
{
    struct pvm *pvm = pvm_of(l);
    int place = launch_place(l, core_host_by_name(engine_core(l->launches->room.engine), spawn->host));
    const char *command = spawn->command + strspn(spawn->command, " \t");
    if (place < 1) {
        answer(l, spawn->request, place < 0 ? "PvmNoHost" : "PvmDupHost");
    } else if (!*command || pvm->state != PVM_SLAVES) {
        answer(l, spawn->request, "PvmCantStart");
    } else if (pvm->slaves[place].asked && pvm->slaves[place].request != spawn->request) {
        answer(l, spawn->request, "PvmDupHost");
    } else if (!pvm->slaves[place].asked) {
        pvm->slaves[place] = (struct slave){
            .asked = true, .request = (uint32_t)spawn->request, .command = arena_strdup(&l->memory, command)};
        start_slave(l, place);
    } else if (pvm->slaves[place].line) {
        answer(l, spawn->request, pvm->slaves[place].line); /* the first has not come to it */
    }
}

static void on_started(struct launch *l, uint64_t helper)
{
    if (helper == AGENT && pvm_of(l)->state == PVM_AGENT)
        move(l, PVM_SLAVES);
}

static void on_start_failed(struct launch *l, uint64_t helper, const char *text)
{
    struct pvm *pvm = pvm_of(l);
    struct slave *slave = awaited_slave(l, helper);
    const char *host = launch_host(l, place_of_helper(l, helper));
    if (slave && pvm->state == PVM_SLAVES) {
        slave->answered = true;
        launch_fail(l, EVENT_LAUNCH_FAILED, REASON_HELPER_FAILED, "%s: its PVM daemon could not be started: %s", host,
                    text);
    } else if ((helper == MASTER && pvm->state == PVM_MASTER) || (helper == AGENT && pvm->state == PVM_AGENT)) {
        launch_fail(l, EVENT_LAUNCH_FAILED, REASON_HELPER_FAILED, "%s: its virtual machine could not be started: %s",
                    host, text);
    }
}

static void on_line(struct launch *l, uint64_t helper, const char *line)
{
    struct pvm *pvm = pvm_of(l);
    struct slave *slave = awaited_slave(l, helper);
    char text[300];
    if (slave) {
        slave->answered = true;
        slave->line = arena_strdup(&l->memory, line);
        answer(l, slave->request, line);
    } else if (helper == MASTER && pvm->state == PVM_MASTER && *line != '/') {
        launch_fail(l, EVENT_LAUNCH_FAILED, REASON_HELPER_FAILED,
                    "%s: its PVM daemon said \"%s\" instead of the name of its socket", launch_host(l, 0),
                    str_printable(text, sizeof(text), line, strlen(line)));
    } else if (helper == MASTER && pvm->state == PVM_MASTER) {
        pvm->socket = arena_strdup(&l->memory, line);
        move(l, PVM_AGENT);
        start_agent(l);
    }
}

static void on_message(struct launch *l, int place, const struct wire_message *message)
{
    struct pvm *pvm = pvm_of(l);
    if (place != 0)
        return; /* the agent lives on the first host */
    if (message->type == WIRE_pvm_spawn) {
        on_spawn(l, &message->u.pvm_spawn);
    } else if (message->type == WIRE_pvm_ready && pvm->state == PVM_SLAVES) {
        move(l, PVM_RUNNING);
        launch_command(l);
    } else if (message->type == WIRE_pvm_failed && pvm->state != PVM_OVER && pvm->state != PVM_FINISHING) {
        launch_fail(l, l->state < LAUNCH_LAUNCHED ? EVENT_LAUNCH_FAILED : EVENT_ABORT, REASON_HELPER_FAILED,
                    "its virtual machine failed: %s", message->u.pvm_failed.reason);
    }
}

static void host_up(struct launch *l, int place)
{
    struct pvm *pvm = pvm_of(l);
    if (pvm->state == PVM_MASTER && place == 0)
        start_master(l);
    else if ((pvm->state == PVM_AGENT || pvm->state == PVM_SLAVES) && place == 0)
        start_agent(l); /* if it has started, what it has asked for and not been answered is said again */
    else if (pvm->state == PVM_SLAVES && place > 0 && awaited_slave(l, slave_at(place)))
        start_slave(l, place);
}

/* ---- the command, which starts as it would without PVM ---- */

static const struct launcher *launcher_of_command(const struct launch *l)
{
    return job_submit(l->job)->each ? &launcher_each : &launcher_plain;
}

static int cpu(const struct launch *l, uint32_t rank)
{
    return launcher_of_command(l)->cpu(l, rank);
}

static const char *output(const struct launch *l)
{
    return launcher_of_command(l)->output(l);
}

/* ---- the end ---- */

static int64_t last_exit(struct launch *l)
{
    struct pvm *pvm = pvm_of(l);
    struct wire_message message = {.type = WIRE_pvm_finish, .u.pvm_finish = {.job = l->job->id, .attempt = l->attempt}};
    bool halted = pvm->state == PVM_HALTED;
    if (halted && pvm->agent_gone && pvm->master_gone)
        return 0;
    move(l, PVM_FINISHING);
    if (halted) /* by a daemon's death, which takes longer to be told than its sockets take to be closed? */
        return VERDICT_MS;
    launch_send(l, 0, &message);
    return FINISH_MS;
}

static void time_up(struct launch *l)
{
    struct pvm *pvm = pvm_of(l);
    if (pvm->state == PVM_HALTED) {
        launch_fail(l, EVENT_ABORT, REASON_HELPER_FAILED, "%s, and without it the job's virtual machine is gone",
                    pvm->halted);
        return;
    }
    if (!pvm->agent_gone)
        log_info("job=%" PRIu64 " its agent has not ended in time", l->job->id);
    launch_release(l);
}

static void over(struct launch *l)
{
    move(l, PVM_OVER);
}

static bool stops(int64_t signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static const char *how(const struct wire_exited *exited, char *text, size_t size)
{
    if (stops(exited->signal))
        snprintf(text, size, "was stopped by signal %d", (int)exited->signal);
    else if (exited->signal > 0)
        snprintf(text, size, "ended by signal %d", (int)exited->signal);
    else
        snprintf(text, size, "ended with status %d", (int)exited->exit_status);
    return text;
}

static void exited_in_finish(struct launch *l, uint64_t helper)
{
    struct pvm *pvm = pvm_of(l);
    if (pvm->agent_gone && pvm->master_gone)
        launch_release(l);
    else if (helper == AGENT) /* its output is there; how the master ends says whether the command ended of that */
        launch_wait(l, VERDICT_MS);
}

static void on_exited(struct launch *l, uint64_t helper, const struct wire_exited *exited)
{
    struct pvm *pvm = pvm_of(l);
    char text[60];
    const char *host = launch_host(l, place_of_helper(l, helper));
    const char *who = helper == AGENT ? "the agent of its virtual machine" : "its PVM daemon";
    bool by_itself = exited->signal <= 0;
    pvm->agent_gone |= helper == AGENT;
    pvm->master_gone |= helper == MASTER;
    how(exited, text, sizeof(text));
    if (pvm->state == PVM_FINISHING && (helper == AGENT || by_itself)) {
        exited_in_finish(l, helper);
    } else if (pvm->state == PVM_RUNNING && l->state == LAUNCH_LAUNCHED && by_itself) {
        snprintf(pvm->halted, sizeof(pvm->halted), "%s: %s %s", host, who, text);
        move(l, PVM_HALTED);
        launch_wait(l, HALT_MS);
    } else if (pvm->state != PVM_HALTED || !by_itself) {
        launch_fail(l, EVENT_ABORT, REASON_HELPER_FAILED,
                    "%s: %s %s, and without it the job's virtual machine is gone%s", host, who, text,
                    pvm->state == PVM_MASTER ? "; does the host know its own name and address?" : "");
    }
}

static const char *const reserved[] = {JOB_VARIABLES_PVM, JOB_VARIABLES_PVM_UNSET, NULL};

const struct launcher launcher_pvm = {
    .name = "pvm",
    .failed = REASON_HELPER_FAILED,
    .own_size = sizeof(struct pvm),
    .reserved = reserved,
    .begin = begin,
    .resume = resume,
    .cpu = cpu,
    .output = output,
    .environment = environment,
    .place = place_of_helper,
    .started = on_started,
    .start_failed = on_start_failed,
    .line = on_line,
    .exited = on_exited,
    .message = on_message,
    .host_up = host_up,
    .last_exit = last_exit,
    .time = time_up,
    .over = over,
};
