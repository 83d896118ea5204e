#include "config.h"

#include "esim/plan.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "esim/decimal.h"
#include "esim/keys.h"
#include "esim/processes.h"
#include "lib/memory/mem.h"

enum { VALUES_MAX = 64, SERIES_MAX = 1 << 20 };

struct values {
    char key[40];
    char *items[VALUES_MAX];
    size_t count;
};

static void forget(struct values *values)
{
    for (size_t i = 0; i < values->count; i++)
        free(values->items[i]);
    values->count = 0;
}

/* Values are separated by commas, which an interval [1,16] has too. */
static bool split(struct values *values, const char *text)
{
    int depth = 0;
    const char *begin = text;

    for (;; text++) {
        depth += (*text == '[') - (*text == ']');
        if (*text != '\0' && (*text != ',' || depth != 0))
            continue;
        if (text == begin || values->count == VALUES_MAX)
            return false;
        values->items[values->count++] = mem_strndup(begin, (size_t)(text - begin));
        if (*text == '\0')
            return true;
        begin = text + 1;
    }
}

/* Of a key that has whole numbers each of them once. */
static void spread_over(struct values *values, double from, double to, unsigned long count, const char *unit)
{
    bool whole = keys_is_whole(values->key);

    for (size_t i = 0; i < count; i++) {
        double at = from + (to - from) * (double)i / (double)(count - 1);
        char *item = whole ? mem_format("%.0f%s", round(at), unit) : mem_format("%.6g%s", at, unit);
        if (values->count > 0 && strcmp(item, values->items[values->count - 1]) == 0)
            free(item);
        else
            values->items[values->count++] = item;
    }
}

/* The two dots are looked for first: "1." is a number as well. */
static bool spread(struct values *values, const char *text)
{
    const char *dots = strstr(text, "..");
    char *end;
    double from = decimal(text, &end), to;
    unsigned long count = 12;
    bool percent = *end == '%';

    if (end == text || (end + percent != dots && end != dots + 1))
        return false;
    to = decimal(dots + 2, &end);
    if (end == dots + 2 || percent != (*end == '%') || !isfinite(from) || !isfinite(to))
        return false;
    end += percent;
    if (*end != '\0' && *end != ':')
        return false;
    if (*end == ':') {
        const char *number = end + 1;
        count = strtoul(number, &end, 10);
        if (end == number || *end != '\0')
            return false;
    }
    if (count < 2 || count > VALUES_MAX)
        return false;
    spread_over(values, from, to, count, percent ? "%" : "");
    return true;
}

/* A file may have dots, too. */
static bool is_range(const char *text)
{
    return strstr(text, "..") && strspn(text, "+-.0123456789") > 0;
}

static bool parse(struct values *values, const char *text, bool ranges, char *fault, size_t size)
{
    const char *equals = text ? strchr(text, '=') : NULL;

    if (!text) {
        values->items[values->count++] = mem_strdup("");
        return true;
    }
    if (equals && equals > text && (size_t)(equals - text) < sizeof(values->key)) {
        memcpy(values->key, text, (size_t)(equals - text));
        if (ranges && is_range(equals + 1) ? spread(values, equals + 1) : split(values, equals + 1))
            return true;
    }
    snprintf(fault, size, "'%s': want KEY=A,B%s, at most %d values", text,
             ranges ? " or KEY=FROM..TO or KEY=FROM..TO:COUNT" : "", VALUES_MAX);
    return false;
}

/* value must stay. */
static bool apply(struct config *config, const char *key, const char *value, char *fault, size_t size)
{
    size_t used = strlen(config->label);

    if (key[0] == '\0')
        return true;
    snprintf(config->label + used, sizeof(config->label) - used, "%s%s=%s", used > 0 ? " " : "", key, value);
    return keys_set(config, key, value, fault, size);
}

static void name_values(struct plan *plan, const struct values *swept, const struct values *compared)
{
    memcpy(plan->swept, swept->key, sizeof(plan->swept));
    memcpy(plan->compared_key, compared->key, sizeof(plan->compared_key));
    plan->compared = compared->count;
    plan->count = swept->count * compared->count;
    plan->at = mem_array(swept->count, sizeof(*plan->at));
    plan->values = mem_array(swept->count, sizeof(*plan->values));
    plan->names = mem_array(compared->count, sizeof(*plan->names));
    for (size_t i = 0; i < swept->count; i++) {
        char *end;
        plan->values[i] = mem_strdup(swept->items[i]);
        plan->at[i] = decimal(swept->items[i], &end);
        if (end == swept->items[i] || (*end != '\0' && strcmp(end, "%") != 0 && strcmp(end, "s") != 0))
            plan->at[i] = NAN;
    }
    for (size_t i = 0; i < compared->count; i++)
        plan->names[i] = mem_strdup(compared->items[i]);
}

