/* page.h - all that is known of one job, as a page for people. */
#ifndef CLIENT_PAGE_H
#define CLIENT_PAGE_H

#include <stdio.h>

#include "libelmer/elmer.h"

/* now_ms: Unix time. What is not known, or another user's, has no line. */
void page_show(FILE *out, const struct elmer_job *job, int64_t now_ms);
/* The lines below it about who is told: notices are the jobs that tell, as far as they are known. */
void page_show_notices(FILE *out, const struct elmer_job *job, const struct elmer_jobs *notices);

#endif
