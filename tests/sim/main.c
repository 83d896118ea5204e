/* main.c - sim: the core in a simulated cluster. Without arguments it is a test program (TAP): all scenarios and 20,000
 * walks. */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Walks and stimuli of a test run: ELMER_TEST_FULL takes long, under valgrind each is fifty times slower. */
static void choose_length(uint64_t *walks, uint64_t *events)
{
    const char *full = getenv("ELMER_TEST_FULL"), *preload = getenv("LD_PRELOAD");

    *walks = 20000;
    *events = 200;
    if (full && full[0] != '\0') {
        *walks = 80000;
        *events = 400;
    }
    if (preload && strstr(preload, "vgpreload"))
        *walks = 320;
}

static int run_tests(uint64_t walks, uint64_t events)
{
    const char *srcdir = getenv("srcdir");
    char folder[900];
    bool good = true;
    int n;

    snprintf(folder, sizeof(folder), "%s/tests/sim/scenarios", srcdir ? srcdir : ".");
    n = scenario_tests(folder, 1, &good);
    if (n == 0)
        printf("Bail out! no scenarios in %s\n", folder);
    good &= n > 0 && walk_tests(walks, events, n + 1);
    good &= cube_tests(walks / 40, n + 1 + WALK_TESTS);
    good &= arrays_tests(walks / 20 + 100, n + 2 + WALK_TESTS);
    printf("1..%d\n", n + WALK_TESTS + 2);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    uint64_t walks, events;

    setvbuf(stdout, NULL, _IOLBF, 0);
    choose_length(&walks, &events);
    if (argc == 1)
        return run_tests(walks, events);
    if (strcmp(argv[1], "short") == 0 && argc == 2)
        return run_tests(960, 200);
    if (strcmp(argv[1], "arrays") == 0 && argc == 2)
        return arrays_tests(walks / 20 + 100, 1) ? 0 : 1;
    if (strcmp(argv[1], "walk") == 0)
        return walk_main(argc - 2, argv + 2);
    if (strcmp(argv[1], "scenario") == 0)
        return scenario_main(argc - 2, argv + 2);
    fprintf(stderr, "usage: sim                     all tests\n"
                    "       sim short               the same with few walks\n"
                    "       sim arrays              walks with arrays only\n"
                    "       sim walk [--seed S] [--walks N] [--events M] [--hash] [--trace]\n"
                    "       sim scenario FILE...    the timelines\n");
    return 2;
}
