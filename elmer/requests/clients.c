#include "config.h"

#include "elmer/requests/clients.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/requests/internal.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"

enum {
    MAX_LINKS = 8192,
    KEPT_LINKS = 64, /* beyond those, for who is exempt */
    CROWDED_LINKS = MAX_LINKS * 3 / 4,
    MAX_RELAYED = 4096,
    CROWDED_RELAYED = MAX_RELAYED * 3 / 4,
    OUT_MAX = 16 << 20,
    CONGESTED = 1 << 20,
    BYTES_OF_ALL = 256 << 20,
    WAKE_MAX = 8,
    STALL_MS = 30000,
    HELLO_MS = 10000,
    LOG_BURST = 30,
    LOG_WINDOW_MS = 10000
};

struct clients {
    struct requests *requests;
    struct clients_callbacks callbacks;
    struct listener *listener;
    struct quotas *quotas;
    struct client *own; /* with a link */
    unsigned nown;
    size_t nhosts;
    struct map *relayed;          /* [nhosts] by the rsd's number */
    struct client *stalled_alone; /* ... for room on their own link, here or at their rsd */
    struct client **stalled;      /* [nhosts] relayed ones that wait for room on the host's link */
    struct log_limit limit;
    bool closing;
};

struct requests *clients_requests(struct clients *clients)
{
    return clients->requests;
}

const char *client_host_name(const struct client *client)
{
    const struct requests *requests = client->clients->requests;
    return client->link ? requests->settings->queue_host : engine_host_name(requests->room.engine, client->host);
}

/* ---- both kinds ---- */

void client_send(struct client *client, const struct wire_message *message)
{
    if (client->closing)
        return;
    if (client->link) {
        link_send(client->link, message);
        return;
    }
    assert(client->host >= 0); /* relayed */
    struct err err = ERR_INIT;
    char *json = NULL;
    size_t size;
    unsigned minor = hosts_minor(client->clients->requests->hosts, client->host);
    if (mem_result(wire_encode(message, minor, &json, &size, &err))) {
        log_error("an answer to a client cannot be encoded: %s", err.text);
        client_error(client, message->id, WIRE_CODE_REFUSED,
                     "elmer could not put its answer into a message; its log says more");
        return;
    }
    struct wire_message relayed = {.type = WIRE_relayed, .u.relayed = {.client = client->relay, .frame = json}};
    hosts_send(client->clients->requests->hosts, client->host, &relayed);
    free(json);
}

void client_error(struct client *client, uint64_t id, const char *code, const char *text)
{
    char printable[1024]; /* a text that was cut may end within a character */
    struct wire_message message = {.type = WIRE_error, .id = id};
    message.u.error.code = code;
    message.u.error.text = str_printable(printable, sizeof(printable), text, strlen(text));
    client_send(client, &message);
}

/* ---- room ---- */

static bool is_short(const struct client *client)
{
    return client->quota && budget_is_short(&client->quota->bytes);
}

bool client_congested(const struct client *client)
{
    if (is_short(client) || client->reads_slowly)
        return true;
    return client->link ? link_unsent(client->link) > CONGESTED
                        : hosts_congested(client->clients->requests->hosts, client->host);
}

static struct client **stalled_list(const struct client *client)
{
    if (client->stalled == STALLED_FOR_USER)
        return (struct client **)&client->quota->waiting;
    struct clients *all = client->clients;
    return client->stalled == STALLED_FOR_HOST ? &all->stalled[client->host] : &all->stalled_alone;
}

/* Whose user has too much already waits in the list of his quota, others in that of their host, or for their link. The
 * first one is woken first. */
void client_stall(struct client *client)
{
    bool alone = client->link || client->reads_slowly;
    if (client->stalled || client->closing)
        return;
    client->stalled = is_short(client) ? STALLED_FOR_USER : alone ? STALLED_ALONE : STALLED_FOR_HOST;
    struct client **list = stalled_list(client);
    if (!*list)
        *list = client->before_stalled = client;
    client->next_stalled = *list;
    client->before_stalled = (*list)->before_stalled;
    client->before_stalled->next_stalled = client->next_stalled->before_stalled = client;
}

static void unstall(struct client *client)
{
    struct client **list = stalled_list(client), *next = client->next_stalled;
    client->stalled = NOT_STALLED;
    client->before_stalled->next_stalled = next;
    next->before_stalled = client->before_stalled;
    if (*list == client)
        *list = next == client ? NULL : next;
}

