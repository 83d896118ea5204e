/* telling.c - what happens in a scenario, as lines of its timeline. */
#include "tests/sim/telling.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *telling_job(const struct play *play, uint64_t job)
{
    return job >= 1 && job <= MAX_JOBS ? play->names[job - 1] : "?";
}

static void tell_processors(struct play *play, const struct core_job *job)
{
    for (uint32_t i = 0; i < job->nprocs; i++)
        fprintf(play->out, " %s:%d", play->world.hosts[job->processors[i].host].name, job->processors[i].cpu);
}

static void tell_end(struct play *play, const struct core_job *job, const char *how)
{
    fprintf(play->out, "%s: %s", how, reason_name(job->reason));
    if (job->signal != 0)
        fprintf(play->out, ", signal %d", job->signal);
    else if (job->exit_status >= 0)
        fprintf(play->out, ", status %d", job->exit_status);
    if (job->text[0] != '\0')
        fprintf(play->out, " (%s)", job->text);
}

static void tell_again(struct play *play, const struct core_job *job)
{
    fprintf(play->out, "goes back into the queue (%s)", job->text);
    for (int i = 0; i < job->nlost; i++)
        fprintf(play->out, "%s %s", i == 0 ? ", waits for the lease of" : "", play->world.hosts[job->lost[i]].name);
}

void telling_lapse(struct world *world, int host, const struct sim_group *group)
{
    struct play *play = world->user;

    fprintf(play->out, "%7" PRId64 "    %s ends %s by itself: no contact for the lease\n", world->now_ms,
            world->hosts[host].name, telling_job(play, group->job));
}

void telling_change(struct world *world, const struct seen_job *before, const struct core_job *now)
{
    struct play *play = world->user;

    fprintf(play->out, "%7" PRId64 "    %s ", world->now_ms, telling_job(play, now->id));
    if (before->state == now->state && before->attempt == now->attempt) {
        fprintf(play->out, "moves up from level %d to level %d\n", before->level, now->level);
        return;
    }
    switch (now->state) {
    case JOB_QUEUED:
        if (before->state == JOB_HELD)
            fprintf(play->out, "is released");
        else
            tell_again(play, now);
        break;
    case JOB_HELD:
        fprintf(play->out, "is held");
        break;
    case JOB_STARTING:
        fprintf(play->out, "starts");
        if (now->attempt > 1)
            fprintf(play->out, " attempt %u", now->attempt);
        fprintf(play->out, " at level %d on", now->level);
        tell_processors(play, now);
        break;
    case JOB_RUNNING:
        fprintf(play->out, "runs");
        break;
    case JOB_ENDING:
        tell_end(play, now, "is ending");
        break;
    case JOB_DONE:
        tell_end(play, now, "is done");
        break;
    case JOB_CANCELLED:
        fprintf(play->out, "is cancelled");
        break;
    case JOB_STARTED: /* no scenario has an array */
    case JOB_STATE_COUNT:
        break;
    }
    fprintf(play->out, "\n");
}

void telling_action(struct world *world, const struct action *action)
{
    struct play *play = world->user;
    static const char *const names[ACTION_TYPE_COUNT] = {
        [ACTION_ORDER] = "order", [ACTION_OPEN] = "open", [ACTION_END] = "end", [ACTION_LAUNCH] = "launch"};

    if (!play->verbose || !names[action->type])
        return;
    fprintf(play->out, "%7" PRId64 "      -> %s %s", world->now_ms,
            action->host >= 0 ? world->hosts[action->host].name : "all", names[action->type]);
    if (action->type == ACTION_ORDER)
        fprintf(play->out, " %" PRIu64 ":", action->generation);
    else
        fprintf(play->out, " %s", telling_job(play, action->job));
    for (int i = 0; i < action->nentries; i++)
        fprintf(play->out, " %s/%d%s", telling_job(play, action->entries[i].job), action->entries[i].level,
                action->entries[i].lowest ? "*" : "");
    fprintf(play->out, "\n");
}

static const struct core_job *job_at(struct play *play, int host, int cpu, int level)
{
    uint64_t cursor = 0;
    const struct core_job *job;

    while ((job = core_next_job(play->world.core, &cursor)))
        if (job->level == level)
            for (uint32_t i = 0; i < job->nprocs; i++)
                if (job->processors[i].host == host && job->processors[i].cpu == cpu)
                    return job;
    return NULL;
}

static void tell_queue(struct play *play)
{
    uint64_t cursor = 0;
    const struct core_job *job;

    fprintf(play->out, "          queue:");
    while ((job = core_next_job(play->world.core, &cursor)))
        if (job->state == JOB_QUEUED || job->state == JOB_HELD)
            fprintf(play->out, " %s (%s)", telling_job(play, job->id), reason_name(job->reason));
    fprintf(play->out, "\n");
}

void telling_table(struct play *play)
{
    const struct world *world = &play->world;

    fprintf(play->out, "          level");
    for (int h = 0; h < world->nhosts; h++)
        for (int i = 0; i < world->hosts[h].ncpus; i++)
            fprintf(play->out, " %s:%d", world->hosts[h].name, world->hosts[h].cpus[i]);
    for (int level = 0; level < play->options.levels; level++) {
        fprintf(play->out, "\n            %d  ", level);
        for (int h = 0; h < world->nhosts; h++)
            for (int i = 0; i < world->hosts[h].ncpus; i++) {
                const struct core_job *job = job_at(play, h, world->hosts[h].cpus[i], level);
                fprintf(play->out, " %-5s", job ? telling_job(play, job->id) : ".");
            }
    }
    fprintf(play->out, "\n");
    tell_queue(play);
}

/* ---- comparing ---- */

char *telling_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;

    if (!file)
        return NULL;
    if (getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

void telling_difference(const char *expected, const char *got)
{
    int line = 1;
    const char *from = expected, *instead = got;

    for (size_t i = 0; expected[i] != '\0' && expected[i] == got[i]; i++)
        if (expected[i] == '\n') {
            line++;
            from = expected + i + 1;
            instead = got + i + 1;
        }
    printf("#   line %d\n#   expected: %.*s\n#   got:      %.*s\n", line, (int)strcspn(from, "\n"), from,
           (int)strcspn(instead, "\n"), instead);
}
