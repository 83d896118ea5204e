/* words.h - what is known of a job, in words for people. */
#ifndef CLIENT_WORDS_H
#define CLIENT_WORDS_H

#include <stddef.h>
#include <stdio.h>

#include "libelmer/elmer.h"

enum { WORDS_MAX = 64 };

/* "57[12]" for a task of an array. */
const char *words_id(char text[WORDS_MAX], const struct elmer_job *job);
/* From start to end (-1: now), as 1:02:03 or 2d01:02:03; "": it has not begun. text or "". */
const char *words_duration(char text[WORDS_MAX], int64_t from_ms, int64_t to_ms, int64_t now_ms);
const char *words_local_time(char text[WORDS_MAX], int64_t ms); /* Unix time; "": not known */
/* "exit 1", "signal 9"; "": neither. */
const char *words_outcome(char text[WORDS_MAX], const struct elmer_job *job);
/* "ws1,ws2*2": with the number of processors where it is more than one. malloc'd. */
char *words_hosts(const struct elmer_job *job);
/* "time 2h30m, memory 4 GiB for each processor": all that it may not exceed; "": nothing. malloc'd. */
char *words_limits(const struct elmer_job *job);
/* "2h30m" */
void words_put_time(FILE *out, uint64_t ms);
/* Of one with ranks that poll: "ranks 0-3 poll while they wait: ..". malloc'd. */
char *words_polls(const struct elmer_job *job);
/* A command as it may be typed in a shell; of a job script its name and arguments. malloc'd. */
char *words_command(const struct elmer_job *job);

#endif
