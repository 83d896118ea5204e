/* bed.c - see bed.h. */
#include "config.h"

#include "tests/unit/esim/bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "esim/keys.h"

double series[ROOM];

struct config config_of(const char *const *pairs)
{
    struct config config;
    char fault[300];

    keys_default(&config);
    for (; *pairs; pairs += 2)
        if (!keys_set(&config, pairs[0], pairs[1], fault, sizeof(fault)))
            fail_msg("%s", fault);
    if (!keys_complete(&config, fault, sizeof(fault)))
        fail_msg("%s", fault);
    return config;
}

struct result simulate(struct config config)
{
    struct result result;

    run(&config, &result, series, ROOM, 1, NULL);
    if (!result.done)
        fail_msg("%s", result.fault);
    return result;
}

void expect_near(double value, double expected, double most)
{
    if (!(fabs(value - expected) <= most))
        fail_msg("%g is not within %g of %g", value, most, expected);
}
