/* rate.c - how much a host says. One that says more than an honest one can is disconnected, and stays out for a while,
 * so that the others are served; it is up to its rsd to come back. */
#include "config.h"

#include "elmer/hosts/internal.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    BYTES_OF_ONE = 16 << 10, /* a large message counts as several: it costs more to read */
    SHUT_OUT_MS = 10000
};

static void shut_out(struct peer *peer, struct host *host, uint64_t id, const char *text)
{
    host->shut_out_until_ms = engine_now_ms() + SHUT_OUT_MS;
    log_warning("host=%s is disconnected, and not let in for %d s: %s", settings_of(host)->name, SHUT_OUT_MS / 1000,
                text);
    hosts_peer_refuse(peer, id, text);
}

static bool take(struct peer *peer, struct host *host, uint64_t id, double cost)
{
    const struct hosts_settings *settings = peer->hosts->settings;
    char text[300];
    if (bucket_take(&host->messages, engine_now_ms(), (double)settings->host_messages,
                    (double)settings->host_messages_burst, cost) == BUCKET_ENOUGH)
        return true;
    snprintf(text, sizeof(text),
             "too many messages: a host may send %" PRId64 " in a second (host_messages in elmer.conf) and %" PRId64
             " at once (host_messages_burst)",
             settings->host_messages, settings->host_messages_burst);
    shut_out(peer, host, id, text);
    return false;
}

bool rate_message(struct peer *peer, const struct wire_message *message)
{
    size_t cost = 1 + message->bytes / BYTES_OF_ONE;
    return take(peer, peer->host, message->id, (double)cost);
}

bool rate_hello(struct peer *peer, struct host *host, const struct wire_message *message)
{
    if (engine_now_ms() < host->shut_out_until_ms) {
        hosts_peer_refuse(peer, message->id, "this host was disconnected for what it sent; its rsd tries again");
        return false;
    }
    return take(peer, host, message->id, 1 + (double)message->u.host_hello.holdings.count);
}

void rate_too_many_jobs(struct host *host)
{
    char text[200];
    snprintf(text, sizeof(text), "it says that it has opened more than %d jobs that it was not given",
             CORE_MAX_LEFTOVERS);
    shut_out(host->peer, host, 0, text);
}
