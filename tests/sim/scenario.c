/* scenario.c - named scenarios: a readable script is played in a world without faults and chance, and what happens is
 * told as a timeline, which is compared with a golden text beside the script.
 *
 * One command a line, 10 ms apart; '#' begins a comment, which is repeated in the timeline:
 *   levels D | allocator NAME | settle MS | fresh MS | start-timeout MS | user-running N | lease MS | gather MS
 *                                       before hosts
 *   hosts NAME:CPUS...                  they are up at once
 *   verbose                             tell the actions for hosts too
 *   submit JOB N [each] [by UID] [requeue] [keep] [after KIND JOB].. [on HOST...]    kill|hold|release|cancel|top JOB
 *   exit JOB [rank N] [status N | signal N]
 *   drain|undrain HOST    off|cut HOST [given up after MS]    up HOST
 *   half HOST MS          its link is cut and given up after MS, and it does not notice
 *   suspect HOST MS       says nothing for so long
 *   slow HOST RATE        its clock, in 1/1000
 *   slow-launches         it takes two seconds until it is heard that a job's processes have been started
 *   restart               elmer ends and begins again; hosts must link again (up)
 *   deaf|hears HOST       does not answer OPEN, does again
 *   lose HOST             the supervisor of its first group is killed
 *   stubborn|yields HOST  its groups do not end, do again
 *   report HOST BUSY... [of-jobs SHARE...]   in percent, one for each CPU, of the last 2 s
 *   wait MS               table           levels, queue             set allocator|policy VALUE|default
 */
#include "tests/sim/telling.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- commands ---- */

static const char *word(const struct play *play, int i)
{
    return i < play->nwords ? play->words[i] : "";
}

static bool is(const struct play *play, int i, const char *text)
{
    return strcmp(word(play, i), text) == 0;
}

static int number(struct play *play, int i)
{
    char *end;
    long n = strtol(word(play, i), &end, 10);

    if (word(play, i)[0] == '\0' || *end != '\0' || n < 0 || n > 1000000) {
        play->error = "a number is missing";
        return 0;
    }
    return (int)n;
}

static int host_of(struct play *play, int i)
{
    for (int h = 0; h < play->world.nhosts; h++)
        if (strcmp(play->world.hosts[h].name, word(play, i)) == 0)
            return h;
    play->error = "no such host";
    return 0;
}

static uint64_t job_of(struct play *play, int i)
{
    for (uint64_t id = 1; id <= MAX_JOBS; id++)
        if (play->names[id - 1][0] != '\0' && strcmp(play->names[id - 1], word(play, i)) == 0)
            return id;
    play->error = "no such job";
    return 0;
}

static void set_option(struct play *play)
{
    struct core_options *options = &play->options;

    if (play->begun)
        play->error = "options come before hosts";
    else if (is(play, 0, "levels"))
        options->levels = number(play, 1);
    else if (is(play, 0, "settle"))
        options->settle_ms = number(play, 1);
    else if (is(play, 0, "fresh"))
        options->fresh_ms = number(play, 1);
    else if (is(play, 0, "lease"))
        options->lease_ms = number(play, 1);
    else if (is(play, 0, "gather"))
        options->gather_ms = number(play, 1);
    else if (is(play, 0, "start-timeout"))
        options->start_timeout_ms = number(play, 1);
    else if (is(play, 0, "user-running"))
        options->user_running = (uint32_t)number(play, 1);
    else /* -1, of an unknown name, is out of range */
        options->allocator = (enum core_allocator)core_allocator_by_name(word(play, 1));
}

static void set(struct play *play)
{
    play->error = world_set(&play->world, word(play, 1), word(play, 2)) ? NULL : "no such setting or value";
}

