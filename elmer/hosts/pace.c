/* pace.c - messages to hosts, not too many in one turn of the loop.
 *
 * A step may have something to say to thousands of hosts, and to encrypt and write one message takes some 15 us. So
 * the first of a turn leave at once, and those behind them wait, encoded, with their host, and go on in the next turns.
 * What is said to one host stays in its order. A link that is cut takes along what waits for it: whoever needs an
 * answer asks again. */
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "elmer/hosts/internal.h"

enum { TURN_SENDS = 256 };

struct waiting {
    struct waiting *next;
    char *json;
    size_t size;
};

static bool is_linked(const struct host *host)
{
    return host->peer && !host->peer->closing;
}

/* The time of the loop tells one turn from another, well enough. While anybody waits, all do. */
static bool may_send(struct hosts *hosts)
{
    uint64_t turn = uv_now(hosts->room.loop);
    if (turn != hosts->turn) {
        hosts->turn = turn;
        hosts->sent = 0;
    }
    return !hosts->paced && hosts->sent++ < TURN_SENDS;
}

static void go_on_soon(struct hosts *hosts)
{
    if (!hosts->pace.slot && !hosts->closing)
        deadline_set(hosts->room.deadlines, &hosts->pace, engine_now_ms());
}

static bool put(struct host *host, const struct wire_message *message)
{
    struct hosts *hosts = host->hosts;
    char *json;
    size_t size;
    if (mem_result(wire_encode(message, link_minor(host->peer->link), &json, &size, NULL)))
        return false;
    struct waiting *waiting = mem_zalloc(sizeof(*waiting));
    *waiting = (struct waiting){.json = json, .size = size};
    if (!host->waiting)
        host->last_waiting = &host->waiting;
    if (!host->paced) { /* else it is in the list from before a cut */
        host->paced = true;
        *hosts->last_paced = host;
        hosts->last_paced = &host->next_paced;
    }
    *host->last_waiting = waiting;
    host->last_waiting = &waiting->next;
    go_on_soon(hosts);
    return true;
}

bool hosts_send(struct hosts *hosts, int index, const struct wire_message *message)
{
    assert(index >= 0 && index < hosts->nhosts);
    struct host *host = hosts->hosts[index];
    if (!is_linked(host))
        return false;
    if (!may_send(hosts))
        return put(host, message);
    return !link_send(host->peer->link, message);
}

static void drop_first(struct host *host)
{
    struct waiting *first = host->waiting;
    host->waiting = first->next;
    free(first->json);
    free(first);
}

/* All that waits for the host, however much: it is little. */
static void send_waiting(struct host *host)
{
    while (host->waiting) {
        if (is_linked(host))
            link_send_json(host->peer->link, host->waiting->json, host->waiting->size);
        drop_first(host);
    }
}

void hosts_pace_go_on(struct deadline *deadline)
{
    struct hosts *hosts = CONTAINER_OF(deadline, struct hosts, pace);
    struct host *host;
    for (int i = 0; i < TURN_SENDS && (host = hosts->paced); i++) {
        hosts->paced = host->next_paced;
        host->next_paced = NULL;
        host->paced = false;
        if (!hosts->paced)
            hosts->last_paced = &hosts->paced;
        send_waiting(host);
        if (is_linked(host)) /* who waits for this host: what the kernel takes at once has no on_room() of its link */
            hosts->callbacks.on_room(host->index, hosts->data);
    }
    if (hosts->paced)
        go_on_soon(hosts);
}

void hosts_pace_drop(struct host *host)
{
    while (host->waiting)
        drop_first(host);
}
