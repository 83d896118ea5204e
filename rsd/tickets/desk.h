/* desk.h - signs tickets for local users. */
#ifndef RSD_TICKETS_DESK_H
#define RSD_TICKETS_DESK_H

#include <sys/types.h>

#include "lib/ticket/keys.h"
#include "lib/wire/wire.h"

/* Whom this host believes of what others have signed, see struct ticket_serve. */
struct desk_believes {
    const char *hosts, *users;
    const char *deny_users, *deny_groups; /* who has nothing here by another host's word; "": nobody */
    bool required;                        /* else the network half may have made whoever asks */
};
/* A process of its own, in SCHED_OTHER, which serves the listening socket until its parent dies. keys: the parent wipes
 * its copy of the secret then. Its pid or -errno. */
pid_t desk_start(const struct ticket_keys *keys, const struct desk_believes *believes, int listener);
/* How many tickets it counts as: the numbers that it takes, and the time that its lines do. */
uint32_t desk_cost(const struct wire_submit *submit);
/* The ticket for this submission of the user: 0; -EINVAL, with a sentence: it cannot be signed as it is; another
 * -errno: not now. out has TICKET_TEXT_MAX + 1 bytes. */
int desk_sign(const struct ticket_keys *keys, struct ticket_counter *counter, const struct wire_submit *submit,
              uint32_t uid, const char *user, char *out, struct err *err);

/* ---- passes.c ---- */

struct desk_asker {
    int socket; /* connected to it */
    pid_t pid;
    uint32_t uid;
    const char *user;
};
/* The pass for a process of a job, with this key: 0; -EINVAL with a sentence: it gets none; another -errno: not now.
 * out has PASS_TEXT_MAX + 1 bytes. */
int desk_pass(const struct ticket_keys *keys, const struct desk_asker *asker, const char *public_key, char *out,
              struct err *err);
/* The pass for a process of this user, to see the terminal of the job with, whoever's that is. The same. */
int desk_pass_to_look(const struct ticket_keys *keys, const struct desk_asker *asker, uint64_t job,
                      const char *public_key, char *out, struct err *err);
/* Whether a pass is good here, to have something done or shown by: 0; -EINVAL with a sentence: it is not; another
 * -errno: that cannot be found out now. */
int desk_pass_check(struct ticket_keys *keys, const struct desk_believes *believes, const char *text, struct err *err);
/* The same for a process here that asks the one of the pass for something: what is refused here does not matter. */
int desk_pass_trust(struct ticket_keys *keys, const struct desk_believes *believes, const char *text, struct err *err);
/* What the user asks of elmer, signed with its challenge (lib/ticket/warrant.h). As desk_pass(); out has
 * WARRANT_TEXT_MAX + 1 bytes. */
int desk_warrant(const struct ticket_keys *keys, const struct wire_warrant_ask *ask, uint32_t uid, const char *user,
                 char *out, struct err *err);

#endif
