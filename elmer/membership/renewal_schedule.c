/* renewal_schedule.c - one scan of everything every two seconds.
 *
 * A host: its newest certificate is two thirds over, or it has linked with an older one than that (a crash has cost it
 * the newest) which is -> renew_wanted, again after a while until a newer one has been passed on (join.c does that).
 * Only so many in one scan: each renewal starts a program.
 *
 * Our own: IDLE -> PREPARING (a thread makes a key and a request) -> SIGNING (elmer-signer) -> WRITING (a thread
 * replaces the pair) -> the TLS context is read again -> IDLE. Links that are up keep their sessions. A failure is
 * logged and tried again later. */
#include "config.h"

#include "elmer/membership/renewal_schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/membership/certificates.h"
#include "elmer/membership/signer.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/log.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "lib/pki/renewal.h"

enum { SCAN_MS = 2000, PER_SCAN = 4, RETRY_MIN_MS = 2000, RETRY_MAX_MS = 3600000 };

enum own_state { OWN_NONE, OWN_IDLE, OWN_PREPARING, OWN_SIGNING, OWN_WRITING };

struct renewals {
    struct room room;
    const struct membership_settings *settings;
    const struct certificates *certificates;
    struct hosts *hosts;
    struct deadline scan;
    int64_t *asked_ms; /* [nhosts] wall clock */
    size_t nhosts;
    bool closed;
    /* our own */
    enum own_state state;
    struct pki_certificate facts;
    int64_t tried_ms;
    struct pki_renewal made;
    struct signer_ask *ask;
    char *certificate;
    uv_work_t work;
    int result;
    struct err err;
};

static int64_t retry_ms(int64_t life_ms)
{
    int64_t part = life_ms / 12;
    return part < RETRY_MIN_MS ? RETRY_MIN_MS : part > RETRY_MAX_MS ? RETRY_MAX_MS : part;
}

/* ---- hosts ---- */

static bool due(const struct certificate *c, int64_t now_ms)
{
    return now_ms >= c->end_ms - (c->end_ms - c->issued_ms) / 3;
}

static bool host_due(struct renewals *r, int host, int64_t now_ms)
{
    int64_t linked_ms = 0;
    const char *serial = hosts_serial(r->hosts, host, &linked_ms);
    const struct certificate *newest = certificates_newest(r->certificates, host);
    const struct certificate *shown = serial ? certificates_find(r->certificates, serial) : NULL;
    if (!newest || !shown || now_ms - r->asked_ms[host] < retry_ms(newest->end_ms - newest->issued_ms))
        return false;
    return due(newest, now_ms) || (shown != newest && linked_ms > newest->issued_ms && due(shown, now_ms));
}

static void ask_hosts(struct renewals *r, int64_t now_ms)
{
    struct wire_message message = {.type = WIRE_renew_wanted};
    int room = PER_SCAN;
    for (int host = 0; host < engine_host_count(r->room.engine) && room; host++) {
        if (!host_due(r, host, now_ms))
            continue;
        r->asked_ms[host] = now_ms;
        hosts_send(r->hosts, host, &message);
        room--;
    }
}

/* ---- our own ---- */

static const struct moves_row states[] = {
    [OWN_NONE] = {"none", MOVE_TO(OWN_IDLE)},
    [OWN_IDLE] = {"idle", MOVE_TO(OWN_PREPARING)},
    [OWN_PREPARING] = {"preparing", MOVE_TO(OWN_SIGNING) | MOVE_TO(OWN_IDLE)},
    [OWN_SIGNING] = {"signing", MOVE_TO(OWN_WRITING) | MOVE_TO(OWN_IDLE)},
    [OWN_WRITING] = {"writing", MOVE_TO(OWN_IDLE)},
};

static void move(struct renewals *r, enum own_state state)
{
    MOVES_CHECK("own renewal", states, r->state, state);
    r->state = state;
}

static void own_done(struct renewals *r, const char *problem)
{
    char printable[900], end[32];
    pki_renewal_fini(&r->made);
    free(r->certificate);
    r->certificate = NULL;
    move(r, OWN_IDLE);
    wall_format((struct wall){r->facts.end_s * 1000}, end, sizeof(end));
    if (problem)
        log_error("elmer's own certificate is not renewed yet: %s; it ends at %s; hosts link with it all the same, but "
                  "then only "
                  "`eadmin init` makes another",
                  str_printable(printable, sizeof(printable), problem, strlen(problem)), end);
    else
        log_notice("elmer's own certificate is renewed; the new one is good until %s", end);
}

