#include "config.h"

#include "elmer/requests/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/memory/map.h"
#include "lib/memory/mem.h"
#include "lib/quota/bucket.h"
#include "lib/base/clock.h"

enum {
    CROWDED_CONNECTIONS = 64,
    BYTES_OF_ONE = 16 << 10, /* a large request counts as several: it costs more to read */
    MAX_KEPT = 4096          /* users without connections whose rate is remembered */
};

struct account {
    uint32_t uid;
    long connections;
    struct bucket requests;
};

struct limits {
    const struct requests_settings *settings;
    struct map accounts; /* by uid */
};

struct limits *limits_create(const struct requests_settings *settings)
{
    struct limits *limits = mem_zalloc(sizeof(*limits));
    limits->settings = settings;
    return limits;
}

void limits_destroy(struct limits *limits)
{
    size_t cursor = 0;
    if (!limits)
        return;
    for (struct account *account; (account = map_next(&limits->accounts, &cursor));)
        free(account);
    map_fini(&limits->accounts);
    free(limits);
}

static int64_t now_ms(void)
{
    return mono_ms(mono_now());
}

static void forget_idle(struct limits *limits)
{
    struct map kept = {0};
    size_t cursor = 0;
    for (struct account *account; (account = map_next(&limits->accounts, &cursor));) {
        if (account->connections)
            map_put(&kept, account->uid, account);
        else
            free(account);
    }
    map_fini(&limits->accounts);
    limits->accounts = kept;
}

static struct account *account_of(struct limits *limits, uint32_t uid)
{
    struct account *account = map_get(&limits->accounts, uid);
    if (account)
        return account;
    if (limits->accounts.count >= MAX_KEPT)
        forget_idle(limits);
    account = mem_zalloc(sizeof(*account));
    *account = (struct account){.uid = uid, .requests.at_ms = now_ms()};
    map_put(&limits->accounts, uid, account);
    return account;
}

static void say_too_often(const struct limits *limits, char *text)
{
    snprintf(text, LIMITS_TEXT,
             "too many requests: a user may send %" PRId64 " in a second (user_requests in elmer.conf) and %" PRId64
             " at once "
             "(user_requests_burst); send fewer, or wait a little",
             limits->settings->user_requests, limits->settings->user_requests_burst);
}

enum limits_verdict limits_connect(struct limits *limits, uint32_t uid, bool crowded, char *text)
{
    const struct requests_settings *s = limits->settings;
    struct account *account = account_of(limits, uid);
    if (bucket_look(&account->requests, now_ms(), (double)s->user_requests, (double)s->user_requests_burst) ==
        BUCKET_OVERDRAWN) {
        say_too_often(limits, text);
        return LIMITS_CUT;
    }
    if (account->connections >= s->user_connections)
        snprintf(text, LIMITS_TEXT,
                 "too many connections: a user may have %" PRId64
                 " (user_connections in elmer.conf); end some of them, such "
                 "as esubmit -w, or try again later",
                 s->user_connections);
    else if (crowded && account->connections >= CROWDED_CONNECTIONS)
        snprintf(text, LIMITS_TEXT,
                 "too many connections: elmer has few places left, and while this is so a user may have %d; try again "
                 "later",
                 CROWDED_CONNECTIONS);
    else {
        account->connections++;
        return LIMITS_FINE;
    }
    return LIMITS_CUT;
}

void limits_disconnect(struct limits *limits, uint32_t uid)
{
    struct account *account = map_get(&limits->accounts, uid);
    if (account && account->connections)
        account->connections--;
}

enum limits_verdict limits_request(struct limits *limits, uint32_t uid, size_t bytes, char *text)
{
    const struct requests_settings *s = limits->settings;
    struct account *account = account_of(limits, uid);
    size_t more = bytes / BYTES_OF_ONE;
    double cost = 1 + (double)more;
    enum bucket_state state =
        bucket_take(&account->requests, now_ms(), (double)s->user_requests, (double)s->user_requests_burst, cost);
    if (state != BUCKET_ENOUGH) {
        say_too_often(limits, text);
        return state == BUCKET_EMPTY ? LIMITS_REFUSE : LIMITS_CUT;
    }
    if (bytes > (size_t)s->user_request_bytes) {
        snprintf(text, LIMITS_TEXT,
                 "the request is too large: it has %zu bytes and may have %" PRId64
                 " (user_request_bytes in elmer.conf); put "
                 "the command or its environment into a file",
                 bytes, s->user_request_bytes);
        return LIMITS_REFUSE;
    }
    return LIMITS_FINE;
}
