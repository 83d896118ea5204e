#include "config.h"

#include "elmer/engine/launchers.h"

#include <assert.h>
#include <stdio.h>

static bool each_is_asked_for(const struct wire_submit *submit)
{
    return submit->each;
}

static bool pvm_is_asked_for(const struct wire_submit *submit)
{
    return submit->pvm;
}

static bool has_pvm(const struct wire_host_hello *hello)
{
    return hello->pvm;
}

static void tell_of_pvm(struct wire_open *open)
{
    open->pvm = true;
}

/* The last one that is asked for is taken: those further down start their command as those further up do. */
static const struct row {
    bool (*asked)(const struct wire_submit *submit); /* NULL: always */
    const char *needs;                               /* NULL: nothing */
    bool (*offered)(const struct wire_host_hello *hello);
    void (*tell)(struct wire_open *open); /* NULL: hosts need not know */
} rows[LAUNCHER_COUNT] = {
    [LAUNCHER_PLAIN] = {NULL, NULL, NULL, NULL},
    [LAUNCHER_EACH] = {each_is_asked_for, NULL, NULL, NULL},
    [LAUNCHER_PVM] = {pvm_is_asked_for, "PVM", has_pvm, tell_of_pvm},
};

enum launcher_kind launcher_of(const struct wire_submit *submit)
{
    unsigned kind = LAUNCHER_COUNT - 1;
    while (rows[kind].asked && !rows[kind].asked(submit))
        kind--;
    return (enum launcher_kind)kind;
}

const char *launcher_needs(enum launcher_kind kind)
{
    assert(kind < LAUNCHER_COUNT);
    return rows[kind].needs;
}

uint32_t launchers_of_host(const struct wire_host_hello *hello)
{
    uint32_t set = 0;
    for (unsigned kind = 0; kind < LAUNCHER_COUNT; kind++)
        if (!rows[kind].offered || rows[kind].offered(hello))
            set |= 1u << kind;
    return set;
}

const char *launchers_describe(uint32_t set, char *text, size_t size)
{
    size_t used = 0;
    *text = 0;
    for (unsigned kind = 0; kind < LAUNCHER_COUNT && used < size; kind++)
        if (rows[kind].needs)
            used += (size_t)snprintf(text + used, size - used, "%s%s %s", used ? ", " : "", rows[kind].needs,
                                     launchers_have(set, (enum launcher_kind)kind) ? "yes" : "no");
    return text;
}

void launcher_tell_host(enum launcher_kind kind, struct wire_open *open)
{
    assert(kind < LAUNCHER_COUNT);
    if (rows[kind].tell)
        rows[kind].tell(open);
}
