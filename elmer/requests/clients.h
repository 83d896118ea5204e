/* clients.h - who asks: local users on elmer's own socket and those that the rsds relay, behind one interface. Who a
 * client is comes from the transport: the kernel, or the rsd that vouches for it. */
#ifndef ELMER_REQUESTS_CLIENTS_H
#define ELMER_REQUESTS_CLIENTS_H

#include "elmer/requests/requests.h"
#include "lib/base/err.h"
#include "lib/net/link.h"
#include "lib/quota/quota.h"
#include "lib/ticket/warrant.h"

struct client {
    struct clients *clients;
    uint32_t uid;
    char user[256];  /* "": not known yet (own socket) */
    bool queue_host; /* it runs on the host that elmer runs on */
    bool may_rule;   /* who is an administrator is one here: the kernel says so */
    bool may_vouch;  /* its host is one of admin_hosts: he is one for what is signed there (warrant.c) */
    bool challenged; /* ... at that time, with these bytes: */
    int64_t challenged_ms;
    uint8_t challenge[WARRANT_CHALLENGE_BYTES];
    struct request *requests; /* outstanding; the list of requests.c */
    size_t nrequests;
    /* clients.c's own */
    struct link *link; /* NULL: relayed */
    int host;
    uint64_t relay;
    bool closing, reads_slowly; /* ... and its rsd says when there is room */
    struct quota *quota;        /* of the user; NULL: an administrator, without limits */
    struct client *next, **place;
    enum { NOT_STALLED, STALLED_ALONE, STALLED_FOR_USER, STALLED_FOR_HOST } stalled; /* what has to get room */
    struct client *next_stalled, *before_stalled;                                    /* a ring */
    /* query.c: its lists, of which one at a time is answered */
    struct request *turns, **last_turn;
};

struct clients_callbacks {
    void (*on_request)(struct client *client, struct wire_message *message); /* taken over by moving it */
    void (*on_gone)(struct client *client);                                  /* drop what it has outstanding */
    void (*on_room)(struct client *client);                                  /* after client_stall() */
};

int clients_create(struct requests *requests, const struct clients_callbacks *callbacks, struct clients **clients,
                   struct err *err);
/* requests_settings say something else, or there are more hosts. */
void clients_configured(struct clients *clients);
void clients_close(struct clients *clients);
void clients_destroy(struct clients *clients);

struct requests *clients_requests(struct clients *clients);
/* The host that the client is on. */
const char *client_host_name(const struct client *client);
void client_send(struct client *client, const struct wire_message *message);
void client_error(struct client *client, uint64_t id, const char *code, const char *text);
/* So much waits for the client, for its user or for its host, that it is better to go on later. */
bool client_congested(const struct client *client);
/* It is congested: on_room() comes when it is not any more. */
void client_stall(struct client *client);
/* Keep so many bytes for the client's user until clients_give(); false: he has too much already. */
bool client_keep(struct client *client, size_t bytes, char text[QUOTA_TEXT]);
/* quota: that of the client then, which may have gone; NULL: none. */
void clients_give(struct clients *clients, struct quota *quota, size_t bytes);

/* A message relay, relay_closed or relay_room of a host. */
void clients_relay(struct clients *clients, int host, bool queue_host, struct wire_message *message);
void clients_host_cut(struct clients *clients, int host);
/* What was unsent to the host has gone. */
void clients_host_room(struct clients *clients, int host);

#endif
