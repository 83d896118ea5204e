/* passes.h - what passes through the network half unchanged. */
#ifndef RSD_PASSES_H
#define RSD_PASSES_H

#include <stdbool.h>

#include "lib/wire/wire.h"

/* From elmer to the root half, and back. */
static const bool passes_down[WIRE_TYPE_COUNT] = {
    [WIRE_order] = true,     [WIRE_open] = true,   [WIRE_start] = true,       [WIRE_taken] = true,
    [WIRE_end] = true,       [WIRE_forget] = true, [WIRE_pvm_spawned] = true, [WIRE_pvm_finish] = true,
    [WIRE_read_file] = true, [WIRE_signal] = true,
};
static const bool passes_up[WIRE_TYPE_COUNT] = {
    [WIRE_ordered] = true,       [WIRE_opened] = true,    [WIRE_open_failed] = true, [WIRE_started] = true,
    [WIRE_start_failed] = true,  [WIRE_line] = true,      [WIRE_exited] = true,      [WIRE_empty] = true,
    [WIRE_memory_struck] = true, [WIRE_lost] = true,      [WIRE_pvm_spawn] = true,   [WIRE_pvm_ready] = true,
    [WIRE_pvm_failed] = true,    [WIRE_file_part] = true,
};

#endif
