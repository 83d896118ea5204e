/* show.h - jobs as tables for people. */
#ifndef CLIENT_SHOW_H
#define CLIENT_SHOW_H

#include <stddef.h>
#include <stdio.h>

#include "libelmer/elmer.h"

enum show_list {
    SHOW_RUNNING,
    SHOW_QUEUED,
    SHOW_ENDED,
    SHOW_HISTORY /* ended ones too, with what they have used */,
    SHOW_COUNT
};
/* The list a job belongs to, by its state. */
enum show_list show_list_of(const struct elmer_job *job);
/* The jobs of one list; heading: name the list first, and say so when it is empty. width 0: no terminal, nothing is
 * cut. now_ms: Unix time. */
void show_jobs(FILE *out, const struct elmer_jobs *jobs, enum show_list list, bool heading, size_t width,
               int64_t now_ms);

#endif
