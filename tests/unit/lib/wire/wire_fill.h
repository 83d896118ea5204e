/* wire_fill.h - messages made from the tables, for tests that go over every message. */
#ifndef TESTS_UNIT_LIB_WIRE_WIRE_FILL_H
#define TESTS_UNIT_LIB_WIRE_WIRE_FILL_H

#include "lib/wire/wire.h"

/* A valid message of that type; seed chooses the values, those at the limits included. Free with wire_fill_free(). */
void wire_fill(struct wire_message *message, enum wire_type type, unsigned seed);
void wire_fill_free(struct wire_message *message);
/* Fails the running test unless both say the same. */
void wire_assert_same(const struct wire_message *a, const struct wire_message *b);

#endif