static void wake(struct client *client)
{
    if (!client->stalled)
        return;
    unstall(client);
    if (client_congested(client))
        client_stall(client);
    else
        client->clients->callbacks.on_room(client);
}

/* A few: what they are sent takes room again, and when that has gone others are woken. */
static void wake_some(struct client **list)
{
    for (int i = 0; i < WAKE_MAX && *list; i++)
        wake(*list);
}

static void wake_user(struct quota *quota)
{
    if (quota && quota->waiting && !budget_is_short(&quota->bytes))
        wake_some((struct client **)&quota->waiting);
}

bool client_keep(struct client *client, size_t bytes, char text[QUOTA_TEXT])
{
    return !client->quota || quota_keep(client->clients->quotas, client->quota, bytes, text);
}

void clients_give(struct clients *clients, struct quota *quota, size_t bytes)
{
    if (!quota || !bytes)
        return;
    budget_give(&quota->bytes, bytes);
    if (!clients->closing)
        wake_user(quota);
}

void clients_host_room(struct clients *clients, int host)
{
    if (!clients->closing && clients->stalled[host] && !hosts_congested(clients->requests->hosts, host))
        wake_some(&clients->stalled[host]);
}

/* ---- limits ---- */

/* Of elmer's own socket: root of this host, and administrators as far as they are known without asking, must be able to
 * help. A user whose user namespaces have 65,536 uids has as many limits, and can take all places but these. */
static bool is_exempt(const struct clients *clients, uint32_t uid)
{
    return uid == 0 || users_known_admin(clients->requests->users, uid);
}

static bool is_within_limits(struct client *client, const struct wire_message *message)
{
    struct clients *clients = client->clients;
    char text[QUOTA_TEXT] = "";
    if (client->may_rule && is_exempt(clients, client->uid))
        return true;
    struct quota *quota = mem_checked(quota_of(clients->quotas, client->uid, engine_now_ms()));
    enum quota_verdict verdict = quota_request(clients->quotas, quota, engine_now_ms(), message->bytes, text);
    if (verdict == QUOTA_FINE)
        return true;
    if (log_allowed(&clients->limit, LOG_BURST, LOG_WINDOW_MS))
        log_warning("uid=%" PRIu32 " request refused: %s", client->uid, text);
    client_error(client, message->id, WIRE_CODE_REFUSED, text);
    if (verdict == QUOTA_CUT && client->link) /* a relayed one is cut by its rsd */
        link_close(client->link, text);
    return false;
}

static void on_any_message(struct client *client, struct wire_message *message)
{
    if (!is_within_limits(client, message))
        return;
    if (message->type == WIRE_ping) {
        struct wire_message pong = {.type = WIRE_pong, .id = message->id};
        client_send(client, &pong);
    } else if (message->type != WIRE_pong && message->type != WIRE_error && message->type != WIRE_done &&
               message->type != WIRE_hello) {
        client->clients->callbacks.on_request(client, message);
    }
}

/* ---- own socket ---- */

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct client *client = data;
    (void)link;
    if (!client->closing)
        on_any_message(client, message);
}

/* How the links of commands end that have what they wanted, or were interrupted. */
static bool quiet_end(const char *text)
{
    return strstr(text, "closed the connection") || strstr(text, "reset by peer") || strstr(text, "broken pipe");
}

/* NULL: there is no room for one more, why in text. exempt: nothing is counted. */
static struct client *new_client(struct clients *clients, uint32_t uid, bool exempt, bool crowded, char *text)
{
    struct quota *quota = exempt ? NULL : mem_checked(quota_of(clients->quotas, uid, engine_now_ms()));
    if (quota && quota_connect(clients->quotas, quota, engine_now_ms(), crowded, text) != QUOTA_FINE)
        return NULL;
    struct client *client = mem_zalloc(sizeof(*client));
    *client = (struct client){.clients = clients, .uid = uid, .quota = quota, .host = -1};
    client->last_turn = &client->turns;
    return client;
}

