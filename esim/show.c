/* show.c - the answer as a table and in words. */
#include "config.h"

#include "esim/show.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FAR 0.05         /* what a replay is promised to keep */
enum { FEW_JOBS = 300 }; /* of which batches are too short to be independent */

static const char *label_of(const struct config *config)
{
    return config->label[0] != '\0' ? config->label : config->workload_name;
}

static int width_of_labels(const struct plan *plan)
{
    size_t width = strlen("as it was");

    for (size_t i = 0; i < plan->count; i++)
        width = strlen(label_of(&plan->configs[i])) > width ? strlen(label_of(&plan->configs[i])) : width;
    return (int)width;
}

/* What is not known is a dash. */
static void print_cell(int width, int digits, double value)
{
    if (isfinite(value))
        printf(" %*.*f", width, digits, value);
    else
        printf(" %*s", width, "-");
}

static void print_times(struct estimate turnaround, double median, double p95, struct estimate wait,
                        struct estimate stretch)
{
    print_cell(9, 3, turnaround.mean);
    print_cell(9, 3, turnaround.half);
    print_cell(9, 3, median);
    print_cell(8, 2, p95);
    print_cell(9, 3, wait.mean);
    print_cell(9, 3, wait.half);
    print_cell(8, 2, stretch.mean);
    print_cell(7, 2, stretch.half);
}

static struct estimate known(double value)
{
    return (struct estimate){.mean = value, .half = NAN};
}

static void print_recorded(int width, const struct history *h)
{
    printf("%-*s %9zu %8s", width, "as it was", h->measured, "-");
    print_times(known(h->turnaround.mean), h->median, h->p95, known(h->wait), known(NAN));
    putchar('\n');
}

static void print_row(int width, const struct config *config, const struct result *r)
{
    if (!r->done) {
        printf("%-*s %s\n", width, label_of(config), r->fault);
        return;
    }
    printf("%-*s %9" PRIu64 " %8" PRIu64, width, label_of(config), r->jobs, r->warmup);
    print_times(r->turnaround, r->median.mean, r->p95.mean, r->wait, r->stretch);
    print_cell(7, 2, 100 * r->utilisation.mean);
    printf(" +-");
    print_cell(4, 2, 100 * r->utilisation.half);
    print_cell(8, 3, r->load_out.mean);
    fputs(!r->steady ? "  not steady" : r->too_short ? "  too short for an interval" : "", stdout);
    if (r->replications > 1)
        printf("  in %" PRIu64 " runs", r->replications);
    putchar('\n');
}

static void print_table(const struct plan *plan)
{
    int width = width_of_labels(plan);

    printf("%-*s %9s %8s %9s %9s %9s %8s %9s %9s %8s %7s %15s %8s\n", width, "", "JOBS", "WARM-UP", "MEAN s", "+-",
           "MEDIAN s", "P95 s", "WAIT s", "+-", "STRETCH", "+-", "UTILISATION %", "LOAD OUT");
    if (plan->configs[0].history)
        print_recorded(width, plan->configs[0].history);
    for (size_t i = 0; i < plan->count; i++)
        print_row(width, &plan->configs[i], &plan->results[i]);
}

/* "+- 0.50", or "+- -". */
static const char *half_width(char *text, size_t size, double half, int digits)
{
    snprintf(text, size, isfinite(half) ? "+- %.*f" : "+- -", digits, half);
    return text;
}

/* In words: whether a difference is more than chance. */
static void print_saturated(const struct plan *plan, size_t first, size_t i)
{
    struct estimate used = plan_used(plan, first, i);
    double change = 100 * used.mean, half = 100 * used.half;
    char text[40];

    printf("%s: utilisation %+.2f %s points against %s: %s\n", plan->configs[i].label, change,
           half_width(text, sizeof(text), half, 2), plan->configs[first].label,
           isnan(half)           ? "too few jobs to say"
           : fabs(change) > half ? "the difference is real"
                                 : "no difference is seen");
}

