/* accounts.h - how many connections and requests each local user may have. Root has no limits. An account is never
 * forgotten, so that nobody gets a full bucket by connecting anew. */
#ifndef RSD_NET_ACCOUNTS_H
#define RSD_NET_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/quota/bucket.h"

/* Of each user but root. */
struct clients_limits {
    long connections;
    long requests, burst; /* in a second; at once */
};

/* A local user who is connected, or has been. */
struct account {
    struct account *next;
    uid_t uid;
    long connections; /* counted by the caller */
    struct bucket requests;
};

struct accounts {
    struct clients_limits limits;
    struct account *first;
};

/* NULL: memory. */
struct account *account_of(struct accounts *accounts, uid_t uid);
/* Take a request of so many bytes from the user's bucket. */
enum bucket_state account_request(const struct accounts *accounts, struct account *account, size_t bytes);
/* Why this user gets no connection now; NULL: he does. crowded: few places are left for all. Returns text. */
const char *account_why_not(const struct accounts *accounts, struct account *account, bool crowded, char *text,
                            size_t size);
/* The sentence for one who sends too many requests. Returns text. */
const char *accounts_too_often(const struct accounts *accounts, char *text, size_t size);
void accounts_fini(struct accounts *accounts);

#endif
