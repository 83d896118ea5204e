/* mail.h - what a user is told of his job by mail. */
#ifndef CLIENT_MAIL_H
#define CLIENT_MAIL_H

#include <stdio.h>

#include "libelmer/elmer.h"

/* "job 57 (sim) ended: exit 0": one line, without control characters, malloc'd. begin: it has begun. */
char *mail_subject(const struct elmer_job *job, bool begin);
/* The whole mail, headers and all, to this user. host: this one. */
void mail_write(FILE *out, const struct elmer_job *job, bool begin, const char *user, const char *host, int64_t now_ms);

#endif
