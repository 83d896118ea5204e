/* openmp.c - an OpenMP program that bench/run openmp measures: its threads work long and short by turns, with a barrier
 * after each, so that they wait for each other a third of the time.
 *
 *   openmp WAIT-MS ROUNDS    begin and end (CLOCK_MONOTONIC, ns), and what all threads have waited, in s */
#define _GNU_SOURCE
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void work(long steps)
{
    volatile double x = 1;
    for (long i = 0; i < steps; i++)
        x = x * 0.999999 + 0.000001;
}

/* Steps of work in a millisecond. */
static long steps_of_ms(void)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < 20; i++) {
        int64_t begin = now_ns(), took;
        work(1000000);
        took = now_ns() - begin;
        best = took < best ? took : best;
    }
    return (long)(1e12 / (double)best);
}

int main(int argc, char **argv)
{
    double wait_ms = argc > 1 ? atof(argv[1]) : 1, waited = 0;
    long rounds = argc > 2 ? atol(argv[2]) : 100, steps = steps_of_ms();
    int64_t begin = now_ns();
#pragma omp parallel reduction(+ : waited)
    for (long i = 0; i < rounds; i++) {
        work((long)((double)steps * wait_ms * ((i + omp_get_thread_num()) % 2 ? 1.5 : 0.5)));
        double since = omp_get_wtime();
#pragma omp barrier
        waited += omp_get_wtime() - since;
    }
    printf("%lld %lld %.6f\n", (long long)begin, (long long)now_ns(), waited);
    return 0;
}