/* The last of it. */
static void free_client(struct client *client)
{
    struct quota *quota = client->quota;
    if (client->stalled)
        unstall(client);
    if (quota)
        quota_disconnect(quota);
    if (!client->clients->closing)
        wake_user(quota);
    free(client);
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct client *client = data;
    struct clients *clients = client->clients;
    char printable[300];
    (void)link;
    client->closing = true;
    clients->callbacks.on_gone(client);
    assert(clients->nown > 0 && *client->place == client);
    clients->nown--;
    *client->place = client->next;
    if (client->next)
        client->next->place = client->place;
    /* The end of a command is nothing to tell; a broken peer is. */
    if (!clients->closing && *text && !quiet_end(text) && log_allowed(&clients->limit, LOG_BURST, LOG_WINDOW_MS))
        log_warning("uid=%" PRIu32 " link of a client ended: %s", client->uid,
                    str_printable(printable, sizeof(printable), text, strlen(text)));
    free_client(client);
}

static void on_room(struct link *link, void *data)
{
    struct client *client = data;
    (void)link;
    if (client->closing)
        return;
    wake(client);
    wake_user(client->quota);
}

static void *on_accept(struct link *link, void *data)
{
    struct clients *clients = data;
    uid_t uid;
    gid_t gid;
    pid_t pid;
    if (clients->closing || link_peer_cred(link, &uid, &gid, &pid))
        return NULL;
    const bool exempt = is_exempt(clients, uid);
    char text[QUOTA_TEXT] = "too many connections; try again later";
    struct client *client = NULL;
    if (exempt || clients->nown < MAX_LINKS)
        client = new_client(clients, uid, exempt, clients->nown >= CROWDED_LINKS, text);
    if (!client) {
        if (log_allowed(&clients->limit, LOG_BURST, LOG_WINDOW_MS))
            log_warning("uid=%u connection refused: %s", (unsigned)uid, text);
        link_refuse(link, WIRE_CODE_REFUSED, text);
        return NULL;
    }
    clients->nown++;
    client->link = link;
    client->queue_host = client->may_rule = true;
    client->next = clients->own;
    client->place = &clients->own;
    if (client->quota)
        link_set_budget(link, &client->quota->bytes);
    if (clients->own)
        clients->own->place = &client->next;
    clients->own = client;
    return client;
}

/* ---- relayed ---- */

static void drop_relayed(struct client *client)
{
    client->closing = true;
    client->clients->callbacks.on_gone(client);
    free_client(client);
}

static bool user_valid(const char *user)
{
    char printable[256];
    return *user && strlen(user) < 256 && !strpbrk(user, "/: ()") &&
           strcmp(str_printable(printable, sizeof(printable), user, strlen(user)), user) == 0;
}

/* The client that sends this; NULL with the text why not. */
static struct client *find_relayed(struct clients *clients, int host, bool queue_host, const struct wire_relay *relay,
                                   char *text)
{
    struct map *map = &clients->relayed[host];
    struct client *client = map_get(map, relay->client);
    if (client && client->uid == relay->uid && strcmp(client->user, relay->user) == 0) {
        client->may_vouch = clients->requests->settings->hosts[host].admin; /* a reload may have taken that back */
        return client;
    }
    if (client)
        drop_relayed(map_remove(map, relay->client));
    if (!user_valid(relay->user) || map->count >= MAX_RELAYED) {
        snprintf(text, QUOTA_TEXT, "too many clients on this host, or a user name that cannot be used");
        return NULL;
    }
    client = new_client(clients, (uint32_t)relay->uid, false, map->count >= CROWDED_RELAYED, text);
    if (!client)
        return NULL;
    client->queue_host = queue_host;
    client->may_vouch = clients->requests->settings->hosts[host].admin;
    client->host = host;
    client->relay = relay->client;
    snprintf(client->user, sizeof(client->user), "%s", relay->user);
    map_put(map, relay->client, client);
    return client;
}

static void refuse_relay(struct clients *clients, int host, uint64_t relay, const char *code, const char *text)
{
    struct client nobody = {.clients = clients, .host = host, .relay = relay};
    char printable[300];
    if (log_allowed(&clients->limit, LOG_BURST, LOG_WINDOW_MS))
        log_warning("host=%s message of a relayed client refused: %s",
                    engine_host_name(clients->requests->room.engine, host),
                    str_printable(printable, sizeof(printable), text, strlen(text)));
    client_error(&nobody, 0, code, text);
}

