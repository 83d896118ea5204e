/* look.h - how a connection to a job's terminal begins, as bytes. Output and input are counted from the begin of the
 * terminal and of the session, so that what was underway when a connection was lost is said again, and nothing twice.
 */
#ifndef LIB_RUN_LOOK_H
#define LIB_RUN_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RUN_LOOK_BYTES = 24, RUN_LOOKING_BYTES = 40 };
/* In the place of a number of bytes seen. */
#define RUN_LOOK_UNSEEN UINT64_MAX       /* what nobody has seen */
#define RUN_LOOK_ALL    (UINT64_MAX - 1) /* all that is kept, also what somebody has seen */

/* A session is one eattach, over however many connections. */
struct run_look {
    uint64_t session;       /* that goes on; 0: a new one */
    uint64_t seen;          /* output up to here has been written; or one of those above */
    uint32_t rows, columns; /* of its terminal; 0: it has none */
};
struct run_looking {
    uint64_t session;
    uint64_t from; /* the output from here on follows */
    uint64_t lost; /* bytes before that nobody has seen and that are not kept any more */
    uint64_t came; /* input of this session that has come; what is behind that is to be sent again */
    uint64_t went; /* ... that has gone on to the terminal */
};

void run_look_pack(const struct run_look *look, uint8_t bytes[RUN_LOOK_BYTES]);
bool run_look_unpack(const uint8_t *bytes, size_t size, struct run_look *look);
void run_looking_pack(const struct run_looking *looking, uint8_t bytes[RUN_LOOKING_BYTES]);
bool run_looking_unpack(const uint8_t *bytes, size_t size, struct run_looking *looking);

#endif
