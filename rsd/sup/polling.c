/* polling.c - see polling.h.
 *
 * A job of one processor has nobody to wait for, so nothing is loaded into its programs, which may be many and short.
 *
 * A program that was built with the address sanitizer of gcc ends at once if another library is loaded before the
 * sanitizer's, unless it is told not to look (verify_asan_link_order); who has options of his own for it gets no
 * library.
 */
#include "config.h"

#include "rsd/sup/polling.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set(struct polling *polling, const struct wire_strs *given, const char *name, const char *value)
{
    if (!environment_value(given, name))
        polling->settings[polling->count++] = (struct setting){name, value};
}

static void set_policies(struct polling *polling, const struct wire_strs *given)
{
    if (!environment_value(given, "OMP_WAIT_POLICY")) { /* which the others would go over */
        set(polling, given, "GOMP_SPINCOUNT", "0");
        set(polling, given, "KMP_BLOCKTIME", "0");
    }
    set(polling, given, "OMP_WAIT_POLICY", "passive");
    set(polling, given, "OMPI_MCA_mpi_yield_when_idle", "1");
}

static void set_library(struct polling *polling, const struct wire_strs *given, const char *library)
{
    if (environment_value(given, "LD_PRELOAD") || environment_value(given, "ASAN_OPTIONS") ||
        access(library, R_OK) != 0)
        return;
    polling->library = library;
    set(polling, given, "LD_PRELOAD", library);
    set(polling, given, "ASAN_OPTIONS", "verify_asan_link_order=0");
}

bool polling_waits(const struct wire_strs *given)
{
    const char *processors = environment_value(given, "ELMER_NPROCS");
    return processors && strtoul(processors, NULL, 10) > 1;
}

void polling_set(struct polling *polling, const struct wire_strs *given, const char *library)
{
    const char *spin = environment_value(given, "ELMER_SPIN");
    *polling = (struct polling){.count = 0};
    if (!polling_waits(given))
        return;
    if (!spin || strcmp(spin, "1") != 0)
        set_policies(polling, given);
    set_library(polling, given, library);
}