static void configure(struct play *play)
{
    struct core_options options = play->world.configured;

    if (is(play, 1, "levels"))
        options.levels = (int)number(play, 2);
    else if (is(play, 1, "user-running"))
        options.user_running = (uint32_t)number(play, 2);
    else
        play->error = "levels or user-running";
    if (options.levels > play->options.levels)
        play->options.levels = options.levels; /* of the table */
    if (!play->error)
        world_configure(&play->world, &options);
}

static void retire(struct play *play)
{
    world_retire(&play->world, host_of(play, 1));
}

static void add_host(struct play *play)
{
    world_host_add(&play->world, word(play, 1), (int)number(play, 2), is(play, 3, "joined"));
}

static void begin(struct play *play)
{
    char name[16];
    int cpus;

    if (world_init(&play->world, &play->options, 1, &play->coverage) != 0) {
        play->error = "the options are out of range";
        return;
    }
    play->begun = true;
    play->world.user = play;
    play->world.keep_ended = true;
    play->world.on_change = telling_change;
    play->world.on_action = telling_action;
    play->world.on_lapse = telling_lapse;
    for (int i = 1; i < play->nwords; i++) {
        if (sscanf(play->words[i], "%15[^:]:%d", name, &cpus) != 2 || cpus < 1 || cpus > SIM_CPUS) {
            play->error = "NAME:CPUS is needed";
            return;
        }
        world_add_host(&play->world, name, cpus, 0);
    }
    for (int h = 0; h < play->world.nhosts; h++)
        world_connect(&play->world, h);
}

static void submit(struct play *play)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1};
    struct core_after after[SIM_AFTER];
    int hosts[SIM_HOSTS], n = 0, i = 3;
    uint64_t next = core_next_id(play->world.core);
    const struct core_job *job;

    event.u.submit.uid = 1;
    event.u.submit.nprocs = (uint32_t)number(play, 2);
    if (next > MAX_JOBS) {
        play->error = "too many jobs";
        return;
    }
    if (is(play, i, "each")) {
        event.u.submit.each = true;
        i++;
    }
    if (is(play, i, "by")) {
        event.u.submit.uid = (uint32_t)number(play, i + 1);
        i += 2;
    }
    if (is(play, i, "requeue")) {
        event.u.submit.requeue = true;
        i++;
    }
    if (is(play, i, "keep")) {
        event.u.submit.keep_never = true;
        i++;
    }
    for (; is(play, i, "after") && event.u.submit.nafter < SIM_AFTER; i += 3)
        after[event.u.submit.nafter++] = world_after(&play->world, word(play, i + 1), job_of(play, i + 2));
    event.u.submit.after = after;
    if (is(play, i, "on"))
        while (++i < play->nwords && n < SIM_HOSTS)
            hosts[n++] = host_of(play, i);
    event.u.submit.hosts = n > 0 ? hosts : NULL;
    event.u.submit.nhosts = n;
    snprintf(play->names[next - 1], sizeof(play->names[0]), "%s", word(play, 1));
    world_step(&play->world, &event);
    job = core_job(play->world.core, next);
    if (!job)
        play->names[next - 1][0] = '\0';
    else if (job->state == JOB_QUEUED)
        fprintf(play->out, "%7" PRId64 "    %s waits, %u ahead (%s)\n", play->world.now_ms, word(play, 1), job->ahead,
                reason_name(job->reason));
}

static void client(struct play *play)
{
    struct event event = {.type = is(play, 0, "kill")      ? EVENT_KILL
                                  : is(play, 0, "hold")    ? EVENT_HOLD
                                  : is(play, 0, "release") ? EVENT_RELEASE
                                  : is(play, 0, "top")     ? EVENT_TOP
                                                           : EVENT_CANCEL};

    event.host = -1;
    event.job = job_of(play, 1);
    event.u.by.uid = 1;
    event.u.by.admin = true;
    world_step(&play->world, &event);
}

