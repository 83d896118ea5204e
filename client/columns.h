/* columns.h - equery --format: a table of the columns that a user names. */
#ifndef CLIENT_COLUMNS_H
#define CLIENT_COLUMNS_H

#include <stdbool.h>
#include <stdio.h>

#include "libelmer/elmer.h"

/* list: names separated by commas. false: said which is none, and which there are. */
bool columns_check(const char *list);
/* A heading and a row for each job; width as in table.h. */
void columns_show(FILE *out, const struct elmer_jobs *jobs, const char *list, size_t width, int64_t now_ms);

#endif
