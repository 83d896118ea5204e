/* threads.c - how many threads the runtimes of a process make.
 *
 * Each of them counts processors in a way of its own, and not all of them look at the CPU mask; those that a program
 * has loaded together do not know of each other. The names are a list of ours, and the values are made here from the
 * processors of the start, which the root half has judged: nothing of this comes from elmer, and no ticket covers it.
 *
 * OpenBLAS and MKL have variables of their own, and read OMP_NUM_THREADS where these are not set. They are not: what is
 * set here stands before a job's script begins, and would go over the OMP_NUM_THREADS that the script exports.
 */
#include "config.h"

#include "rsd/sup/threads.h"

#include <stdio.h>

static const char *const variables[THREADS_VARIABLES] = {"OMP_NUM_THREADS", "JULIA_NUM_THREADS", "RAYON_NUM_THREADS",
                                                         "GOMAXPROCS", "PYTHON_CPU_COUNT"};

void threads_set(struct threads *threads, const struct wire_strs *given, size_t processors)
{
    size_t used = 0;
    *threads = (struct threads){.count = 0};
    if (processors == 0)
        return;
    snprintf(threads->number, sizeof(threads->number), "%zu", processors);
    for (size_t i = 0; i < THREADS_VARIABLES; i++) {
        const char *name = variables[i];
        if (environment_value(given, name))
            continue;
        threads->settings[threads->count++] = (struct setting){name, threads->number};
        used += (size_t)snprintf(threads->added + used, sizeof(threads->added) - used, "%s%s=%s", used ? " " : "", name,
                                 threads->number);
    }
    threads->settings[threads->count++] = (struct setting){"ELMER_ADDED", threads->added};
}
