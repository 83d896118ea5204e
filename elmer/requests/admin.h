/* admin.h - what administrators ask about hosts. */
#ifndef ELMER_REQUESTS_ADMIN_H
#define ELMER_REQUESTS_ADMIN_H

#include "elmer/requests/internal.h"

void admin_query_hosts(struct request *request);
void admin_remove_host(struct request *request);

#endif
