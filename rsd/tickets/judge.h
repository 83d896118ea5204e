/* judge.h - what the root half asks about jobs and their tickets. */
#ifndef RSD_TICKETS_JUDGE_H
#define RSD_TICKETS_JUDGE_H

#include "lib/ticket/keys.h"
#include "lib/ticket/program.h"
#include "lib/ticket/ticket.h"
#include "lib/ticket/window.h"
#include "rsd/tickets/record.h"

struct judge {
    struct ticket_keys *keys; /* without the secret; NULL: trust stays as it is */
    struct ticket_trust trust;
    struct ticket_window *window;
    const char *hosts, *users; /* see struct ticket_serve */
    int record_fd;             /* to the recorder, non-blocking */
    /* Whose ticket was marked last, and over the connection before: either side may have ended before the other knew.
     * So the same start may be asked for once more. What is marked earlier was answered, because one question comes
     * after the answer to the other, unless one of them has ended again in between. */
    struct record_user last, unsure;
    int64_t full_until_ms; /* it was waited for in vain: who asks before that is refused at once */
    bool recorder_gone;    /* so nothing was decided, and nothing will be: this process ends, and the next is asked */
    int grant_fd;          /* struct ticket_grant go there; -1: nowhere */
    /* Of a unit: take the next connection of elmer-spawn, which is joined again when either has begun anew, and wait so
     * long for one; -1: none has come. NULL: grant_fd stays what it is. */
    int (*next_grantee)(int wait_ms);
};
enum { GRANTEE_MS = 1000, RECORDER_MS = 1000 /* it waits for the disk */, FULL_MS = 5000 };

/* As it came, with ask->size bytes. */
void judge(struct judge *judge, struct ticket_ask *ask, const char *bytes, struct ticket_verdict *verdict);
/* Answer until the other side is gone, and say to systemd meanwhile that we live. What is marked as used is answered,
 * too: SIGTERM, and SIGCHLD of the other two, are taken between two answers only. */
void judge_all(struct judge *judge, int fd);

#endif
