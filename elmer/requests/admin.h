/* admin.h - what administrators ask about hosts and settings. */
#ifndef ELMER_REQUESTS_ADMIN_H
#define ELMER_REQUESTS_ADMIN_H

#include "elmer/requests/internal.h"

void admin_query_hosts(struct request *request);
void admin_remove_host(struct request *request);
void admin_drain(struct request *request);

/* setting.c: query_settings; set, and its answer. */
void setting_query(struct request *request);
void setting_begin(struct request *request);
void setting_answer(struct request *request);

#endif
