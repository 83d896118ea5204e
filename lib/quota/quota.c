#include "config.h"

#include "lib/quota/quota.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLACES = 1024, SWEEP_MIN = 64 };

struct quotas {
    struct quota_limits limits;
    struct budget all;
    size_t count, sweep_at; /* users; and at so many those of whom nothing is left to know are freed */
    struct quota *places[PLACES];
};

struct quotas *quotas_create(const struct quota_limits *limits)
{
    struct quotas *quotas = calloc(1, sizeof(*quotas));

    if (!quotas)
        return NULL;
    quotas->limits = *limits;
    quotas->all.max = limits->bytes_of_all;
    quotas->sweep_at = SWEEP_MIN;
    return quotas;
}

void quotas_limit(struct quotas *quotas, struct quota_limits limits)
{
    quotas->limits.connections = limits.connections;
    quotas->limits.requests = limits.requests;
    quotas->limits.burst = limits.burst;
    quotas->limits.request_bytes = limits.request_bytes;
}

void quotas_destroy(struct quotas *quotas)
{
    for (size_t i = 0; quotas && i < PLACES; i++)
        for (struct quota *quota; (quota = quotas->places[i]);) {
            quotas->places[i] = quota->next;
            free(quota);
        }
    free(quotas);
}

size_t quotas_count(const struct quotas *quotas)
{
    return quotas->count;
}

/* What a new one would be. */
static bool is_blank(const struct quotas *quotas, struct quota *quota, int64_t now_ms)
{
    if (quota->connections > 0 || quota->bytes.used > 0)
        return false;
    (void)bucket_check(&quota->requests, now_ms, (double)quotas->limits.requests, (double)quotas->limits.burst, 0);
    (void)bucket_check(&quota->work, now_ms, QUOTA_WORK_RATE_MS, QUOTA_WORK_MS, 0);
    return quota->requests.missing <= 0 && quota->work.missing <= 0;
}

static void sweep(struct quotas *quotas, int64_t now_ms)
{
    for (size_t i = 0; i < PLACES; i++)
        for (struct quota **at = &quotas->places[i], *quota; (quota = *at);) {
            if (!is_blank(quotas, quota, now_ms)) {
                at = &quota->next;
                continue;
            }
            *at = quota->next;
            free(quota);
            quotas->count--;
        }
    quotas->sweep_at = quotas->count * 2 > SWEEP_MIN ? quotas->count * 2 : SWEEP_MIN;
}

struct quota *quota_of(struct quotas *quotas, uint32_t uid, int64_t now_ms)
{
    struct quota **place = &quotas->places[uid % PLACES], *quota = *place;

    while (quota && quota->uid != uid)
        quota = quota->next;
    if (quota)
        return quota;
    if (quotas->count >= quotas->sweep_at)
        sweep(quotas, now_ms);
    quota = calloc(1, sizeof(*quota));
    if (!quota)
        return NULL;
    *quota = (struct quota){.next = *place,
                            .uid = uid,
                            .requests.at_ms = now_ms,
                            .work.at_ms = now_ms,
                            .bytes = {.max = QUOTA_BYTES, .all = &quotas->all}};
    *place = quota;
    quotas->count++;
    return quota;
}

static void say_too_often(const struct quota_limits *limits, char *text)
{
    (void)snprintf(text, QUOTA_TEXT,
                   "too many requests: a user may send %" PRId64 " in a second (user_requests in %s) and %" PRId64
                   " at once (user_requests_burst); send fewer, or wait a little",
                   limits->requests, limits->config, limits->burst);
}

enum quota_verdict quota_connect(struct quotas *quotas, struct quota *quota, int64_t now_ms, bool crowded,
                                 char text[QUOTA_TEXT])
{
    const struct quota_limits *limits = &quotas->limits;

    /* as long as his next request would end the connection again */
    if (bucket_check(&quota->requests, now_ms, (double)limits->requests, (double)limits->burst, 1) == BUCKET_OVERDRAWN)
        say_too_often(limits, text);
    else if (quota->connections >= limits->connections)
        (void)snprintf(text, QUOTA_TEXT,
                       "too many connections: a user may have %" PRId64
                       " (user_connections in %s); end some of them, such as esubmit -w, or try again later",
                       limits->connections, limits->config);
    else if (crowded && quota->connections >= QUOTA_CROWDED)
        (void)snprintf(text, QUOTA_TEXT,
                       "too many connections: %s has few places left, and while this is so a user may have %d; try "
                       "again later",
                       limits->daemon, QUOTA_CROWDED);
    else {
        quota->connections++;
        return QUOTA_FINE;
    }
    return QUOTA_CUT;
}

void quota_disconnect(struct quota *quota)
{
    assert(quota->connections > 0);
    quota->connections--;
}

enum quota_verdict quota_request(struct quotas *quotas, struct quota *quota, int64_t now_ms, size_t bytes,
                                 char text[QUOTA_TEXT])
{
    const struct quota_limits *limits = &quotas->limits;
    size_t more = bytes / QUOTA_REQUEST_UNIT;
    enum bucket_state state =
        bucket_take(&quota->requests, now_ms, (double)limits->requests, (double)limits->burst, 1 + (double)more);

    if (state != BUCKET_ENOUGH) {
        say_too_often(limits, text);
        return state == BUCKET_EMPTY ? QUOTA_REFUSE : QUOTA_CUT;
    }
    if (limits->request_bytes > 0 && bytes > (size_t)limits->request_bytes) {
        (void)snprintf(text, QUOTA_TEXT,
                       "the request is too large: it has %zu bytes and may have %" PRId64
                       " (user_request_bytes in %s); put the command or its environment into a file",
                       bytes, limits->request_bytes, limits->config);
        return QUOTA_REFUSE;
    }
    return QUOTA_FINE;
}

void quota_worked(struct quota *quota, int64_t now_ms, double used_ms)
{
    (void)bucket_take(&quota->work, now_ms, QUOTA_WORK_RATE_MS, QUOTA_WORK_MS, used_ms);
}

int64_t quota_work_wait(struct quota *quota, int64_t now_ms)
{
    if (bucket_check(&quota->work, now_ms, QUOTA_WORK_RATE_MS, QUOTA_WORK_MS, 0) == BUCKET_ENOUGH)
        return 0;
    return (int64_t)((quota->work.missing - QUOTA_WORK_MS) * 1000 / QUOTA_WORK_RATE_MS) + 1;
}

bool quota_keep(struct quotas *quotas, struct quota *quota, size_t bytes, char text[QUOTA_TEXT])
{
    if (budget_take(&quota->bytes, bytes))
        return true;
    (void)snprintf(
        text, QUOTA_TEXT,
        "too much at once: %s keeps %d MiB of requests without answer and answers that nobody has read for a "
        "user, and %zu for all; read the answers, or wait for some",
        quotas->limits.daemon, QUOTA_BYTES >> 20, quotas->limits.bytes_of_all >> 20);
    return false;
}
