/* test_plot.c - pictures of results that are made up: all of the words are there, nothing is outside. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esim/keys.h"
#include "esim/plot.h"
#include "esim/svg.h"

static char *picture; /* the one that was drawn last */

static void draw(const struct plan *plan)
{
    size_t size;
    FILE *out;

    free(picture);
    out = open_memstream(&picture, &size);
    assert_non_null(out);
    plot(out, plan);
    assert_int_equal(fclose(out), 0);
}

static int count(const char *what)
{
    int found = 0;

    for (const char *at = picture; (at = strstr(at, what)); at++)
        found++;
    return found;
}

/* The words of all texts, one after the other. */
static char *words(void)
{
    char *text = calloc(1, strlen(picture) + 1), *end = text;

    assert_non_null(text);
    for (const char *at = picture; (at = strstr(at, "<text"));) {
        at = strchr(at, '>') + 1;
        while (*at != '<')
            *end++ = *at++;
    }
    return text;
}

static void expect_words(const char *what)
{
    char *all = words();

    if (!strstr(all, what))
        fail_msg("'%s' is not in '%s'", what, all);
    free(all);
}

/* Each text ends before the right edge, by the width that is reckoned with; each line and dot is inside. */
static void check_inside(void)
{
    double width, height, x, y, size;
    const char *at = strstr(picture, "viewBox=\"0 0 ");

    assert_int_equal(sscanf(at, "viewBox=\"0 0 %lf %lf\"", &width, &height), 2);
    for (at = picture; (at = strstr(at, "<text ")); at++) {
        const char *text = strchr(at, '>') + 1;
        if (sscanf(at, "<text x=\"%lf\" y=\"%lf\" font-size=\"%lf\" text-anchor=\"start\">", &x, &y, &size) != 3)
            continue;
        if (!strstr(at, "text-anchor=\"start\"") || strstr(at, "text-anchor=\"start\"") > text)
            continue;
        assert_true(x + svg_text_width(text, strcspn(text, "<"), size) <= width && y <= height);
    }
    for (at = picture; (at = strstr(at, "<circle ")); at++) {
        assert_int_equal(sscanf(at, "<circle cx=\"%lf\" cy=\"%lf\"", &x, &y), 2);
        assert_true(x >= 0 && x <= width && y >= 0 && y <= height);
    }
}

static struct plan plan_of(const char *sweep, const char *compare)
{
    struct config config;
    struct plan plan;
    char fault[300];

    keys_default(&config);
    config.jobs_max = 100;
    if (!plan_make(&plan, &config, sweep, compare, fault, sizeof(fault)))
        fail_msg("%s", fault);
    for (size_t i = 0; i < plan.count; i++)
        plan.results[i] = (struct result){.done = true,
                                          .steady = true,
                                          .turnaround = {4 + (double)i, 0.5},
                                          .utilisation = {0.1 + (double)i / 100, 0.01}};
    return plan;
}

static void test_curves(void **state)
{
    struct plan plan = plan_of("load=0.5..2:4", "allocator=v1,v2");

    (void)state;
    assert_true(plot_possible(&plan));
    draw(&plan);
    assert_int_equal(count("<polyline"), 4);
    assert_int_equal(count("<circle"), 2 * 8 + 2); /* and two in the legend */
    assert_int_equal(count("fill=\"#fff\" stroke"), 0);
    assert_int_equal(count(">0</text>"), 4); /* both axes of both fields begin there */
    expect_words("procs [1,8], on 16 hosts with 16 processors");
    expect_words("allocator = v2");
    expect_words("utilisation, %");
    check_inside();
    plan_fini(&plan);
}

/* A curve goes from the left to the right, in whatever order the values were said. */
static void test_any_order(void **state)
{
    struct plan plan = plan_of("load=1,0.2,0.6", NULL);
    double x[3];

    (void)state;
    draw(&plan);
    assert_int_equal(count("<polyline"), 2);
    assert_int_equal(
        sscanf(strstr(strstr(picture, "<polyline"), "points=\""), "points=\" %lf,%*f %lf,%*f %lf", &x[0], &x[1], &x[2]),
        3);
    assert_true(x[0] < x[1] && x[1] < x[2]);
    plan_fini(&plan);
}

/* What is not steady does not say how far the axis goes. */
static void test_beyond(void **state)
{
    struct plan plan = plan_of("load=0.5..2:4", NULL);

    (void)state;
    plan.results[3].steady = plan.results[2].done = false;
    plan.results[3].turnaround.mean = 5000;
    plan.results[1].turnaround.half = NAN;
    draw(&plan);
    assert_int_equal(count("<path"), 1);
    assert_int_equal(count("fill=\"#fff\" stroke"), 1); /* its utilisation */
    assert_int_equal(count(">5000<"), 0);
    expect_words("Rings: not steady");
    check_inside();
    for (size_t i = 0; i < 4; i++)
        plan.results[i].steady = false; /* then all of it is shown */
    draw(&plan);
    assert_int_equal(count("<path"), 0);
    assert_int_equal(count(">6000<"), 1);
    plan.configs[0].world.saturated = true;
    draw(&plan);
    assert_int_equal(count("mean turnaround"), 0);
    plan_fini(&plan);
}

static void test_words(void **state)
{
    static const char name[] =
        "/srv/traces/of-all-the-clusters-that-there-are/and-a-long-name-without-any-blank-in-it.swf.gz";
    struct plan plan = plan_of("load=1,2", "policy=fcfs,fcfs,fcfs,fcfs,fcfs,fcfs,fcfs");

    (void)state;
    snprintf(plan.configs[0].workload_name, sizeof(plan.configs[0].workload_name), "%s", name);
    draw(&plan);
    expect_words("in-it.swf.gz, on 16 hosts");
    assert_int_equal(count("policy = fcfs"), 7);
    check_inside();
    snprintf(plan.configs[0].workload_name, sizeof(plan.configs[0].workload_name), "caf\xe9\n <&>");
    draw(&plan);
    expect_words("caf?? &lt;&amp;&gt;, on");
    plan_fini(&plan);
    plan = plan_of("allocator=v1,v2", NULL);
    assert_false(plot_possible(&plan));
    plan_fini(&plan);
    plan = plan_of(NULL, "levels=1,2");
    assert_false(plot_possible(&plan));
    plan_fini(&plan);
    plan = plan_of("share=10%,20%", NULL);
    assert_true(plot_possible(&plan));
    plan_fini(&plan);
}

static void test_fit(void **state)
{
    (void)state;
    assert_int_equal(svg_fit("abc", 1000, 10), 3);
    assert_int_equal(svg_fit("abc def", 31.1, 10), 4);                  /* five characters */
    assert_int_equal(svg_fit("abcdefgh", 31.1, 10), 5);                 /* no blank */
    assert_int_equal(svg_fit("\xc3\xa9\xc3\xa9\xc3\xa9", 12.5, 10), 4); /* two characters of two bytes */
    assert_int_equal(svg_fit("abc", 1, 10), 3);                         /* it fits nowhere */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves), cmocka_unit_test(test_any_order), cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_words),  cmocka_unit_test(test_fit),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    free(picture);
    return failed;
}