static void end_process(struct play *play)
{
    int status = 0, signal = 0;
    uint32_t rank = 0;

    for (int i = 2; i < play->nwords; i += 2) {
        if (is(play, i, "rank"))
            rank = (uint32_t)number(play, i + 1);
        else if (is(play, i, "status"))
            status = number(play, i + 1);
        else if (is(play, i, "signal"))
            signal = number(play, i + 1);
        else
            play->error = "rank, status or signal";
    }
    world_end_process(&play->world, job_of(play, 1), rank, signal != 0 ? -1 : status, signal);
}

static void host_command(struct play *play)
{
    struct world *world = &play->world;
    int h = host_of(play, 1);
    struct event event = {.type = is(play, 0, "drain") ? EVENT_DRAIN : EVENT_UNDRAIN, .host = h};
    int64_t given_up = play->nwords > 2 ? number(play, 2) : -1;

    if (is(play, 0, "drain") || is(play, 0, "undrain"))
        world_step(world, &event);
    else if (is(play, 0, "off"))
        world_power_off(world, h, given_up);
    else if (is(play, 0, "cut"))
        world_cut(world, h, given_up);
    else if (is(play, 0, "half"))
        world_cut_half(world, h, given_up);
    else if (is(play, 0, "suspect"))
        world_suspect(world, h, given_up);
    else if (is(play, 0, "slow"))
        world->hosts[h].rate = number(play, 2);
    else if (is(play, 0, "up"))
        world_connect(world, h);
    else if (is(play, 0, "deaf") || is(play, 0, "hears"))
        world->hosts[h].deaf = is(play, 0, "deaf");
    else
        world->hosts[h].stubborn = is(play, 0, "stubborn");
}

static void report(struct play *play)
{
    double busy[SIM_CPUS] = {0}, jobs[SIM_CPUS] = {0};
    int h = host_of(play, 1), n = play->world.hosts[h].ncpus;

    for (int i = 0; i < n; i++)
        busy[i] = number(play, 2 + i) / 100.0;
    if (is(play, 2 + n, "of-jobs"))
        for (int i = 0; i < n; i++)
            jobs[i] = number(play, 3 + n + i) / 100.0;
    world_report(&play->world, h, busy, jobs, 2000);
}

static void lose_group(struct play *play)
{
    int h = host_of(play, 1);

    if (play->world.hosts[h].ngroups > 0)
        world_lose_group(&play->world, h, 0);
    else
        play->error = "it has none";
}

static void restart(struct play *play)
{
    world_restart_core(&play->world);
}

static void slow_launches(struct play *play)
{
    play->world.faults.late_launched = 1000;
}

static void wait_for(struct play *play)
{
    world_run_until(&play->world, play->world.now_ms + number(play, 1) - STEP_MS);
}

static void make_verbose(struct play *play)
{
    play->verbose = true;
}

static const struct {
    const char *name;
    void (*command)(struct play *play);
    bool before_hosts;
} commands[] = {
    {"levels", set_option, true},
    {"allocator", set_option, true},
    {"settle", set_option, true},
    {"fresh", set_option, true},
    {"start-timeout", set_option, true},
    {"user-running", set_option, true},
    {"lease", set_option, true},
    {"gather", set_option, true},
    {"hosts", begin, true},
    {"verbose", make_verbose, true},
    {"submit", submit, false},
    {"kill", client, false},
    {"hold", client, false},
    {"release", client, false},
    {"cancel", client, false},
    {"top", client, false},
    {"exit", end_process, false},
    {"drain", host_command, false},
    {"undrain", host_command, false},
    {"set", set, false},
    {"configure", configure, false},
    {"retire", retire, false},
    {"add", add_host, false},
    {"off", host_command, false},
    {"cut", host_command, false},
    {"up", host_command, false},
    {"deaf", host_command, false},
    {"hears", host_command, false},
    {"stubborn", host_command, false},
    {"yields", host_command, false},
    {"report", report, false},
    {"lose", lose_group, false},
    {"half", host_command, false},
    {"suspect", host_command, false},
    {"slow", host_command, false},
    {"slow-launches", slow_launches, false},
    {"restart", restart, false},
    {"wait", wait_for, false},
    {"table", telling_table, false},
};

