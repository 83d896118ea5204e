/* enroll.c - from token to certificate.
 *
 * A key and a request are made -> the files are made, each as large as it may become -> elmer is dialled, which must
 * show a chain from the CA that the token names (the TLS handshake fails else) -> join, with the proof that we have the
 * token's secret -> joined -> the certificate must be of this CA, for our key and name -> it is written into the files,
 * and they are moved to their names. An error message of elmer, or the end of the link, is the reason that is given.
 *
 * By its answer elmer has used the token up and has revoked what this host had, so a disk that is full or read-only is
 * found before it is asked. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "lib/pki/counter.h"
#include "lib/pki/pair.h"
#include "lib/pki/x509.h"
#include "rsd/net/enroll.h"

enum { DIAL_MS = 10000, ANSWER_MS = 30000, OUT_MAX = 64 * 1024, JOIN_ID = 1 };

struct enrolment {
    const char *elmer, *name;
    const struct token *token;
    struct enrol_ticket *ticket;
    char *key, *request, *ca, *certificate;
    int dir;
    uint64_t counter; /* of elmer's certificate */
    uv_loop_t loop;
    uv_timer_t timer;
    struct link *link;
    int result; /* -ECONNABORTED: no answer yet */
    struct err *err;
};

static void finish(struct enrolment *e, int result, const char *text)
{
    char printable[1000];

    if (e->result != -ECONNABORTED)
        return;
    e->result = result;
    if (result < 0)
        err_set(e->err, result, "%s", str_printable(printable, sizeof(printable), text, strlen(text)));
}

/* A host that joins the same cluster again has seen elmer's certificates before. */
static bool is_latest(struct enrolment *e)
{
    uint64_t seen;
    struct err err = ERR_INIT;

    if (counter_read(e->dir, e->ca, &seen, &err) < 0)
        finish(e, -EINVAL, err.text);
    else if (e->counter < seen)
        finish(e, -EPROTO,
               "elmer there shows a certificate that was replaced: somebody may have its old key, or its files come "
               "from a backup; do \"eadmin init\" on the queue host and restart elmer");
    else
        return true;
    return false;
}

static void on_ready(struct link *link, void *data)
{
    struct enrolment *e = data;
    struct wire_message message = {.type = WIRE_join, .id = JOIN_ID};
    char id[TOKEN_ID_SIZE], proof[PKI_PROOF_SIZE], *proven;
    bool with_ticket = link_minor(link) >= WIRE_TICKET_MINOR;
    const char *ca = link_ca_pem(link);

    e->ca = ca ? strdup(ca) : NULL;
    e->counter = link_peer_counter(link);
    if (e->ca && !is_latest(e)) {
        link_close(link, "");
        return;
    }
    token_id(e->token, id);
    proven = str_format("%s%s", e->request, with_ticket ? e->ticket->key : "");
    message.u.join.host = e->name;
    message.u.join.token = id;
    message.u.join.proof = proof;
    message.u.join.request = e->request;
    message.u.join.clock_ms = wall_now().ms;
    message.u.join.ticket_key = with_ticket ? e->ticket->key : "";
    if (!e->ca || !proven ||
        pki_join_proof(e->token->secret, sizeof(e->token->secret), e->name, proven, proof, NULL) < 0 ||
        link_send(link, &message) < 0) {
        finish(e, -EIO, "the request to join could not be sent");
        link_close(link, "");
    }
    free(proven);
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct enrolment *e = data;

    if (message->type == WIRE_ping) {
        struct wire_message pong = {.type = WIRE_pong, .id = message->id};

        (void)link_send(link, &pong);
        return;
    }
    if (message->type == WIRE_joined && !e->certificate) {
        e->certificate = strdup(message->u.joined.certificate);
        snprintf(e->ticket->certificate, sizeof(e->ticket->certificate), "%s", message->u.joined.ticket_certificate);
        finish(e, e->certificate ? 0 : -ENOMEM, "out of memory");
    } else if (message->type == WIRE_error) {
        finish(e, -EACCES, message->u.error.text);
    } else {
        finish(e, -EPROTO, "elmer sent something else than a certificate");
    }
    link_close(link, "");
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct enrolment *e = data;

    (void)link;
    e->link = NULL;
    finish(e, -ECONNRESET, text);
    if (!uv_is_closing((uv_handle_t *)&e->timer))
        uv_close((uv_handle_t *)&e->timer, NULL);
}

static void on_timer(uv_timer_t *timer)
{
    struct enrolment *e = timer->data;

    finish(e, -ETIMEDOUT, "elmer does not answer");
    if (e->link)
        link_close(e->link, "");
}

/* Runs the loop until the link has ended. */
static int talk(struct enrolment *e, struct tls_context *tls)
{
    static const struct link_callbacks callbacks = {
        .on_ready = on_ready, .on_message = on_message, .on_close = on_close};
    struct link_options options = {
        .program = "rsd", .peer = WIRE_FROM_ELMER, .out_max = OUT_MAX, .hello_timeout_ms = DIAL_MS, .tls = tls};
    int result = uv_loop_init(&e->loop);

    if (result < 0)
        return err_set(e->err, result, "no event loop: %s", uv_strerror(result));
    (void)uv_timer_init(&e->loop, &e->timer);
    e->timer.data = e;
    e->result = -ECONNABORTED;
    result = link_connect(&e->loop, e->elmer, DIAL_MS, &options, &callbacks, e, &e->link, e->err);
    if (result < 0) {
        e->result = result;
        uv_close((uv_handle_t *)&e->timer, NULL);
    } else {
        (void)uv_timer_start(&e->timer, on_timer, ANSWER_MS, 0);
    }
    (void)uv_run(&e->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&e->loop);
    return e->result;
}