void clients_relay(struct clients *clients, int host, bool queue_host, struct wire_message *message)
{
    if (message->type == WIRE_relay_room) {
        struct client *client = map_get(&clients->relayed[host], message->u.relay_room.client);
        if (client) {
            client->reads_slowly = !message->u.relay_room.room;
            wake(client);
        }
        return;
    }
    if (message->type == WIRE_relay_closed) {
        struct client *gone = map_remove(&clients->relayed[host], message->u.relay_closed.client);
        if (gone)
            drop_relayed(gone);
        return;
    }
    assert(message->type == WIRE_relay);
    const struct wire_relay *relay = &message->u.relay;
    char text[QUOTA_TEXT];
    struct client *client = find_relayed(clients, host, queue_host, relay, text);
    if (!client) {
        refuse_relay(clients, host, relay->client, WIRE_CODE_REFUSED, text);
        return;
    }
    struct err err = ERR_INIT;
    struct wire_message inner = {0};
    unsigned minor = hosts_minor(clients->requests->hosts, host);
    if (mem_result(wire_decode(relay->frame, strlen(relay->frame), minor, &inner, &err)))
        refuse_relay(clients, host, relay->client, WIRE_CODE_BAD_MESSAGE, err.text);
    else if (!wire_may_send(inner.type, WIRE_FROM_CLIENT))
        refuse_relay(clients, host, relay->client, WIRE_CODE_BAD_MESSAGE, "a client may not send this message");
    else
        on_any_message(client, &inner);
    wire_message_fini(&inner);
}

void clients_host_cut(struct clients *clients, int host)
{
    struct map gone = clients->relayed[host];
    size_t cursor = 0;
    clients->relayed[host] = (struct map){0};
    for (struct client *client; (client = map_next(&gone, &cursor));)
        drop_relayed(client);
    map_fini(&gone);
}

static struct quota_limits limits_of(const struct requests_settings *s)
{
    return (struct quota_limits){.daemon = "elmer",
                                 .config = "elmer.conf",
                                 .connections = s->user_connections,
                                 .requests = s->user_requests,
                                 .burst = s->user_requests_burst,
                                 .request_bytes = s->user_request_bytes,
                                 .bytes_of_all = BYTES_OF_ALL};
}

static void make_room(struct clients *clients)
{
    size_t before = clients->nhosts, now = (size_t)engine_host_count(clients->requests->room.engine);
    clients->relayed = mem_exactly(clients->relayed, before, now, sizeof(*clients->relayed));
    clients->stalled = mem_exactly(clients->stalled, before, now, sizeof(*clients->stalled));
    clients->nhosts = now;
}

void clients_configured(struct clients *clients)
{
    quotas_limit(clients->quotas, limits_of(clients->requests->settings));
    make_room(clients); /* for as many hosts as there are now */
}

int clients_create(struct requests *requests, const struct clients_callbacks *callbacks, struct clients **out,
                   struct err *err)
{
    static const struct link_options options = {.program = "elmer",
                                                .peer = WIRE_FROM_CLIENT,
                                                .out_max = OUT_MAX,
                                                .stall_ms = STALL_MS,
                                                .hello_timeout_ms = HELLO_MS};
    static const struct link_callbacks links = {.on_message = on_message, .on_close = on_close, .on_room = on_room};
    const struct quota_limits limits = limits_of(requests->settings);
    struct clients *clients = mem_zalloc(sizeof(*clients));
    clients->requests = requests;
    clients->callbacks = *callbacks;
    make_room(clients);
    clients->quotas = mem_checked(quotas_create(&limits));
    *out = clients;
    return listener_create(requests->room.loop, requests->settings->socket, 0666, MAX_LINKS + KEPT_LINKS, &options,
                           &links, on_accept, clients, &clients->listener, err);
}

void clients_close(struct clients *clients)
{
    if (!clients)
        return;
    clients->closing = true;
    if (clients->listener)
        listener_close(clients->listener);
    for (struct client *client = clients->own; client; client = client->next) {
        client->closing = true;
        link_close(client->link, "elmer stops");
    }
    for (size_t i = 0; i < clients->nhosts; i++)
        clients_host_cut(clients, (int)i);
}

void clients_destroy(struct clients *clients)
{
    if (!clients)
        return;
    quotas_destroy(clients->quotas);
    free(clients->relayed);
    free(clients->stalled);
    free(clients);
}
