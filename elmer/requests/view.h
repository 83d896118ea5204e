/* view.h - what users see of a job. */
#ifndef ELMER_REQUESTS_VIEW_H
#define ELMER_REQUESTS_VIEW_H

#include "elmer/store/record.h"
#include "lib/wire/queued_lines.h"
#include "lib/wire/wire.h"

enum { VIEW_TEXT = 1024, VIEW_PAGE_COST = 600 << 10, VIEW_COMMAND_COST = 256 << 10 };

/* The view points into the record and memory. levels: the cluster's number of levels. all: for the owner or an
 * administrator; others are not shown what the job is. */
void view_of(const struct record *record, int levels, bool all, struct arena *memory, struct wire_job_view *view);
/* The same for the lines of a list. */
void view_running(const struct record *record, bool all, struct arena *memory, struct wire_running_line *line);
void view_queued(const struct record *record, bool all, struct arena *memory, struct queued_line *line);
/* An array of which no task waits runs as long as one does. */
const char *view_state(enum job_state state);
/* Why it is in its state, in a sentence; text or "". */
const char *view_reason(const struct record *record, char *text, size_t size);
/* Of a task in its array; -1: it is none. */
int64_t view_index(const struct record *record);
/* An upper bound of the bytes that a string, or a view, takes in a relayed frame, where it is JSON within JSON. */
size_t view_cost_of_text(const char *text);
size_t view_cost(const struct wire_job_view *view);
size_t view_cost_running(const struct wire_running_line *line);
size_t view_cost_queued(const struct queued_line *line);

#endif
