/* caps.h - which capabilities each of rsd's processes keeps; the table with the reasons is in caps.c. */
#ifndef RSD_CAPS_H
#define RSD_CAPS_H

#include "lib/base/err.h"

/* A supervisor: until it knows its job's user, and from then on. */
enum caps_of { CAPS_ROOT_HALF, CAPS_SUPERVISOR_BEGIN, CAPS_SUPERVISOR, CAPS_ESCAPES, CAPS_NOTHING, CAPS_OF_COUNT };
/* What the root half takes up for one errand only. */
enum caps_errand { CAPS_REMOVE, CAPS_SYSTEMD, CAPS_AUTOGROUP, CAPS_ERRAND_COUNT };

/* Keep what the table says, of what is there, for good: effective, permitted, nothing inheritable or ambient.
 * CAPS_NOTHING allocates nothing, for use after fork. 0 or -errno. */
int caps_keep(enum caps_of who);
void caps_take(enum caps_errand errand);
void caps_lay_down(void);
/* So that not even a set-user-id program could bring one back. Needs CAP_SETPCAP. */
int caps_empty_bounding_set(void);

#endif
