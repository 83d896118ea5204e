/* threads.c - how many threads the runtimes of a process make.
 *
 * Each of them counts processors in a way of its own, and not all of them look at the CPU mask; those that a program
 * has loaded together do not know of each other. The names are a list of ours, and the values are made here from the
 * processors of the start, which the root half has judged: nothing of this comes from elmer, and no ticket covers it.
 *
 * A library that reads OMP_NUM_THREADS where it has no variable of its own must not be given its own if the user has
 * set that: it would go over what he has said.
 */
#include "config.h"

#include "rsd/sup/threads.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *general; /* general: read where there is no such variable; NULL: none */
} variables[THREADS_VARIABLES] = {
    {"OMP_NUM_THREADS", NULL},
    {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"},
    {"MKL_NUM_THREADS", "OMP_NUM_THREADS"},
    {"JULIA_NUM_THREADS", NULL},
    {"RAYON_NUM_THREADS", NULL},
    {"GOMAXPROCS", NULL},
    {"PYTHON_CPU_COUNT", NULL},
};

/* They are ours to set: the user has not. OpenBLAS reads GOTO_NUM_THREADS too. */
static bool is_free(const struct wire_strs *given, const char *name, const char *general)
{
    if (environment_value(given, name) || (general && environment_value(given, general)))
        return false;
    return strcmp(name, "OPENBLAS_NUM_THREADS") != 0 || !environment_value(given, "GOTO_NUM_THREADS");
}

void threads_set(struct threads *threads, const struct wire_strs *given, size_t processors)
{
    size_t used = 0;
    *threads = (struct threads){.count = 0};
    if (processors == 0)
        return;
    snprintf(threads->number, sizeof(threads->number), "%zu", processors);
    for (size_t i = 0; i < THREADS_VARIABLES; i++) {
        const char *name = variables[i].name;
        if (!is_free(given, name, variables[i].general))
            continue;
        threads->settings[threads->count++] = (struct setting){name, threads->number};
        used += (size_t)snprintf(threads->added + used, sizeof(threads->added) - used, "%s%s=%s", used ? " " : "", name,
                                 threads->number);
    }
    threads->settings[threads->count++] = (struct setting){"ELMER_ADDED", threads->added};
}
