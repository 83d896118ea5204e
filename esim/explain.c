#include "config.h"

#include "esim/explain.h"

#include <string.h>

static void say_ended(struct explain *explain)
{
    fputs(explain->ended, explain->told);
    explain->ended[0] = '\0';
}

void explain_say(struct explain *explain, int64_t ms, const char *why)
{
    say_ended(explain);
    fprintf(explain->told, "%.3f s: job %llu %s\n", (double)ms / 1000, (unsigned long long)explain->number, why);
}

/* "4 processors", and in a cube: of which shape, and what that needs. */
static void describe_request(struct core *core, const struct core_job *job, char *text, size_t size)
{
    uint32_t nodes = core_cube_for(core, job->nprocs, job->mesh_rows);

    if (nodes > 0)
        snprintf(text, size, "a mesh of %ux%u, which needs a cube of %u hosts", job->mesh_rows,
                 job->nprocs / job->mesh_rows, nodes);
    else
        snprintf(text, size, "%u processor%s", job->nprocs, job->nprocs == 1 ? "" : "s");
}

/* Processors that are not full, of hosts that have not the memory for it, or no room for as many of its processors. */
static const char *describe_beyond(const struct core_survey *survey, char *text, size_t size)
{
    snprintf(text, size, ", %u on hosts without room for it (memory, processors per host)", survey->beyond);
    return survey->beyond > 0 ? text : "";
}

void explain_ended(struct explain *explain, int64_t ms, const struct sim_job *job)
{
    if (explain->id != 0)
        snprintf(explain->ended, sizeof(explain->ended), "%.3f s: job %llu ends and leaves %u processor%s\n",
                 (double)ms / 1000, (unsigned long long)job->number, job->nprocs, job->nprocs == 1 ? "" : "s");
}

/* Of a task that waits in its array: those of it that go before, as ", and 3 tasks of its array". */
static uint32_t describe_tasks(const struct core_job *array, uint64_t id, char *text, size_t size)
{
    uint32_t ahead = (uint32_t)(id - array->id) - 1 - core_next_task(array, 0);

    snprintf(text, size, ", and %u task%s of its array", ahead, ahead == 1 ? "" : "s");
    return ahead;
}

/* Returns whether it, or its array, is the first, so that each end may be the one that it waits for. */
static bool describe(const struct explain *explain, struct core *core, char *text, size_t size)
{
    const struct core_job *job = core_job(core, explain->id);
    struct core_survey survey;
    char request[80], beyond[100], tasks[60] = "";
    uint32_t before = 0;

    if (!job && (job = core_array_of(core, explain->id)))
        before = describe_tasks(job, explain->id, tasks, sizeof(tasks));
    if (!job || job->state != JOB_QUEUED) {
        snprintf(text, size, "%s", "");
    } else if (core_survey(core, job->id, &survey)) {
        describe_request(core, job, request, sizeof(request));
        snprintf(text, size, "%s; %s has no place for %s: of %u up %u are full, %u busy, %u not measured%s",
                 before > 0 ? "waits in an array, which is the first" : "is the first",
                 core_allocator_name(survey.allocator), request, survey.up, survey.full, survey.busy, survey.unmeasured,
                 describe_beyond(&survey, beyond, sizeof(beyond)));
        return true;
    } else {
        snprintf(text, size, "waits (%s), %u job%s ahead%s", reason_name(job->reason), job->ahead,
                 job->ahead == 1 ? "" : "s", before > 0 ? tasks : "");
    }
    return false;
}

void explain_wait(struct explain *explain, struct core *core, int64_t ms)
{
    char text[sizeof(explain->last)];

    if (explain->id == 0)
        return;
    if (describe(explain, core, text, sizeof(text)))
        say_ended(explain);
    if (text[0] != '\0' && strcmp(text, explain->last) != 0)
        explain_say(explain, ms, text);
    memcpy(explain->last, text, sizeof(text));
    explain->ended[0] = '\0'; /* that has changed nothing for it */
}

void explain_end(struct explain *explain, int64_t ms, const char *why)
{
    if (explain->id != 0 && why)
        explain_say(explain, ms, why);
    explain->ended[0] = '\0';
    explain->id = 0;
}
