/* admin.h - what administrators ask about hosts and settings. */
#ifndef ELMER_REQUESTS_ADMIN_H
#define ELMER_REQUESTS_ADMIN_H

#include "elmer/requests/internal.h"

void admin_query_hosts(struct request *request);
void admin_remove_host(struct request *request);

/* setting.c: query_settings; set, and its answer. */
void setting_query(struct request *request);
void setting_begin(struct request *request);
void setting_answer(struct request *request);

/* decide.c: the core is asked about a job, about a host; a decision of him who asks, to be filled in further. */
void decide_job(struct request *request, enum event_type type);
void decide_top(struct request *request);
void decide_drain(struct request *request);
void decide_note(struct request *request);
void decide_begin(const struct request *request, const char *what, struct decision *decision);
/* log.c: query_log. */
void log_query(struct request *request);

#endif
