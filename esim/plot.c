/* plot.c - two fields side by side, each from 0 to a round number beyond what there is.
 *
 * Whiskers are 95 % intervals. A ring is a simulation that is not steady: its turnaround depends on how long it ran, so
 * the field reaches only as far as the steady ones do, and an arrow at its upper edge stands for what is beyond. */
#include "config.h"

#include "esim/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esim/svg.h"
#include "lib/memory/mem.h"

enum { WIDTH = 400, HEIGHT = 260, LEFT = 64, RIGHT = 20, BELOW = 52, SMALL = 11, LARGE = 13, TICKS = 5 };

static const char *const colors[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"};
enum { COLORS = sizeof(colors) / sizeof(colors[0]) };

struct field {
    const struct plan *plan;
    const char *name;
    struct estimate (*value)(const struct result *result);
    bool (*counts)(const struct result *result); /* for how far it reaches */
    double left, top, x_step, y_step, x_max, y_max;
};

static struct estimate turnaround(const struct result *r)
{
    return r->turnaround;
}

static struct estimate utilisation(const struct result *r)
{
    return (struct estimate){.mean = 100 * r->utilisation.mean, .half = 100 * r->utilisation.half};
}

static bool if_steady(const struct result *r)
{
    return r->done && r->steady;
}

static bool if_done(const struct result *r)
{
    return r->done;
}

/* 1, 2 or 5 times a power of ten, so that about TICKS of them reach there. */
static double round_step(double most)
{
    double step = pow(10, floor(log10(most / TICKS)));

    if (!(most > 0) || !isfinite(most))
        return 1;
    if (most / step > 5 * TICKS)
        return 10 * step;
    return most / step > 2 * TICKS ? 5 * step : most / step > TICKS ? 2 * step : step;
}

static double place_x(const struct field *f, double x)
{
    return f->left + WIDTH * x / f->x_max;
}

static double place_y(const struct field *f, double y)
{
    return f->top + HEIGHT - HEIGHT * fmin(y, f->y_max) / f->y_max;
}

static void set_ranges(struct field *f)
{
    const struct plan *plan = f->plan;
    double most[2] = {0, 0}, x = 0; /* of those that count, of all */

    for (size_t i = 0; i < plan->count; i++) {
        struct estimate e = f->value(&plan->results[i]);
        double top = e.mean + (isnan(e.half) ? 0 : e.half);
        x = fmax(x, plan->at[i / plan->compared]);
        if (plan->results[i].done)
            most[1] = fmax(most[1], top);
        if (f->counts(&plan->results[i]))
            most[0] = fmax(most[0], top);
    }
    f->x_step = round_step(x);
    f->x_max = ceil(x / f->x_step - 1e-9) * f->x_step;
    f->y_step = round_step(most[0] > 0 ? most[0] : most[1]);
    f->y_max = ceil((most[0] > 0 ? most[0] : most[1]) / f->y_step - 1e-9) * f->y_step;
    f->x_max = f->x_max > 0 ? f->x_max : 1;
    f->y_max = f->y_max > 0 ? f->y_max : 1;
}

static void draw_axes(FILE *out, const struct field *f)
{
    double bottom = f->top + HEIGHT;
    char text[40];

    svg_line(out, f->left, f->top, f->left, bottom, "#222", 1);
    svg_line(out, f->left, bottom, f->left + WIDTH, bottom, "#222", 1);
    for (int i = 0; i * f->x_step <= f->x_max * (1 + 1e-9); i++) {
        double x = place_x(f, i * f->x_step);
        svg_line(out, x, bottom, x, bottom + 4, "#222", 1);
        snprintf(text, sizeof(text), "%g", i * f->x_step);
        svg_text(out, x, bottom + 17, SVG_MIDDLE, SMALL, text);
    }
    for (int i = 0; i * f->y_step <= f->y_max * (1 + 1e-9); i++) {
        double y = place_y(f, i * f->y_step);
        svg_line(out, f->left - 4, y, f->left, y, "#222", 1);
        if (i > 0)
            svg_line(out, f->left, y, f->left + WIDTH, y, "#e4e4e4", 0.7);
        snprintf(text, sizeof(text), "%g", i * f->y_step);
        svg_text(out, f->left - 7, y + 4, SVG_END, SMALL, text);
    }
    svg_text(out, f->left + WIDTH / 2.0, bottom + 36, SVG_MIDDLE, SMALL, f->plan->swept);
    svg_text_up(out, f->left - 46, f->top + HEIGHT / 2.0, SMALL, f->name);
}

static void draw_point(FILE *out, const struct field *f, size_t i, const char *color)
{
    const struct result *r = &f->plan->results[i];
    struct estimate e = f->value(r);
    double x = place_x(f, f->plan->at[i / f->plan->compared]), low, high;

    if (e.mean > f->y_max) {
        svg_arrow(out, x, f->top, 9, color);
        return;
    }
    if (!isnan(e.half) && e.half > 0) {
        low = place_y(f, fmax(0, e.mean - e.half));
        high = place_y(f, e.mean + e.half);
        svg_line(out, x, low, x, high, color, 1.2);
        svg_line(out, x - 3, low, x + 3, low, color, 1.2);
        if (e.mean + e.half <= f->y_max)
            svg_line(out, x - 3, high, x + 3, high, color, 1.2);
    }
    svg_dot(out, x, place_y(f, e.mean), 3, color, r->steady);
}

/* The values of a list may be in any order: the place of the one that comes after this one from the left, or first. */
static size_t next_value(const struct plan *plan, const size_t *last)
{
    size_t count = plan->count / plan->compared, found = count;

    for (size_t i = 0; i < count; i++)
        if ((!last || plan->at[i] > plan->at[*last] || (plan->at[i] == plan->at[*last] && i > *last)) &&
            (found == count || plan->at[i] < plan->at[found]))
            found = i;
    return found;
}

/* Up to the upper edge, where the next point is beyond. */
static void draw_curve(FILE *out, const struct field *f, size_t which)
{
    const struct plan *plan = f->plan;
    const char *color = colors[which % COLORS];
    double *points = mem_array(2 * plan->count + 2, sizeof(*points));
    size_t count = 0, last = 0, at = next_value(plan, NULL);
    bool beyond = false;

    for (; at < plan->count / plan->compared && !beyond; last = at, at = next_value(plan, &last)) {
        const struct result *result = &plan->results[at * plan->compared + which],
                            *before = &plan->results[last * plan->compared + which];
        double x = plan->at[at], y = f->value(result).mean;
        if (!result->done)
            continue;
        beyond = y > f->y_max;
        if (beyond && count > 0) {
            double before_x = plan->at[last], before_y = f->value(before).mean;
            x = before_x + (x - before_x) * (f->y_max - before_y) / (y - before_y);
        }
        if (beyond && (count == 0 || !before->done))
            break;
        points[2 * count] = place_x(f, x);
        points[2 * count++ + 1] = place_y(f, y);
    }
    if (count > 1)
        svg_curve(out, points, count, color, 1.5);
    for (size_t i = which; i < plan->count; i += plan->compared)
        if (plan->results[i].done)
            draw_point(out, f, i, color);
    free(points);
}

/* All of a text, in as many lines as it takes; returns where the next one would be. out NULL: it is only measured. */
static double draw_lines(FILE *out, double x, double y, double width, double size, const char *text)
{
    while (*text != '\0') {
        size_t bytes = svg_fit(text, width, size);
        char *line = mem_strndup(text, bytes);
        if (out)
            svg_text(out, x, y, SVG_START, size, line);
        free(line);
        y += 1.4 * size;
        text += bytes;
    }
    return y;
}

static double draw_legend(FILE *out, const struct plan *plan, double x, double y, double width)
{
    double at = x;

    for (size_t i = 0; plan->compared > 1 && i < plan->compared; i++) {
        char *text = mem_format("%s = %s", plan->compared_key, plan->names[i]);
        double needs = 26 + svg_text_width(text, strlen(text), SMALL) + 16;
        if (at > x && at + needs > x + width) {
            at = x;
            y += 17;
        }
        if (out) {
            svg_line(out, at, y - 4, at + 20, y - 4, colors[i % COLORS], 1.5);
            svg_dot(out, at + 10, y - 4, 3, colors[i % COLORS], true);
        }
        y = draw_lines(out, at + 26, y, x + width - at - 26, SMALL, text) - 1.4 * SMALL;
        at += needs;
        free(text);
    }
    return plan->compared > 1 ? y + 17 : y;
}

static bool varies(const struct plan *plan, const char *key)
{
    return strcmp(plan->swept, key) == 0 || strcmp(plan->compared_key, key) == 0;
}

/* With the machine, if it is one, and the jobs, if they are one workload. */
static char *title(const struct plan *plan)
{
    const struct config *c = &plan->configs[0];
    bool many = varies(plan, "workload") || varies(plan, "trace");
    const char *name = many ? "several workloads" : c->workload_name;
    const char *queue = c->world.saturated ? ", a queue that is never empty" : "";
    const char *placed = c->world.core.topology == TOPOLOGY_CUBE && !varies(plan, "allocator") ? ", placed by " : "";
    const char *by = placed[0] != '\0' ? core_allocator_name(c->world.core.allocator) : "";
    uint64_t processors = world_processors(&c->world);

    for (size_t i = 1; i < plan->count; i++)
        if (plan->configs[i].world.nhosts != c->world.nhosts || world_processors(&plan->configs[i].world) != processors)
            return mem_format("%s%s%s%s", name, queue, placed, by);
    return mem_format("%s%s%s%s, on %d host%s with %llu processor%s", name, queue, placed, by, c->world.nhosts,
                      c->world.nhosts == 1 ? "" : "s", (unsigned long long)processors, processors == 1 ? "" : "s");
}

/* Returns where the fields begin. */
static double draw_head(FILE *out, const struct plan *plan, double width)
{
    char *text = title(plan);
    bool rings = false;
    double y = draw_lines(out, 16, 26, width - 32, LARGE, text);

    for (size_t i = 0; i < plan->count; i++)
        rings = rings || (plan->results[i].done && !plan->results[i].steady);
    y = draw_legend(out, plan, 16, y + 2, width - 32);
    y = draw_lines(
        out, 16, y, width - 32, SMALL,
        rings ? "Whiskers: 95 % intervals. Rings: not steady, the mean grows with the length of the run. Arrows: "
                "beyond the axis."
              : "Whiskers: 95 % intervals.");
    free(text);
    return y + 4;
}

bool plot_possible(const struct plan *plan)
{
    bool numbers = plan->at && plan->swept[0] != '\0';

    for (size_t i = 0; numbers && i < plan->count / plan->compared; i++)
        numbers = isfinite(plan->at[i]) && plan->at[i] >= 0;
    return numbers;
}

void plot(FILE *out, const struct plan *plan)
{
    struct field fields[] = {{plan, "mean turnaround, s", turnaround, if_steady, 0, 0, 0, 0, 0, 0},
                             {plan, "utilisation, %", utilisation, if_done, 0, 0, 0, 0, 0, 0}};
    size_t first = plan->configs[0].world.saturated ? 1 : 0; /* turnaround has no meaning there */
    double width = (double)(2 - first) * (LEFT + WIDTH + RIGHT), top = draw_head(NULL, plan, width);

    svg_begin(out, width, top + HEIGHT + BELOW);
    draw_head(out, plan, width);
    for (size_t i = first; i < 2; i++) {
        fields[i].left = LEFT + (double)(i - first) * (LEFT + WIDTH + RIGHT);
        fields[i].top = top;
        set_ranges(&fields[i]);
        draw_axes(out, &fields[i]);
        for (size_t k = 0; k < plan->compared; k++)
            draw_curve(out, &fields[i], k);
    }
    svg_end(out);
}