/* Values may say what options may not say together. */
static bool go_together(const struct plan *plan, const struct config *config, char *fault, size_t size)
{
    const char *why = NULL;

    if (config->history && config->trace)
        why = "--history and --trace: one of them";
    else if (config->history && config->jobs_said)
        why = "--jobs and --jobs-max: a history has the jobs that it has; see --since and --until";
    else if (config->world.explain != 0 && plan->count > 1)
        why = "--explain is for one simulation, without --sweep and --compare";
    if (why)
        snprintf(fault, size, "%s", why);
    return !why;
}

static bool make_configs(struct plan *plan, const struct config *base, char *fault, size_t size)
{
    bool good = true;

    plan->configs = mem_array(plan->count, sizeof(*plan->configs));
    for (size_t i = 0; good && i < plan->count; i++) {
        struct config *config = &plan->configs[i];
        *config = *base;
        config->swept = plan->swept;
        config->compared = plan->compared_key;
        good = apply(config, plan->swept, plan->values[i / plan->compared], fault, size) &&
               apply(config, plan->compared_key, plan->names[i % plan->compared], fault, size) &&
               go_together(plan, config, fault, size) && keys_complete(config, fault, size);
        plan->failed = config->failed;
        for (size_t k = 0; good && config->trace && k < i; k++)
            config->quiet = config->quiet || strcmp(plan->configs[k].trace, config->trace) == 0;
    }
    return good;
}

/* Results are written by processes of their own. */
static bool make_results(struct plan *plan, uint64_t jobs_max, char *fault, size_t size)
{
    plan->room = jobs_max < SERIES_MAX ? (size_t)jobs_max : SERIES_MAX;
    plan->room = plan->room < JUDGED_MAX ? JUDGED_MAX : plan->room; /* is more than REPLICATIONS_MAX */
    plan->shared_size = plan->count * (sizeof(struct result) + plan->room * sizeof(double));
    plan->shared = processes_memory(plan->shared_size);
    if (!plan->shared) {
        snprintf(fault, size, "no memory for %zu simulations: %s", plan->count, strerror(errno));
        plan->failed = true;
        return false;
    }
    plan->results = plan->shared;
    plan->series = mem_array(plan->count, sizeof(*plan->series));
    for (size_t i = 0; i < plan->count; i++)
        plan->series[i] = (double *)(void *)&plan->results[plan->count] + i * plan->room;
    return true;
}

bool plan_make(struct plan *plan, const struct config *base, const char *sweep, const char *compare, char *fault,
               size_t size)
{
    struct values *sides = mem_array(2, sizeof(*sides));
    bool good = parse(&sides[0], sweep, true, fault, size) && parse(&sides[1], compare, false, fault, size);

    *plan = (struct plan){.compared = 1};
    if (good)
        name_values(plan, &sides[0], &sides[1]);
    forget(&sides[0]);
    forget(&sides[1]);
    free(sides);
    if (good && plan->swept[0] != '\0' && strcmp(plan->swept, plan->compared_key) == 0) {
        snprintf(fault, size, "%s: it is swept or compared, not both", plan->swept);
        return false;
    }
    return good && make_configs(plan, base, fault, size) && make_results(plan, base->jobs_max, fault, size);
}

struct running {
    struct plan *plan;
    int at_a_time; /* runs of each */
};

static void run_config(size_t i, void *data)
{
    const struct running *running = data;
    struct plan *plan = running->plan;
    struct result one = plan->results[i];

    run(&plan->configs[i], &one, plan->series[i], plan->room, running->at_a_time, NULL);
    plan->results[i] = one; /* whole, or not at all */
}

void plan_run(struct plan *plan, int at_a_time, FILE *progress)
{
    struct running running = {plan, at_a_time > (int)plan->count ? at_a_time / (int)plan->count : 1};

    if (plan->count == 1)
        run(&plan->configs[0], &plan->results[0], plan->series[0], plan->room, at_a_time, progress);
    else
        processes_run(plan->results, plan->count, at_a_time, run_config, &running, progress);
}

void plan_fini(struct plan *plan)
{
    assert(plan->compared > 0); /* 1 as long as nothing is compared, which is said before anything can fail */
    if (plan->shared)
        munmap(plan->shared, plan->shared_size);
    for (size_t i = 0; plan->names && i < plan->compared; i++)
        free(plan->names[i]);
    for (size_t i = 0; plan->values && i < plan->count / plan->compared; i++)
        free(plan->values[i]);
    free(plan->values);
    free(plan->names);
    free(plan->at);
    free(plan->series);
    free(plan->configs);
}

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Else the first, second, .. job of two simulations have nothing in common, and what is known is the means. */
static bool has_same_jobs(const struct plan *plan, size_t first)
{
    const struct config *c = &plan->configs[first];

    return strcmp(plan->compared_key, "trace") != 0 &&
           (strcmp(plan->compared_key, "seed") != 0 || c->trace || c->history);
}

/* It has more jobs than there is room for in a series. */
static bool outruns(const struct plan *plan, size_t i)
{
    return plan->results[i].jobs + plan->results[i].warmup > plan->room;
}

static struct difference difference_of_means(const struct result *a, const struct result *b)
{
    double mean = b->turnaround.mean - a->turnaround.mean, half = hypot(a->turnaround.half, b->turnaround.half);

