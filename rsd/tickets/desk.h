/* desk.h - signs tickets for local users. */
#ifndef RSD_TICKETS_DESK_H
#define RSD_TICKETS_DESK_H

#include <sys/types.h>

#include "lib/ticket/keys.h"
#include "lib/wire/wire.h"

/* A process of its own, in SCHED_OTHER, which serves the listening socket until its parent dies. keys: the parent wipes
 * its copy of the secret then. Its pid or -errno. */
pid_t desk_start(const struct ticket_keys *keys, int listener);
/* The ticket for this submission of the user: 0; -EINVAL, with a sentence: it cannot be signed as it is; another
 * -errno: not now. out has TICKET_TEXT_MAX + 1 bytes. */
int desk_sign(const struct ticket_keys *keys, struct ticket_counter *counter, const struct wire_submit *submit,
              uint32_t uid, const char *user, char *out, struct err *err);

#endif
