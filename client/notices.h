/* notices.h - what esubmit submits beside a job so that its user is told: doc/03-daemons.md, Notices. */
#ifndef CLIENT_NOTICES_H
#define CLIENT_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "client/environment.h"
#include "lib/job/mail_at.h"
#include "libelmer/elmer.h"

struct notices {
    const char *command;             /* that runs at the end; NULL: none */
    char mail_at[MAIL_AT_TEXT];      /* mail at these; "": none */
    char *here;                      /* where the command runs */
    struct environment *environment; /* of the job; not ours */
};
void notices_fini(struct notices *notices);

/* The value of --mail-at, and of --notify. false: it has said what is wrong. */
bool notices_mail_at(struct notices *notices, const char *list);
bool notices_command(struct notices *notices, const char *command);
/* Before anything is submitted: what will be needed here is here. -1, or the exit code. */
int notices_check(struct notices *notices);
/* The notices of this job. -1, or the exit code: it has said that the job goes on and nobody will be told. */
int notices_submit(struct elmer *elmer, const struct notices *notices, uint64_t job);

#endif