    return (struct difference){.turnaround = {mean, half, 0},
                               .first = a->turnaround.mean,
                               .jobs = lesser((size_t)a->jobs, (size_t)b->jobs),
                               .of_means = true};
}

struct difference plan_difference(const struct plan *plan, size_t first, size_t second)
{
    const double *a = plan->series[first], *b = plan->series[second];
    bool runs = plan->results[first].replications > 1 && plan->results[second].replications > 1;
    size_t cut = runs ? 0 : (size_t)fmax((double)plan->results[first].warmup, (double)plan->results[second].warmup);
    size_t count = lesser(plan->results[first].nseries, plan->results[second].nseries), end;
    size_t all = lesser(plan->results[first].nall, plan->results[second].nall);
    double *differences;
    struct difference difference = {.jobs = 0};

    if (!has_same_jobs(plan, first))
        return difference_of_means(&plan->results[first], &plan->results[second]);
    differences = mem_array(all + 1, sizeof(*differences));
    end = 0;
    for (size_t i = cut; i < all; i++)
        if (!isnan(a[i]) && !isnan(b[i])) {
            difference.first += i < count ? a[i] : 0;
            difference.jobs += i < count;
            differences[end++] = b[i] - a[i];
        }
    difference.cut_off = !runs && outruns(plan, first) && outruns(plan, second);
    difference.first /= difference.jobs > 0 ? (double)difference.jobs : 1;
    difference.turnaround = runs                         ? stats_replications(differences, difference.jobs)
                            : plan->configs[first].whole ? stats_batches(differences, difference.jobs)
                                                         : stats_series(differences, difference.jobs, differences, end);
    free(differences);
    return difference;
}

/* ---- a queue that is never empty ---- */

/* Both have ended the same number of jobs, and all that was used until then is known. */
static bool has_pairs(const struct plan *plan, size_t first, size_t second)
{
    const struct result *a = &plan->results[first], *b = &plan->results[second];

    return has_same_jobs(plan, first) && a->refused == b->refused && a->nseries > 0 && a->nseries == b->nseries &&
           a->nseries / 2 >= (a->jobs + a->warmup) / TICK_JOBS;
}

/* The quotient of sums, and for all pairs of a series what it would be more if it went on like these. */
static double quotient(const double *series, size_t cut, size_t count, size_t all, double *off)
{
    double used = 0, time = 0;

    for (size_t i = cut; i < count; i++) {
        used += series[2 * i];
        time += series[2 * i + 1];
    }
    for (size_t i = 0; i < all; i++)
        off[i] = (series[2 * i] - used / time * series[2 * i + 1]) / (time / (double)(count - cut));
    return used / time;
}

/* What is chance in the jobs is the same in both, and goes away in the difference of each TICK_JOBS of them. */
static struct estimate difference_of_pairs(const struct plan *plan, size_t first, size_t second)
{
    const struct result *a = &plan->results[first], *b = &plan->results[second];
    size_t cut = (size_t)fmax((double)a->warmup, (double)b->warmup) / TICK_JOBS, count = a->nseries / 2;
    size_t all = lesser(a->nall, b->nall) / 2;
    double *off[2] = {mem_array(all, sizeof(double)), mem_array(all, sizeof(double))}, mean;
    struct estimate estimate;

    mean = quotient(plan->series[second], cut, count, all, off[1]) -
           quotient(plan->series[first], cut, count, all, off[0]);
    for (size_t i = 0; i < all; i++)
        off[1][i] -= off[0][i];
    estimate = plan->configs[first].whole ? stats_batches(off[1] + cut, count - cut)
                                          : stats_series(off[1] + cut, count - cut, off[1] + cut, all - cut);
    estimate.mean = mean;
    free(off[0]);
    free(off[1]);
    return estimate;
}

static struct estimate difference_of_runs(const struct plan *plan, size_t first, size_t second)
{
    size_t count = lesser(plan->results[first].nseries, plan->results[second].nseries);
    double *differences = mem_array(count + 1, sizeof(*differences));
    struct estimate estimate;

    for (size_t i = 0; i < count; i++)
        differences[i] = plan->series[second][i] - plan->series[first][i];
    estimate = stats_replications(differences, count);
    free(differences);
    return estimate;
}

struct estimate plan_used(const struct plan *plan, size_t first, size_t second)
{
    const struct result *a = &plan->results[first], *b = &plan->results[second];
    struct estimate estimate = {.mean = NAN};

    if (has_same_jobs(plan, first) && a->replications > 1 && b->replications > 1)
        estimate = difference_of_runs(plan, first, second);
    else if (a->replications == 1 && b->replications == 1 && has_pairs(plan, first, second))
        estimate = difference_of_pairs(plan, first, second);
    if (isnan(estimate.mean)) /* or jobs that take no time */
        estimate = (struct estimate){.mean = b->utilisation.mean - a->utilisation.mean,
                                     .half = hypot(a->utilisation.half, b->utilisation.half)};
    return estimate;
}
