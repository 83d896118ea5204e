/* reference_decode.h - a second decoder, to compare with. */
#ifndef TESTS_UNIT_LIB_WIRE_REFERENCE_DECODE_H
#define TESTS_UNIT_LIB_WIRE_REFERENCE_DECODE_H

#include "lib/wire/wire.h"

/* As wire_decode(); the texts of refusals differ. Free with reference_fini(). */
int reference_decode(const char *json, size_t size, unsigned minor, struct wire_message *message, struct err *err);
void reference_fini(struct wire_message *message);

#endif
