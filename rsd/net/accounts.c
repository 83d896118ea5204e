/* accounts.c - how many connections and requests each local user may have. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "rsd/net/accounts.h"

enum {
    CROWDED_PER_USER = 64,
    BYTES_OF_ONE = 16 << 10, /* a large request counts as several: it costs more to read */
};

static enum bucket_state take(const struct accounts *accounts, struct account *account, double cost)
{
    return bucket_take(&account->requests, mono_ms(mono_now()), (double)accounts->limits.requests,
                       (double)accounts->limits.burst, cost);
}

enum bucket_state account_request(const struct accounts *accounts, struct account *account, size_t bytes)
{
    size_t more = bytes / BYTES_OF_ONE;

    return account->uid == 0 ? BUCKET_ENOUGH : take(accounts, account, 1 + (double)more);
}

const char *accounts_too_often(const struct accounts *accounts, char *text, size_t size)
{
    (void)snprintf(text, size,
                   "too many requests: a user may send %ld in a second (user_requests in rsd.conf) and %ld at once "
                   "(user_requests_burst); send fewer, or wait a little",
                   accounts->limits.requests, accounts->limits.burst);
    return text;
}

struct account *account_of(struct accounts *accounts, uid_t uid)
{
    struct account *account = accounts->first;

    while (account && account->uid != uid)
        account = account->next;
    if (!account && (account = calloc(1, sizeof(*account)))) {
        account->uid = uid;
        account->next = accounts->first;
        accounts->first = account;
    }
    return account;
}

const char *account_why_not(const struct accounts *accounts, struct account *account, bool crowded, char *text,
                            size_t size)
{
    if (account->uid == 0)
        return NULL;
    if (take(accounts, account, 0) == BUCKET_OVERDRAWN)
        return accounts_too_often(accounts, text, size);
    if (account->connections >= accounts->limits.connections)
        (void)snprintf(text, size,
                       "too many connections: a user may have %ld (user_connections in rsd.conf); end some of them, "
                       "such as esubmit -w, or try again later",
                       accounts->limits.connections);
    else if (crowded && account->connections >= CROWDED_PER_USER)
        (void)snprintf(
            text, size,
            "too many connections: rsd has few places left, and while this is so a user may have %d; try again later",
            CROWDED_PER_USER);
    else
        return NULL;
    return text;
}

void accounts_fini(struct accounts *accounts)
{
    for (struct account *account = accounts->first, *next; account; account = next) {
        next = account->next;
        free(account);
    }
    accounts->first = NULL;
}
