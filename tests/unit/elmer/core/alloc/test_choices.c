/* test_choices.c - v1 and v2 choose for a given seed what they have always chosen.
 *
 * choices.expected was recorded (--print) with the core of before the allocators had a table. Each round draws a
 * cluster and disturbs it; told is which processors each job gets, and after each step why the head of the queue gets
 * none. The first rounds are there in full, of the others a hash for every twenty.
 */
#include "elmer/core/core.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FULL_ROUNDS = 16, ROUNDS = 816, ROUNDS_A_HASH = 20, STEPS = 60, MAX_HOSTS = 12, MAX_NCPUS = 8 };

struct round {
    struct core *core;
    struct actions actions;
    uint64_t chance, told; /* state of the generator; the greatest allocation that is told */
    int64_t now_ms;
    int nhosts, ncpus[MAX_HOSTS];
    uint64_t hash;
    FILE *out; /* NULL: only the hash */
};

static uint32_t draw(struct round *round, uint32_t n) /* xorshift64*, not that of the core */
{
    round->chance ^= round->chance >> 12;
    round->chance ^= round->chance << 25;
    round->chance ^= round->chance >> 27;
    return (uint32_t)((round->chance * 0x2545f4914f6cdd1du) >> 33) % n;
}

static void tell(struct round *round, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(struct round *round, const char *format, ...)
{
    char text[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (const char *c = text; *c != '\0'; c++) /* FNV-1a */
        round->hash = (round->hash ^ (uint64_t)(unsigned char)*c) * 0x100000001b3u;
    if (round->out)
        fputs(text, round->out);
}

static void tell_choices(struct round *round)
{
    const struct core_job *job;
    uint64_t cursor = 0, last = round->told;
    struct core_survey survey;

    while ((job = core_next_job(round->core, &cursor))) {
        if (job->state == JOB_STARTING && job->allocation > round->told) {
            tell(round, "%" PRIu64 "/%d:", job->id, job->level);
            for (uint32_t i = 0; i < job->nprocs; i++)
                tell(round, " %d:%d", job->processors[i].host, job->processors[i].cpu);
            tell(round, "\n");
            last = job->allocation > last ? job->allocation : last;
        }
        if (core_survey(round->core, job->id, &survey))
            tell(round, "%" PRIu64 " refused: %u %u %u %u %u\n", job->id, survey.up, survey.full, survey.unheard,
                 survey.busy, survey.unmeasured);
    }
    round->told = last;
}

static void step(struct round *round, struct event event)
{
    int result;

    event.now_ms = round->now_ms;
    actions_clear(&round->actions);
    result = core_step(round->core, &event, &round->actions);
    assert(result == 0);
    (void)result;
    tell_choices(round);
}

static void bring_up(struct round *round, int host)
{
    struct event event = {.type = EVENT_HOST_UP, .host = host};
    int cpus[MAX_NCPUS];

    for (int i = 0; i < round->ncpus[host]; i++)
        cpus[i] = i;
    event.u.up.cpus = cpus;
    event.u.up.ncpus = round->ncpus[host];
    step(round, event);
}

static void submit(struct round *round)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    int hosts[MAX_HOSTS] = {0}, n = 0;

    event.u.submit.uid = 1;
    event.u.submit.nprocs = 1 + draw(round, draw(round, 4) == 0 ? 12 : 4);
    if (draw(round, 4) == 0) {
        for (int h = 0; h < round->nhosts; h++)
            if (draw(round, 2) == 0)
                hosts[n++] = h;
        event.u.submit.hosts = n > 0 ? hosts : NULL;
        event.u.submit.nhosts = n;
    }
    step(round, event);
}

static void report(struct round *round, int host)
{
    struct event event = {.type = EVENT_REPORT, .host = host};
    double busy[MAX_NCPUS], jobs[MAX_NCPUS];

    for (int i = 0; i < MAX_NCPUS; i++) {
        busy[i] = draw(round, 101) / 100.0;
        jobs[i] = busy[i] * draw(round, 101) / 100.0;
    }
    event.u.report.begin_ms = round->now_ms - 500 - draw(round, 2500);
    event.u.report.end_ms = round->now_ms;
    event.u.report.busy = busy;
    event.u.report.jobs = jobs;
    event.u.report.ncpus = round->ncpus[host];
    step(round, event);
}

/* Of a job that has a cluster, or of none. */
static uint64_t some_job(struct round *round)
{
    const struct core_job *job;
    uint64_t cursor = 0, found = 0;
    uint32_t n = 0;

    while ((job = core_next_job(round->core, &cursor)))
        if ((job->state == JOB_STARTING || job->state == JOB_RUNNING) && draw(round, ++n) == 0)
            found = job->id;
    return found;
}

static void on_its_hosts(struct round *round, uint64_t id, enum event_type type)
{
    int hosts[MAX_HOSTS] = {0}, n = 0;
    const struct core_job *job = core_job(round->core, id);
    struct event event = {.type = type, .job = id, .attempt = job->attempt};

    for (uint32_t i = 0; i < job->nprocs; i++)
        if (n == 0 || hosts[n - 1] != job->processors[i].host)
            hosts[n++] = job->processors[i].host;
    for (int i = 0; i < n; i++) {
        event.host = hosts[i];
        step(round, event);
    }
}

static void run_job(struct round *round)
{
    struct event event = {.type = EVENT_LAUNCHED, .host = -1};

    event.job = some_job(round);
    if (event.job == 0 || core_job(round->core, event.job)->state != JOB_STARTING)
        return;
    event.attempt = core_job(round->core, event.job)->attempt;
    on_its_hosts(round, event.job, EVENT_OPENED);
    step(round, event);
}

static void end_job(struct round *round)
{
    struct event event = {.type = EVENT_KILL, .host = -1};

    event.job = some_job(round);
    if (event.job == 0)
        return;
    event.u.by.admin = true;
    step(round, event);
    on_its_hosts(round, event.job, EVENT_EMPTY);
}

static void disturb(struct round *round)
{
    uint32_t dice = draw(round, 100);
    int host = (int)draw(round, (uint32_t)round->nhosts);

    round->now_ms += draw(round, 1200);
    if (dice < 35)
        submit(round);
    else if (dice < 65)
        report(round, host);
    else if (dice < 80)
        run_job(round);
    else if (dice < 93)
        end_job(round);
    else if (dice < 94)
        step(round, (struct event){.type = EVENT_DRAIN, .host = host});
    else if (dice < 96)
        step(round, (struct event){.type = EVENT_UNDRAIN, .host = host});
    else if (dice < 97)
        step(round, (struct event){.type = EVENT_HOST_SILENT, .host = host});
    else
        step(round, (struct event){.type = EVENT_HOST_HEARD, .host = host});
}

static uint64_t play(uint64_t number, FILE *out)
{
    struct round round = {.chance = (number + 1) * 0x9e3779b97f4a7c15u, .now_ms = 100000, .out = out};
    struct core_options options;
    char name[16];

    core_options_default(&options);
    options.allocator = number % 2 == 0 ? ALLOCATOR_V1 : ALLOCATOR_V2;
    options.levels = 1 + (int)(number / 2 % 4);
    options.seed = number * 7919;
    round.hash = 0xcbf29ce484222325u;
    round.core = core_create(&options);
    assert(round.core != NULL);
    actions_init(&round.actions);
    tell(&round, "round %" PRIu64 " %s\n", number, core_allocator_name(options.allocator));
    round.nhosts = 1 + (int)draw(&round, MAX_HOSTS);
    for (int h = 0; h < round.nhosts; h++) {
        round.ncpus[h] = 1 + (int)draw(&round, MAX_NCPUS);
        snprintf(name, sizeof(name), "ws%d", h + 1);
        core_add_host(round.core, name);
    }
    for (int h = 0; h < round.nhosts; h++)
        bring_up(&round, h);
    for (int h = 0; h < round.nhosts; h++)
        report(&round, h);
    for (int i = 0; i < STEPS; i++)
        disturb(&round);
    actions_fini(&round.actions);
    core_destroy(round.core);
    return round.hash;
}

static void record(FILE *out)
{
    uint64_t hash = 0;

    for (uint64_t number = 0; number < FULL_ROUNDS; number++)
        play(number, out);
    for (uint64_t number = FULL_ROUNDS; number < ROUNDS; number++) {
        hash = hash * 31 + play(number, NULL);
        if ((number - FULL_ROUNDS) % ROUNDS_A_HASH == ROUNDS_A_HASH - 1)
            fprintf(out, "rounds to %" PRIu64 ": %016" PRIx64 "\n", number, hash);
    }
}

/* Returns the number of lines that are the same, *good says whether all are. */
static int compare(FILE *expected, FILE *now, bool *good)
{
    char want[2000], have[2000];
    int lines = 0;

    for (;; lines++) {
        bool more = fgets(want, sizeof(want), expected) != NULL, is = fgets(have, sizeof(have), now) != NULL;
        *good = more == is && (!more || strcmp(want, have) == 0);
        if (!*good)
            printf("# line %d: expected %s# and not      %s", lines + 1, more ? want : "the end\n",
                   is ? have : "the end\n");
        if (!*good || !more)
            return lines;
    }
}

int main(int argc, char **argv)
{
    const char *srcdir = getenv("srcdir");
    char path[900];
    FILE *expected, *now;
    bool good = false;
    int lines;

    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        record(stdout);
        return 0;
    }
    snprintf(path, sizeof(path), "%s/tests/unit/elmer/core/alloc/choices.expected", srcdir ? srcdir : ".");
    expected = fopen(path, "r");
    now = tmpfile();
    if (!expected || !now) {
        perror(path);
        return 1;
    }
    record(now);
    rewind(now);
    lines = compare(expected, now, &good);
    printf("# %d lines are as recorded\n", lines);
    good = good && lines > FULL_ROUNDS * 10;
    fclose(expected);
    fclose(now);
    return good ? 0 : 1;
}
