/* heard.h - what a room has said over the links of tests/fuzz/links.h, which stand in place of lib/net/link.h. */
#ifndef TESTS_UNIT_ELMER_FAKES_HEARD_H
#define TESTS_UNIT_ELMER_FAKES_HEARD_H

#include "tests/fuzz/links.h"

enum { HEARD_MAX = 2048 };

/* The next message of this type over this link, which must have come; it lives until heard_forget(). */
const struct wire_message *heard(int link, enum wire_type type);
/* How many of this type were not looked at yet. */
size_t heard_count(int link, enum wire_type type);
/* An error with these words is the next one; its code. */
const char *heard_error(int link, const char *words);
/* Nothing was said over any link that was not looked at. */
void heard_nothing(void);
void heard_forget(void);
/* As if it had been said over this link; for what goes another way than by a link, with a number beyond LINKS. */
void heard_put(int link, const struct wire_message *message);
/* The peer says this. */
void say(int link, const struct wire_message *message);

#endif
