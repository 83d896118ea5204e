/* decisions.c - what administrators decide, by name: so not of the table alone, which a test of versions replaces. */
#include "config.h"

#include "lib/wire/wire.h"

bool wire_may_be_signed(enum wire_type type)
{
    return type == WIRE_cancel || type == WIRE_kill || type == WIRE_hold || type == WIRE_release || type == WIRE_top ||
           type == WIRE_signal_job || type == WIRE_drain || type == WIRE_remove_host || type == WIRE_set ||
           type == WIRE_note;
}
