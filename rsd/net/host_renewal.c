/* host_renewal.c - renewal of this host's certificate.
 *
 *   IDLE --renew_wanted--> PREPARING --renew sent--> ASKING --renewed--> WRITING --> IDLE
 *
 * PREPARING: a thread reads the present pair, makes a key and a request, and signs that with the present key. WRITING:
 * a thread checks what has come and writes the new pair; the next dial reads it, the link that is up keeps its session.
 * An error of elmer, or of ours, is one line in the log and leads to IDLE: elmer asks again. renew_wanted while another
 * one is under way begins anew in ASKING (the link may have been lost) and is ignored else. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "lib/pki/renewal.h"
#include "rsd/net/host_renewal.h"

enum { RENEW_ID = 2 };
enum host_renewal_state { RENEWAL_IDLE, RENEWAL_PREPARING, RENEWAL_ASKING, RENEWAL_WRITING };

struct host_renewal {
    uv_loop_t *loop;
    struct host_renewal_callbacks callbacks;
    void *data;
    enum host_renewal_state state;
    bool closed;
    uv_work_t work;
    /* of the thread while one works */
    char *pki, *certificate;
    struct pki_renewal made;
    int result;
    struct err err;
};

static const struct moves_row states[] = {
    [RENEWAL_IDLE] = {"idle", MOVE_TO(RENEWAL_PREPARING)},
    [RENEWAL_PREPARING] = {"preparing", MOVE_TO(RENEWAL_ASKING) | MOVE_TO(RENEWAL_IDLE)},
    [RENEWAL_ASKING] = {"asking", MOVE_TO(RENEWAL_WRITING) | MOVE_TO(RENEWAL_IDLE)},
    [RENEWAL_WRITING] = {"writing", MOVE_TO(RENEWAL_IDLE)},
};

static void move(struct host_renewal *r, enum host_renewal_state state)
{
    MOVES_CHECK("renewal", states, r->state, state);
    r->state = state;
}

static void forget(struct host_renewal *r)
{
    pki_renewal_fini(&r->made);
    free(r->certificate);
    r->certificate = NULL;
    move(r, RENEWAL_IDLE);
}

static void destroy(struct host_renewal *r)
{
    pki_renewal_fini(&r->made);
    free(r->certificate);
    free(r->pki);
    free(r);
}

static void fail(struct host_renewal *r, const char *text)
{
    char printable[1000];

    log_warning("this host's certificate is not renewed yet: %s",
                str_printable(printable, sizeof(printable), text, strlen(text)));
    forget(r);
}

/* After work in a thread. Else r may be gone. */
static bool may_go_on(struct host_renewal *r)
{
    bool closed = r->closed, failed = r->result < 0;

    if (closed)
        destroy(r);
    else if (failed)
        fail(r, r->err.text);
    return !closed && !failed;
}

/* ---- PREPARING ---- */

static void prepare_work(uv_work_t *work)
{
    struct host_renewal *r = work->data;

    r->result = pki_renewal_prepare(r->pki, &r->made, &r->err);
}

static void prepare_done(uv_work_t *work, int status)
{
    struct host_renewal *r = work->data;
    struct wire_message message = {.type = WIRE_renew, .id = RENEW_ID};

    (void)status;
    if (!may_go_on(r))
        return;
    message.u.renew.certificate = r->made.old;
    message.u.renew.proof = r->made.proof;
    message.u.renew.request = r->made.request;
    /* Still PREPARING: who closes it meanwhile, as nothing can be sent any more, leaves it to the lines below. */
    int result = r->callbacks.send(&message, r->data);
    if (r->closed)
        destroy(r);
    else if (result < 0)
        forget(r); /* the link is gone; elmer asks again on the next one */
    else
        move(r, RENEWAL_ASKING);
}

/* ---- WRITING ---- */

static void save_work(uv_work_t *work)
{
    struct host_renewal *r = work->data;

    r->result = pki_renewal_save(r->pki, &r->made, r->certificate, &r->err);
}

static void save_done(uv_work_t *work, int status)
{
    struct host_renewal *r = work->data;

    (void)status;
    if (!may_go_on(r))
        return;
    log_notice("this host's certificate is renewed");
    forget(r);
}

/* ---- messages ---- */

static void queue(struct host_renewal *r, enum host_renewal_state state, uv_work_cb work, uv_after_work_cb done)
{
    move(r, state);
    err_clear(&r->err);
    (void)uv_queue_work(r->loop, &r->work, work, done);
}

bool host_renewal_message(struct host_renewal *r, const struct wire_message *message)
{
    if (message->type == WIRE_renew_wanted) {
        if (r->state == RENEWAL_ASKING)
            forget(r);
        if (r->state == RENEWAL_IDLE)
            queue(r, RENEWAL_PREPARING, prepare_work, prepare_done);
        return true;
    }
    if (message->type == WIRE_error && message->id == RENEW_ID && r->state == RENEWAL_ASKING) {
        fail(r, message->u.error.text);
        return true;
    }
    if (message->type != WIRE_renewed)
        return false;
    if (r->state == RENEWAL_ASKING && (r->certificate = strdup(message->u.renewed.certificate)))
        queue(r, RENEWAL_WRITING, save_work, save_done);
    return true;
}

/* ---- the handle ---- */

struct host_renewal *host_renewal_create(uv_loop_t *loop, const char *pki,
                                         const struct host_renewal_callbacks *callbacks, void *data)
{
    struct host_renewal *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    *r = (struct host_renewal){.loop = loop, .callbacks = *callbacks, .data = data, .pki = strdup(pki)};
    r->work.data = r;
    if (r->pki)
        return r;
    free(r);
    return NULL;
}

void host_renewal_close(struct host_renewal *r)
{
    if (!r)
        return;
    r->closed = true;
    if (r->state == RENEWAL_IDLE || r->state == RENEWAL_ASKING)
        destroy(r);
}
