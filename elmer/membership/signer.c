/* signer.c - one connection to /run/elmer-ca/sign.sock per request.
 *
 * Normal: connect -> the request -> issued or error -> close. The connection fails, ends early, or nothing comes in
 * time (link.c bounds the dialing, a deadline the rest): the answer says that the signer could not be reached. Each ask
 * is answered once, at the end of its link. */
#include "config.h"

#include "elmer/membership/signer.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/container.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/net/link.h"

enum { DIAL_MS = 3000, ANSWER_MS = 8000, OUT_MAX = 64 << 10, ID = 1 };

struct signer_ask {
    struct deadlines *deadlines;
    const char *socket;
    struct wire_message request;
    struct link *link;
    struct deadline deadline;
    signer_answer answer; /* NULL: abandoned */
    void *data;
    char *certificate, *ticket, *text; /* what has come */
};

static void on_ready(struct link *link, void *data)
{
    struct signer_ask *ask = data;
    if (!ask->answer || link_send(link, &ask->request))
        link_close(link, "the request could not be sent");
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct signer_ask *ask = data;
    if (message->type == WIRE_issued && !ask->certificate) {
        ask->certificate = mem_strdup(message->u.issued.certificate);
    } else if (message->type == WIRE_issued_host && !ask->certificate) {
        ask->certificate = mem_strdup(message->u.issued_host.certificate);
        ask->ticket = mem_strdup(message->u.issued_host.ticket_certificate);
    } else if (message->type == WIRE_error && !ask->text) {
        ask->text = mem_strdup(message->u.error.text);
    }
    link_close(link, "");
}

static void on_deadline(struct deadline *deadline)
{
    struct signer_ask *ask = CONTAINER_OF(deadline, struct signer_ask, deadline);
    link_close(ask->link, "it does not answer");
}

static void log_unreachable(const struct signer_ask *ask, const char *text)
{
    static struct log_limit limit;
    char printable[300];
    if (log_allowed(&limit, 5, 60000))
        log_error(
            "the signer at %s cannot be reached: %s; is the CA made (eadmin init), and elmer-signer.socket active?",
            ask->socket, str_printable(printable, sizeof(printable), text, strlen(text)));
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct signer_ask *ask = data;
    (void)link;
    deadline_clear(ask->deadlines, &ask->deadline);
    if (!ask->certificate && !ask->text && ask->answer)
        log_unreachable(ask, text);
    if (ask->answer)
        ask->answer(ask->certificate, ask->ticket ? ask->ticket : "",
                    ask->certificate ? ""
                    : ask->text      ? ask->text
                                     : "the queue host cannot sign certificates now: elmer's log there says why",
                    ask->data);
    free(ask->certificate);
    free(ask->ticket);
    free(ask->text);
    free(ask);
}

struct signer_ask *signer_ask(const struct room *room, const char *socket, const struct wire_message *request,
                              signer_answer answer, void *data)
{
    static const struct link_callbacks callbacks = {
        .on_ready = on_ready, .on_message = on_message, .on_close = on_close};
    static const struct link_options options = {.program = "elmer",
                                                .peer = WIRE_FROM_SIGNER,
                                                .out_max = OUT_MAX,
                                                .hello_timeout_ms = DIAL_MS,
                                                .no_hello = true};
    struct signer_ask *ask = mem_zalloc(sizeof(*ask));
    struct err err = ERR_INIT;
    *ask = (struct signer_ask){
        .deadlines = room->deadlines, .socket = socket, .request = *request, .answer = answer, .data = data};
    ask->request.id = ID;
    ask->deadline.fire = on_deadline;
    if (link_connect(room->loop, socket, DIAL_MS, &options, &callbacks, ask, &ask->link, &err)) {
        log_unreachable(ask, err.text);
        free(ask);
        return NULL;
    }
    deadline_set(room->deadlines, &ask->deadline, engine_now_ms() + ANSWER_MS);
    return ask;
}

void signer_abandon(struct signer_ask *ask)
{
    if (!ask)
        return;
    ask->answer = NULL;
    link_close(ask->link, "");
}
