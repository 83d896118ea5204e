/* warrant.c - administrators elsewhere, and those on hosts of admin_hosts.
 *
 * What the rsd of such a host says of who asks counts for what he reads. What he decides is refused at first, with
 * not-permitted. Then his program asks for a challenge, has elmer-tickets of its host sign it together with the request
 * (lib/ticket/warrant.h), and sends both as decide. It is good for the client that was given the challenge, once, for
 * CHALLENGE_MS; the first decide uses it up, whatever becomes of it. All is in memory: after a restart of elmer a
 * program asks for another one. So what was signed is done once and soon, or never.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "elmer/requests/internal.h"
#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/ticket/keys.h"

enum { CHALLENGE_MS = 60000, LOG_BURST = 30, LOG_WINDOW_MS = 10000 };

/* ---- refused ---- */

const char *request_how_to_rule(const struct request *request, char *text, size_t size)
{
    const struct requests_settings *settings = request->requests->settings;
    const struct client *client = request->client;
    *text = 0;
    if (!client || !request->admin_elsewhere)
        return text;
    if (client->queue_host && !client->may_vouch)
        snprintf(text, size,
                 ". You are one, but the rsd of %s says so, which does not count: use elmer's own socket "
                 "(ELMER_SOCKET=%s)",
                 settings->queue_host, settings->socket);
    else if (client->may_vouch)
        snprintf(text, size,
                 ". You are one, but only the rsd of %s says so: it has to be signed there, which commands and rsd do "
                 "from protocol 1.10 on: upgrade both there, or do it on %s",
                 client_host_name(client), settings->queue_host);
    else
        snprintf(text, size,
                 ". You are one on the queue host, but not from %s: do it on %s, or add %s to \"admin_hosts = ...\" of "
                 "elmer.conf there",
                 client_host_name(client), settings->queue_host, client_host_name(client));
    return text;
}

void request_not_admin(struct request *request, const char *what)
{
    char text[700];
    request_error(request, WIRE_CODE_NOT_PERMITTED, "only administrators (group %s) may %s%s",
                  request->requests->settings->admin_group, what, request_how_to_rule(request, text, sizeof(text)));
}

/* ---- the challenge ---- */

void warrant_challenge(struct request *request)
{
    struct client *client = request->client;
    char text[2 * WARRANT_CHALLENGE_BYTES + 1];
    struct wire_message message = {
        .type = WIRE_challenge, .id = request->id, .u.challenge = {.challenge = text, .minor = WIRE_MINOR}};
    uint8_t key[TICKET_KEY_BYTES];
    if (!client->may_vouch || !request->admin_elsewhere) {
        request_error(request, WIRE_CODE_NOT_PERMITTED, "there is nothing to sign: %s",
                      client->may_rule ? "elmer knows who asks"
                                       : "only administrators on hosts of admin_hosts decide so");
        return;
    }
    if (!hosts_authority(request->requests->hosts, key)) {
        request_error(request, WIRE_CODE_NOT_PERMITTED,
                      "elmer has no CA by which it could check what is signed: do it on the queue host");
        return;
    }
    if (getrandom(client->challenge, sizeof(client->challenge), GRND_NONBLOCK) != sizeof(client->challenge)) {
        request_error(request, WIRE_CODE_UNAVAILABLE, "elmer has no random numbers yet; try again");
        return;
    }
    client->challenged = true;
    client->challenged_ms = engine_now_ms();
    hex_write(client->challenge, sizeof(client->challenge), text);
    request_send(request, &message);
    request_end(request);
}

/* ---- what was signed ---- */

/* The CA, of whose keys some are kept. False: there is none. */
static bool meet_authority(struct requests *requests)
{
    uint8_t key[TICKET_KEY_BYTES];
    if (!hosts_authority(requests->hosts, key))
        return false;
    if (!requests->trust.has_authority || memcmp(requests->trust.authority, key, sizeof(key)) != 0) {
        requests->trust = (struct ticket_trust){.has_authority = true};
        memcpy(requests->trust.authority, key, sizeof(key));
    }
    return true;
}

/* The chain last, because it takes the longest. NULL: it is good. */
static const char *fault_of(struct request *request, const struct warrant *w, bool given)
{
    const struct client *client = request->client;
    uint8_t digest[TICKET_DIGEST_BYTES];
    if (!given || memcmp(w->challenge, client->challenge, sizeof(w->challenge)) != 0)
        return "used-challenge: it was not signed for this moment; ask again";
    if (strcmp(w->host, client_host_name(client)) != 0)
        return "other-host: it was signed on another host";
    if (w->uid != client->uid || strcmp(w->user, client->user) != 0)
        return "other-user: it was signed for another user";
    if (!ticket_digest_text(request->message.u.decide.request, digest) ||
        memcmp(digest, w->request, sizeof(digest)) != 0)
        return "other-request: something else was signed";
    if (!meet_authority(request->requests))
        return "no-authority: elmer has no CA by which it could check that";
    enum ticket_refusal why = warrant_check_chain(w, &request->requests->trust);
    if (why == TICKET_OTHER_CLUSTER)
        return "other-cluster: the key that signed it is not certified by this cluster's CA; rsd --join again there";
    return why == TICKET_GOOD ? NULL : "forged: its signature does not hold";
}

static void refuse(struct request *request, const char *fault)
{
    if (log_allowed(&request->requests->refused, LOG_BURST, LOG_WINDOW_MS))
        log_warning("host=%s user=%s decision refused: %s", client_host_name(request->client), request->client->user,
                    fault);
    request_error(request, WIRE_CODE_NOT_PERMITTED, "the decision is refused: %s", fault);
}

/* What is wrong with the request itself; NULL: nothing, and it is decoded. */
static const char *read_request(const struct wire_decide *decide, struct wire_message *inner, struct err *err)
{
    if (decide->minor > WIRE_MINOR)
        return "unknown-request: the command is newer than elmer";
    if (mem_result(wire_decode(decide->request, strlen(decide->request), (unsigned)decide->minor, inner, err)))
        return "unknown-request: it cannot be read";
    return wire_may_be_signed(inner->type) ? NULL : "unknown-request: nothing that is decided in this way";
}

void warrant_decide(struct request *request)
{
    struct client *client = request->client;
    const struct wire_decide *decide = &request->message.u.decide;
    bool given = client->challenged && engine_now_ms() - client->challenged_ms <= CHALLENGE_MS;
    struct wire_message inner = {.type = WIRE_pong};
    struct err err = ERR_INIT;
    struct warrant warrant;
    const char *fault = NULL;
    client->challenged = false;
    if (!client->may_vouch || !request->admin_elsewhere)
        fault = "no-administrator: only administrators on hosts of admin_hosts decide so";
    else if (!warrant_decode(decide->warrant, &warrant))
        fault = "garbled: what was signed cannot be read";
    else
        fault = fault_of(request, &warrant, given);
    if (!fault)
        fault = read_request(decide, &inner, &err);
    if (fault)
        refuse(request, fault);
    else
        request_replace(request, &inner);
    wire_message_fini(&inner);
}