static void print_difference(const struct plan *plan, size_t first, size_t i)
{
    const struct config *c = &plan->configs[i];
    struct difference d = plan_difference(plan, first, i);
    double mean = d.turnaround.mean, half = d.turnaround.half;
    bool steady = plan->results[first].steady && plan->results[i].steady;
    bool one_refuses = plan->results[first].refused != plan->results[i].refused;
    char text[40];

    printf("%s: jobs%s%s take %.3f %s s %s (%+.1f %%) than with %s: %s%s", c->label, c->without ? " of the others" : "",
           one_refuses && !d.of_means ? " that both can run" : "", fabs(mean), half_width(text, sizeof(text), half, 3),
           mean < 0 ? "less" : "more", d.first > 0 ? 100 * mean / d.first : 0, plan->configs[first].label,
           !steady              ? "not steady, it depends on the length of the run: compare LOAD OUT"
           : isnan(half)        ? "too few jobs to say"
           : fabs(mean) <= half ? "no difference is seen"
                                : "the difference is real",
           steady && !isnan(half) && d.jobs < FEW_JOBS && c->whole ? ", as far as so few jobs can say" : "");
    if (d.cut_off) /* no more are kept */
        printf(", by the first %zu of them", d.jobs);
    putchar('\n');
}

static void print_differences(const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        size_t first = i - i % plan->compared;
        if (i == first || !plan->results[first].done || !plan->results[i].done)
            continue;
        if (plan->configs[i].world.saturated)
            print_saturated(plan, first, i);
        else
            print_difference(plan, first, i);
    }
}

/* ---- a history ---- */

static void print_count(const char **before, uint64_t count, const char *what)
{
    if (count == 0)
        return;
    printf("%s%" PRIu64 " %s", *before, count, what);
    *before = ", ";
}

static void print_limits(const struct plan *plan)
{
    const struct config *c = &plan->configs[0];
    const struct history *h = c->history;
    const char *before = "Left out: ";

    printf("\nReplayed on %d hosts with %" PRIu64 " processors, D = %d, %s", c->world.nhosts,
           world_processors(&c->world), c->world.core.levels, core_allocator_name(c->world.core.allocator));
    if (c->world.core.allocator == ALLOCATOR_V2)
        printf(" with threshold %g", c->world.core.threshold);
    printf("; elmer.conf is not in the store, so say what was different.\n");
    if (plan->results[0].done && h->median > 0 && fabs(plan->results[0].median.mean / h->median - 1) > FAR)
        printf(
            "The median of the first replay is not what it was: if these are the settings of that time, then something "
            "mattered that is not known.\n");
    print_count(&before, h->unfinished, "that have not ended");
    print_count(&before, h->cancelled, "that were cancelled");
    print_count(&before, h->never_started, "that could not start");
    print_count(&before, h->backwards, "that started before their submission, or ended before they started");
    fputs(before[0] == ',' ? ".\n" : "", stdout);
    before = "With the time that they had: ";
    print_count(&before, h->killed, "that were killed");
    print_count(&before, h->lost, "that were lost with a host");
    print_count(&before, h->again, "that had more than one attempt (the last)");
    fputs(before[0] == ',' ? ".\n" : "", stdout);
    if (h->unknown_use > 0)
        printf("Taken to compute all the time: %" PRIu64 " of which it is not known what they used.\n", h->unknown_use);
    if (h->drained > 0)
        printf("Drained in the end, and taken to be there all the time: %d hosts.\n", h->drained);
    if (h->bound > 0 && c->world.core.topology == TOPOLOGY_CUBE)
        printf("On any hosts of the cube: %" PRIu64
               " that might have some only, as it is not known which nodes these were.\n",
               h->bound);
    printf(
        "Not known, and not simulated: load that is not of jobs, hosts that failed or were drained meanwhile%s, jobs "
        "that were held, or moved forward.\n",
        c->world.naway > 0 ? " but for --away" : "");
}