static int check(const struct enrolment *e)
{
    struct pki_certificate facts;
    int result = pki_verify(e->certificate, e->ca, e->err);

    if (result == 0)
        result = pki_key_fits(e->key, e->certificate, e->err);
    if (result == 0)
        result = pki_inspect(e->certificate, &facts, e->err);
    if (result == 0 && (strcmp(facts.name, e->name) != 0 || !facts.client))
        result = err_set(e->err, -EPROTO, "elmer sent a certificate for %s", facts.name);
    return result;
}

/* ---- the files ---- */

enum { FILE_CA, FILE_COUNTER, FILE_KEY, FILE_CERTIFICATE, FILE_COUNT };

static const char *const drafts[FILE_COUNT] = {".join.ca", ".join.counter", ".join.key", ".join.certificate"};

/* Two at a time could end with the key of the one and the certificate of the other. */
static int open_dir(const char *pki, struct err *err)
{
    int dir = file_dir(pki, 0700, err);

    if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) /* there are file systems without it */
        return dir;
    close(dir);
    return err_set(err, -EBUSY, "another rsd --join is at work here");
}

static void discard(const struct enrolment *e)
{
    for (int i = 0; i < FILE_COUNT; i++)
        unlinkat(e->dir, drafts[i], 0);
}

/* What is written into them later takes no more room. */
static int reserve(const struct enrolment *e, const char *pki)
{
    char blank[PKI_PEM_MAX + 1];
    int result = 0;

    memset(blank, '\n', PKI_PEM_MAX);
    blank[PKI_PEM_MAX] = '\0';
    for (int i = 0; result == 0 && i < FILE_COUNT; i++)
        result = file_write_new(e->dir, drafts[i], blank, 0600);
    if (result == 0)
        return 0;
    return err_set(e->err, result, "%s cannot be written: %s; elmer has not been asked, so the token is still good",
                   pki, strerror(-result));
}

static int fill(const struct enrolment *e, int which, const char *text, mode_t mode)
{
    size_t size = strlen(text);
    int fd = openat(e->dir, drafts[which], O_WRONLY | O_NOFOLLOW | O_CLOEXEC), result = fd < 0 ? -errno : 0;
    ssize_t written = fd < 0 ? 0 : write(fd, text, size);

    if (fd >= 0 && (written < 0 || ftruncate(fd, written) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0))
        result = -errno;
    else if (fd >= 0 && (size_t)written < size)
        result = -ENOSPC;
    if (fd >= 0)
        close(fd);
    return result;
}

static int save(const struct enrolment *e)
{
    char counter[COUNTER_TEXT_SIZE];
    int result = counter_text(e->ca, e->counter, counter, e->err);

    if (result < 0)
        return result;
    result = fill(e, FILE_CA, e->ca, 0644);
    if (result == 0)
        result = fill(e, FILE_COUNTER, counter, 0600);
    if (result == 0)
        result = fill(e, FILE_KEY, e->key, 0600);
    if (result == 0)
        result = fill(e, FILE_CERTIFICATE, e->certificate, 0644);
    if (result == 0)
        result = file_move(e->dir, drafts[FILE_CA], "ca.crt");
    if (result == 0)
        result = file_move(e->dir, drafts[FILE_COUNTER], COUNTER_FILE);
    if (result < 0)
        return err_set(e->err, result, "cannot write what elmer has sent: %s", strerror(-result));
    return pair_move(e->dir, drafts[FILE_KEY], drafts[FILE_CERTIFICATE], e->err);
}

int enroll(const char *elmer, const char *name, const struct token *token, const char *pki, struct enrol_ticket *ticket,
           struct err *err)
{
    struct enrolment e = {
        .elmer = elmer, .name = name, .token = token, .ticket = ticket, .dir = open_dir(pki, err), .err = err};
    struct tls_context *tls = NULL;
    int result = e.dir < 0 ? e.dir : pki_key_create(&e.key, err);

    if (result == 0)
        result = pki_request_create(e.key, name, &e.request, err);
    if (result == 0)
        result = tls_context_joiner(token->pin, &tls, err);
    if (result == 0)
        result = reserve(&e, pki);
    if (result == 0)
        result = talk(&e, tls);
    if (result == 0)
        result = check(&e);
    if (result == 0)
        result = save(&e);
    if (result == 0)
        snprintf(ticket->ca, sizeof(ticket->ca), "%s", e.ca);
    tls_context_unref(tls);
    pki_key_free(e.key);
    free(e.request);
    free(e.ca);
    free(e.certificate);
    if (e.dir >= 0) {
        discard(&e);
        close(e.dir);
    }
    return result;
}