static void run_command(struct play *play)
{
    static const char *const answers[] = {"",
                                          "refused: more processors than exist",
                                          "refused: more processors than its hosts have",
                                          "no such job",
                                          "wrong state",
                                          "not permitted",
                                          "too many"};

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!is(play, 0, commands[i].name))
            continue;
        if (!play->begun && !commands[i].before_hosts) {
            play->error = "hosts come first";
            return;
        }
        play->world.answer = ANSWER_OK;
        commands[i].command(play);
        if (play->begun && play->world.answer != ANSWER_OK)
            fprintf(play->out, "%7" PRId64 "    %s\n", play->world.now_ms, answers[play->world.answer]);
        return;
    }
    play->error = "no such command";
}

static void split(struct play *play, char *line)
{
    char *rest = line, *token;

    play->nwords = 0;
    while ((token = strsep(&rest, " \n")) && play->nwords < MAX_WORDS)
        if (token[0] != '\0')
            play->words[play->nwords++] = token;
}

static void run_line(struct play *play, char *line)
{
    if (line[0] == '#') {
        fputs(line, play->out);
        return;
    }
    if (line[strspn(line, " \n")] == '\0') {
        fputs("\n", play->out);
        return;
    }
    if (play->begun && strncmp(line, "table", 5) != 0)
        fprintf(play->out, "%7" PRId64 "  %s", play->world.now_ms, line);
    split(play, line);
    run_command(play);
    if (play->begun && !is(play, 0, "table"))
        world_run_until(&play->world, play->world.now_ms + STEP_MS);
    if (play->begun && world_failed(&play->world))
        play->error = play->world.error;
}

/* Plays the script into out. Returns 0, or -1 with the error told. */
static int play_script(const char *path, FILE *out)
{
    struct play *play = calloc(1, sizeof(*play));
    FILE *script = fopen(path, "r");
    char line[512];
    int n = 0, result;

    if (!play || !script) {
        fprintf(out, "%s: cannot be read\n", path);
        free(play);
        if (script)
            fclose(script);
        return -1;
    }
    core_options_default(&play->options);
    play->options.allocator = ALLOCATOR_V1;
    play->out = out;
    while (!play->error && fgets(line, sizeof(line), script)) {
        n++;
        run_line(play, line);
    }
    if (play->error)
        fprintf(out, "line %d: %s\n", n, play->error);
    result = !play->error ? 0 : -1;
    if (play->begun)
        world_fini(&play->world);
    fclose(script);
    free(play);
    return result;
}

/* ---- comparing ---- */

static bool compare(const char *script)
{
    char path[1024], *expected, *got = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&got, &size);
    bool same;

    if (!out)
        return false;
    snprintf(path, sizeof(path), "%.*s.expected", (int)strlen(script) - 4, script);
    expected = telling_file(path);
    same = play_script(script, out) == 0;
    fclose(out);
    same = same && expected && strcmp(expected, got) == 0;
    if (!same)
        telling_difference(expected ? expected : "(no such file)", got);
    free(expected);
    free(got);
    return same;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int scenario_tests(const char *folder, int first_test, bool *good)
{
    char pattern[1024];
    glob_t found;
    int n = 0;

    snprintf(pattern, sizeof(pattern), "%s/*.txt", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = base_of(found.gl_pathv[i]);
        bool same = compare(found.gl_pathv[i]);
        printf("%s %d - scenario %.*s\n", same ? "ok" : "not ok", first_test + n++, (int)strlen(name) - 4, name);
        *good &= same;
    }
    globfree(&found);
    return n;
}

int scenario_main(int argc, char **argv)
{
    int result = argc == 0;

    for (int i = 0; i < argc; i++)
        result |= play_script(argv[i], stdout) != 0;
    return result;
}