/* What it is by default depends on other options, and on the header of a trace. */
static void print_machine(const struct plan *plan)
{
    const struct config *c = &plan->configs[0];
    uint64_t processors = world_processors(&c->world);

    for (size_t i = 1; i < plan->count; i++)
        if (plan->configs[i].world.nhosts != c->world.nhosts || world_processors(&plan->configs[i].world) != processors)
            return; /* the labels say what is different */
    printf("On %d host%s with %" PRIu64 " processor%s.\n", c->world.nhosts, c->world.nhosts == 1 ? "" : "s", processors,
           processors == 1 ? "" : "s");
}

void show(const struct plan *plan)
{
    print_table(plan);
    if (!plan->configs[0].history) /* print_limits() */
        print_machine(plan);
    if (plan->compared > 1)
        print_differences(plan);
    if (plan->configs[0].history)
        print_limits(plan);
}

/* ---- notes ---- */

struct note {
    size_t place; /* of the count, in a result */
    const char *text;
};

static const struct note notes[] = {
    {offsetof(struct result, refused), "jobs were refused: the machine is too small for them"},
    {offsetof(struct result, lines.bad_lines), "lines of the trace were left out"},
    {offsetof(struct result, lines.parts), "lines are no jobs, but parts of one (status 2, 3 or 4), and were left out"},
    {offsetof(struct result, lines.parts_alone),
     "jobs were left out: there are lines of their parts only, and none above that sums them up (status 0 or 1)"},
    {offsetof(struct result, lines.never_ran), "jobs were left out: they were cancelled before they ran (status 5)"},
    {offsetof(struct result, lines.unknown), "jobs were left out: their run time or processors are not known"},
    {offsetof(struct result, trace.following),
     "jobs came when the job that precedes them had ended; --feedback=no: at the times of the trace"},
    {offsetof(struct result, trace.nameless),
     "jobs name a preceding job that is not above them in the trace, and came at the times of the trace"},
    {offsetof(struct result, trace.moved),
     "jobs are in the trace behind one that was submitted later; they were put into the order of their "
     "submission"},
    {offsetof(struct result, waiting), "jobs still wait at the end"},
};

static uint64_t count_of(const struct note *note, const struct result *r)
{
    uint64_t count;

    memcpy(&count, (const char *)r + note->place, sizeof(count));
    return count;
}

static void print_note(const struct note *note, const struct result *r, const char *label)
{
    double came = (double)r->refused + (double)r->jobs + (double)r->warmup;

    fprintf(stderr, "esim: %s%s%" PRIu64 " %s", label, label[0] != '\0' ? ": " : "", count_of(note, r), note->text);
    if (note->place == offsetof(struct result, refused) && came > 0)
        fprintf(stderr, " (%.3g %% of all)", 100 * (double)r->refused / came);
    fputc('\n', stderr);
}

/* Once, if it is the same for all simulations. */
static void print_notes(const struct plan *plan, const struct note *note)
{
    bool same = true;

    for (size_t i = 1; i < plan->count; i++)
        same = same && count_of(note, &plan->results[i]) == count_of(note, &plan->results[0]);
    for (size_t i = 0; i < (same ? 1 : plan->count); i++)
        if (count_of(note, &plan->results[i]) > 0 &&
            (note->place != offsetof(struct result, waiting) || !plan->configs[i].world.saturated))
            print_note(note, &plan->results[i], same ? "" : label_of(&plan->configs[i]));
}

void show_notes(const struct plan *plan)
{
    if (plan->results[0].unexplained) /* of one simulation */
        fprintf(stderr, "esim: job %" PRIu64 ", which was to be explained, has not come\n",
                plan->configs[0].world.explain);
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
        print_notes(plan, &notes[i]);
}
