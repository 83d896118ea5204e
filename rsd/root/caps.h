/* caps.h - which capabilities each of rsd's processes keeps; the table with the reasons is in caps.c. */
#ifndef RSD_CAPS_H
#define RSD_CAPS_H

#include "lib/base/err.h"

/* A supervisor when it has the ids of its job's user. */
enum caps_of { CAPS_JOBS, CAPS_SUPERVISOR, CAPS_ESCAPES, CAPS_NOTHING, CAPS_OF_COUNT };

/* Keep what the table says, of what is there, for good: effective, permitted, nothing inheritable or ambient.
 * CAPS_NOTHING allocates nothing, for use after fork. 0 or -errno. */
int caps_keep(enum caps_of who);
/* So that not even a set-user-id program could bring one back. Needs CAP_SETPCAP. */
int caps_empty_bounding_set(void);

#endif