static void save_work(uv_work_t *work)
{
    struct renewals *r = work->data;
    r->result = pki_renewal_save(r->settings->pki, &r->made, r->certificate, &r->err);
}

static void save_done(uv_work_t *work, int status)
{
    struct renewals *r = work->data;
    (void)status;
    if (r->closed)
        return;
    if (!r->result)
        r->result = pki_inspect(r->certificate, &r->facts, &r->err);
    if (!r->result)
        r->result = hosts_reload_tls(r->hosts, &r->err);
    own_done(r, r->result ? r->err.text : NULL);
}

static void on_signed(const char *certificate, const char *ticket, const char *text, void *data)
{
    struct renewals *r = data;
    (void)ticket;
    r->ask = NULL;
    if (!certificate) {
        own_done(r, text);
        return;
    }
    r->certificate = mem_strdup(certificate);
    move(r, OWN_WRITING);
    uv_queue_work(r->room.loop, &r->work, save_work, save_done);
}

static void prepare_work(uv_work_t *work)
{
    struct renewals *r = work->data;
    r->result = pki_renewal_prepare(r->settings->pki, &r->made, &r->err);
}

static void prepare_done(uv_work_t *work, int status)
{
    struct renewals *r = work->data;
    struct wire_message request = {.type = WIRE_sign_renew};
    (void)status;
    if (r->closed)
        return;
    if (r->result) {
        own_done(r, r->err.text);
        return;
    }
    request.u.sign_renew.certificate = r->made.old;
    request.u.sign_renew.proof = r->made.proof;
    request.u.sign_renew.request = r->made.request;
    move(r, OWN_SIGNING);
    r->ask = signer_ask(&r->room, r->settings->signer, &request, on_signed, r);
    if (!r->ask)
        own_done(r, "the signer cannot be asked");
}

static void renew_own(struct renewals *r, int64_t now_ms)
{
    int64_t life_ms = (r->facts.end_s - r->facts.begin_s - PKI_BACKDATE_S) * 1000;
    if (r->state != OWN_IDLE || now_ms < pki_renewal_s(&r->facts) * 1000 || now_ms - r->tried_ms < retry_ms(life_ms))
        return;
    r->tried_ms = now_ms;
    move(r, OWN_PREPARING);
    err_clear(&r->err);
    uv_queue_work(r->room.loop, &r->work, prepare_work, prepare_done);
}

/* ---- begin and end ---- */

static void on_scan(struct deadline *deadline)
{
    struct renewals *r = CONTAINER_OF(deadline, struct renewals, scan);
    int64_t now_ms = wall_now().ms;
    ask_hosts(r, now_ms);
    renew_own(r, now_ms);
    deadline_set(r->room.deadlines, &r->scan, engine_now_ms() + SCAN_MS);
}

/* That there is none yet, hosts/listen.c says, and when it comes. */
void renewals_recover(struct renewals *r)
{
    struct err err = ERR_INIT;
    int result = r->settings->pki && r->state == OWN_NONE ? pki_renewal_recover(r->settings->pki, &r->facts, &err) : 1;
    if (!result)
        move(r, OWN_IDLE);
    else if (result < 0 && result != -ENOENT && result != -EACCES)
        log_error("elmer's own certificate cannot be looked after: %s", err.text);
}

void renewals_make_room(struct renewals *r)
{
    size_t now = (size_t)engine_host_count(r->room.engine);
    r->asked_ms = mem_exactly(r->asked_ms, r->nhosts, now, sizeof(*r->asked_ms));
    r->nhosts = now;
}

struct renewals *renewals_create(const struct room *room, const struct membership_settings *settings,
                                 const struct certificates *certificates)
{
    struct renewals *r = mem_zalloc(sizeof(*r));
    *r =
        (struct renewals){.room = *room, .settings = settings, .certificates = certificates, .scan = {.fire = on_scan}};
    r->work.data = r;
    renewals_make_room(r);
    renewals_recover(r);
    return r;
}

void renewals_begin(struct renewals *r, struct hosts *hosts)
{
    r->hosts = hosts;
    if (r->settings->pki)
        deadline_set(r->room.deadlines, &r->scan, engine_now_ms() + SCAN_MS);
}

void renewals_close(struct renewals *r)
{
    if (!r)
        return;
    r->closed = true;
    deadline_clear(r->room.deadlines, &r->scan);
    signer_abandon(r->ask);
    r->ask = NULL;
}

void renewals_destroy(struct renewals *r)
{
    if (!r)
        return;
    pki_renewal_fini(&r->made);
    free(r->certificate);
    free(r->asked_ms);
    free(r);
}
