/* reference_decode.h - a second decoder, to compare with. */
#ifndef ELMER_TESTS_REFERENCE_DECODE_H
#define ELMER_TESTS_REFERENCE_DECODE_H

#include "libelmer/wire/wire.h"

/* As wire_decode(); the texts of refusals differ. Free with reference_fini(). */
int reference_decode(const char *json, size_t size, unsigned minor, struct wire_message *message, struct err *err);
void reference_fini(struct wire_message *message);

#endif
