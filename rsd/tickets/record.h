/* record.h - the tickets that were used here, on disk: DIR/used/KEY is the blocks of lib/ticket/window.h, DIR/used/last
 * for whom that was written last. */
#ifndef RSD_TICKETS_RECORD_H
#define RSD_TICKETS_RECORD_H

#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/ticket/window.h"

/* For whom a ticket was marked as used. Without padding: it is compared as bytes. */
struct record_user {
    uint8_t key[TICKET_KEY_BYTES];
    uint64_t counter, task, job, attempt;
};
/* What goes to the recorder, whole or not at all (PIPE_BUF). */
struct record {
    uint8_t key[TICKET_KEY_BYTES];
    uint32_t slot;
    struct record_user last;
    uint8_t block[TICKET_BLOCK_BYTES];
};

/* Wait until the recorder of an earlier rsd has written its last, a few seconds at most; read all. `used` is an open
 * directory, which stays locked as long as it, or a copy of it in a child, is open. */
int record_load(int used, struct ticket_window *window, struct err *err);
/* Zeros: nobody is known. */
void record_load_last(int used, struct record_user *last);
/* The process that writes, in SCHED_OTHER; takes the lock with it. *fd: where records go. Its pid or -errno. It ends,
 * when everything is on disk, after its parent. */
pid_t record_start(int used, int *fd);

#endif
