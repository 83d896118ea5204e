/* requests.h - clients and what they ask, from the message to the answer. The contract of this room: it serves its own
 * socket and the clients that hosts relay, tells who they are from the transport, and answers once what it asked of the
 * engine is on disk. Clients and requests are its own; a request ends with its answer, which is dropped if the client
 * has gone. What is wrong with a request is the answer to it, with a text. */
#ifndef ELMER_REQUESTS_REQUESTS_H
#define ELMER_REQUESTS_REQUESTS_H

#include "elmer/engine/engine.h"
#include "elmer/hosts/hosts.h"
#include "elmer/launch/launch.h"
#include "elmer/membership/membership.h"
#include "lib/base/err.h"

struct requests;

/* It must outlive the room. */
struct requests_settings {
    const char *queue_host;            /* the name of the host that elmer runs on */
    const char *socket;                /* of the clients */
    const char *admin_group;           /* whose members are administrators, where that counts */
    const struct host_settings *hosts; /* in the order of the core's */
    /* for each user, see lib/quota/quota.h and submit.c */
    int64_t user_queued, user_memory, user_connections, user_request_bytes, user_requests, user_requests_burst;
    bool private_jobs; /* other users are not shown what a job is */
    int64_t max_nprocs, minimum_uid;
    int levels; /* of the cluster */
};

/* 0, or negative with the text of err; requests_destroy() is right after a failure, too. hosts, membership and
 * launches must outlive it. */
int requests_create(const struct room *room, const struct requests_settings *settings, struct hosts *hosts,
                    struct membership *membership, struct launches *launches, struct requests **requests,
                    struct err *err);
/* Closes the clients' links; what they wait for is not answered. */
void requests_close(struct requests *requests);
void requests_destroy(struct requests *requests); /* after the loop has ended; NULL: nothing */

/* A message relay, relay_closed or relay_room of a host, which stays the caller's; on_queue_host: the host is the one
 * that elmer runs on. */
void requests_relay(struct requests *requests, int host, bool on_queue_host, struct wire_message *message);
/* requests_settings say something else, or there are more hosts. */
void requests_configured(struct requests *requests);
/* A host's message file_part, which stays the caller's. */
void requests_file_part(struct requests *requests, int host, const struct wire_message *message);
/* Its link is gone, and with it the clients that it relayed. */
void requests_host_cut(struct requests *requests, int host);
/* What was unsent to it has gone. */
void requests_host_room(struct requests *requests, int host);

#endif
