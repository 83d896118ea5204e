#include "config.h"

#include <assert.h>

#include "elmer/launch/launchers/launchers.h"

static const struct launcher *const launchers[LAUNCHER_COUNT] = {
    [LAUNCHER_PLAIN] = &launcher_plain,
    [LAUNCHER_EACH] = &launcher_each,
    [LAUNCHER_PVM] = &launcher_pvm,
};

const struct launcher *launcher_by_kind(enum launcher_kind kind)
{
    assert(kind < LAUNCHER_COUNT && launchers[kind]);
    return launchers[kind];
}
