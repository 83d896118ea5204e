/* host_pages.h - all that elmer says of its hosts, for administrators. */
#ifndef CLIENT_HOST_PAGES_H
#define CLIENT_HOST_PAGES_H

#include "libelmer/client.h"

struct host_pages {
    struct wire_message *items; /* hosts */
    size_t count;
};

/* An enum elmer_result. What has come is valid until host_pages_free(), which is called in any case. */
int host_pages_ask(struct elmer *elmer, struct host_pages *pages, struct elmer_error *error);
void host_pages_free(struct host_pages *pages);

#endif
