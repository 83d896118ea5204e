/* outstanding.h - the requests of one local program that elmer has not answered, and the bytes that are kept for them.
 */
#ifndef RSD_NET_OUTSTANDING_H
#define RSD_NET_OUTSTANDING_H

#include "lib/quota/quota.h"

enum { REQUESTS_MAX = 64 }; /* of one program */

struct outstanding {
    struct quota *quota; /* of the user, where the bytes are counted; NULL: nowhere */
    struct {
        uint64_t id;
        size_t bytes;
    } items[REQUESTS_MAX];
    unsigned count;
};

bool outstanding_has(const struct outstanding *all, uint64_t id);
/* There is a place, and it is none of them. False: the user has too much already, why in text. */
bool outstanding_add(struct outstanding *all, struct quotas *quotas, uint64_t id, size_t bytes, char text[QUOTA_TEXT]);
void outstanding_remove(struct outstanding *all, uint64_t id);

#endif
