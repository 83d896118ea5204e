/* join.c - from join or renew to the certificate.
 *
 * Normal: the message is checked (the name is in the configuration, or else the token must name it; what is to be
 * renewed is this host's and counts) -> elmer-signer is asked, which checks token or proof -> a host that is new
 * becomes one of the cluster -> the certificate is put to the store, which a join makes the only one of its host -> on
 * disk -> joined or renewed. Each failure is one sentence to the peer and, for a join, one line in the log. A peer that
 * goes away while it is being signed leaves its request behind: what was signed is recorded all the same. Whose name
 * was removed or taken meanwhile is refused, and what was signed counts nowhere, as it is not recorded. Both are
 * limited, because every one starts a program: five joins begin in a second, eight are there at once, so that hosts
 * which are joined one after the other by a script only wait. Anybody may ask to join, without a token too, and so keep
 * these places filled: renewals, which come on links with a certificate, have places and a pace of their own, one for
 * each host. All together, and elmer's own, are fewer than the programs that elmer-signer.socket starts. */
#include "config.h"

#include "elmer/membership/join.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/membership/certificates.h"
#include "elmer/membership/signer.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/log.h"
#include "lib/base/str.h"

enum { MAX_JOINS = 8, JOINS_PER_SECOND = 5, MAX_RENEWALS = 6, RENEWALS_PER_SECOND = 5, CLOCK_OFF_MS = 300000 };

struct kind {
    size_t count;
    int64_t second; /* in which so many have begun */
    unsigned begun;
};

struct join {
    struct joins *joins;
    uint64_t number;
    struct peer *peer;           /* NULL: gone */
    bool waits;                  /* for a second in which fewer have begun */
    bool taken;                  /* its name was when the signer was asked: the token names it */
    bool removed;                /* since then */
    struct wire_message message; /* join or renew */
    char *host;
    struct signer_ask *ask;
    struct certificate facts;
    char *certificate, *ticket; /* that of its ticket key; "": it has none */
    struct join *next, **place;
};

struct joins {
    struct room room;
    const struct membership_settings *settings;
    struct certificates *certificates;
    struct hosts *hosts;
    void (*add_host)(const char *name, void *data);
    void *add_data;
    struct join *all;
    struct kind joining, renewing;
    uint64_t last;
    struct deadline pace;
    struct log_limit limit;
};

static void on_pace(struct deadline *deadline);

struct joins *joins_create(const struct room *room, const struct membership_settings *settings,
                           struct certificates *certificates)
{
    struct joins *joins = mem_zalloc(sizeof(*joins));
    *joins =
        (struct joins){.room = *room, .settings = settings, .certificates = certificates, .pace = {.fire = on_pace}};
    return joins;
}

void joins_begin(struct joins *joins, struct hosts *hosts)
{
    joins->hosts = hosts;
}

void joins_connect(struct joins *joins, void (*add_host)(const char *name, void *data), void *data)
{
    joins->add_host = add_host;
    joins->add_data = data;
}

static bool is_member(const struct joins *joins, const char *name)
{
    return core_member_by_name(engine_core(joins->room.engine), name) >= 0;
}

/* It has joined, and was not removed since: so every host that is linked. One that is not configured becomes a host
 * with a token that names it only. */
static bool is_taken(const struct joins *joins, const char *name)
{
    return !is_member(joins, name) ||
           certificates_newest(joins->certificates, core_host_by_name(engine_core(joins->room.engine), name));
}

static bool is_join(const struct join *join)
{
    return join->message.type == WIRE_join;
}

static struct kind *kind_of(const struct join *join)
{
    return is_join(join) ? &join->joins->joining : &join->joins->renewing;
}

static void release(struct join *join)
{
    assert(kind_of(join)->count > 0 && *join->place == join);
    *join->place = join->next;
    if (join->next)
        join->next->place = join->place;
    kind_of(join)->count--;
    signer_abandon(join->ask);
    wire_message_fini(&join->message);
    free(join->host);
    free(join->certificate);
    free(join->ticket);
    free(join);
}

void joins_close(struct joins *joins)
{
    while (joins && joins->all)
        release(joins->all);
    if (joins)
        deadline_clear(joins->room.deadlines, &joins->pace);
}

void joins_destroy(struct joins *joins)
{
    free(joins);
}

/* ---- answers ---- */

/* Ends it. A joiner's link ends with it too. */
static void refuse(struct join *join, const char *text)
{
    char printable[1024];
    str_printable(printable, sizeof(printable), text, strlen(text));
    if (log_allowed(&join->joins->limit, 30, 10000))
        log_warning("host=%s %s refused (from %s): %s", join->host, is_join(join) ? "join" : "renewal",
                    join->peer ? hosts_peer_address(join->peer) : "a link that is gone", printable);
    if (join->peer && is_join(join)) {
        hosts_peer_refuse(join->peer, join->message.id, printable);
    } else if (join->peer) {
        struct wire_message answer = {.type = WIRE_error, .id = join->message.id};
        answer.u.error.code = WIRE_CODE_REFUSED;
        answer.u.error.text = printable;
        hosts_peer_send(join->peer, &answer);
    }
    release(join);
}

static void __attribute__((format(printf, 2, 3))) refuse_because(struct join *join, const char *format, ...)
{
    char text[1000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    refuse(join, text);
}

static void refuse_removed(struct join *join)
{
    refuse_because(join, "%s was removed meanwhile, or has joined again: join with a new token", join->host);
}

static void log_given(const struct join *join)
{
    char end[32];
    int64_t off = is_join(join) ? join->message.u.join.clock_ms - wall_now().ms : 0;
    wall_format((struct wall){join->facts.end_ms}, end, sizeof(end));
    log_notice("host=%s has %s (from %s); its certificate %s is good until %s", join->host,
               is_join(join) ? "joined" : "renewed its certificate",
               join->peer ? hosts_peer_address(join->peer) : "a link that is gone", join->facts.serial, end);
    if (llabs(off) > CLOCK_OFF_MS)
        log_notice("host=%s its clock is %lld minutes %s of this one; that does not matter to Elmer, but to other "
                   "programs: set it there, timedatectl set-ntp true",
                   join->host, llabs(off) / 60000, off < 0 ? "behind" : "ahead");
}

/* What was put to the store for the request of this number is on disk. */
static void on_committed(const struct engine_wait *wait)
{
    struct joins *joins = wait->owner;
    struct join *join = joins->all;
    while (join && join->number != wait->number)
        join = join->next;
    if (!join)
        return;
    if (join->removed) {
        refuse_removed(join);
        return;
    }
    struct wire_message answer = {.type = is_join(join) ? WIRE_joined : WIRE_renewed, .id = join->message.id};
    if (is_join(join)) {
        answer.u.joined.certificate = join->certificate;
        answer.u.joined.ticket_certificate = join->ticket;
    } else {
        answer.u.renewed.certificate = join->certificate;
    }
    log_given(join);
    if (join->peer)
        hosts_peer_send(join->peer, &answer);
    if (join->peer && is_join(join))
        hosts_peer_close(join->peer); /* its next link has the certificate */
    release(join);
}

/* ---- the signer's answer ---- */

static int read_facts(struct join *join, const char *text, struct err *err)
{
    struct pki_certificate facts;
    int result = pki_inspect(text, &facts, err);
    if (!result && (strcmp(facts.name, join->host) != 0 || !facts.client))
        result = err_set(err, -EINVAL, "the signer made a certificate for \"%s\"", facts.name);
    if (result)
        return result;
    join->facts = (struct certificate){.issued_ms = wall_now().ms, .end_ms = facts.end_s * 1000};
    snprintf(join->facts.serial, sizeof(join->facts.serial), "%s", facts.serial);
    snprintf(join->facts.host, sizeof(join->facts.host), "%s", facts.name);
    return 0;
}

/* What is under way for this name was judged before. */
static void give_up(struct joins *joins, const char *host, bool joins_too)
{
    for (struct join *join = joins->all; join; join = join->next)
        if (!join->waits && (joins_too || !is_join(join)) && strcmp(join->host, host) == 0)
            join->removed = true;
}

/* Who joins again is another machine, or has lost its key: what it had no longer counts. False: it had nothing. */
static bool replace_older(struct join *join)
{
    struct joins *joins = join->joins;
    if (!certificates_revoke(joins->certificates, join->host, join->facts.serial))
        return false;
    give_up(joins, join->host, false);
    log_notice("host=%s joins again: its older certificates are revoked", join->host);
    hosts_cut_off(joins->hosts, core_host_by_name(engine_core(joins->room.engine), join->host), NULL,
                  "a host has joined under this name with a new token: this certificate is revoked; if that was not "
                  "you, `eadmin remove` it and join again");
    return true;
}

/* By whom is known of the token only: who has it may join. */
static void note_joined(const struct join *join, bool is_new, bool again)
{
    struct decision decision = {.what = "joined", .uid = DECISION_NOBODY, .admin = true};
    const char *token = join->message.u.join.token;
    char id[80];
    snprintf(decision.host, sizeof(decision.host), "%s", join->host);
    snprintf(decision.by, sizeof(decision.by), "(token %s)", str_printable(id, sizeof(id), token, strlen(token)));
    snprintf(decision.from, sizeof(decision.from), "%s",
             join->peer ? hosts_peer_address(join->peer) : "a link that is gone");
    snprintf(decision.text, sizeof(decision.text), "%s",
             again    ? "again: its older certificates are revoked"
             : is_new ? "a new host, which the configuration does not name"
                      : "");
    engine_note(join->joins->room.engine, &decision);
}

/* True: so much that it is refused. */
static bool has_changed(struct join *join)
{
    const char *failure = engine_store_failure(join->joins->room.engine);
    if (join->removed)
        refuse_removed(join);
    else if (is_join(join) && !join->taken && is_taken(join->joins, join->host))
        refuse_because(join,
                       "%s is in the cluster now, or not in the configuration any more: join again, with a token "
                       "that names it (`eadmin token --hosts %s` on the queue host)",
                       join->host, join->host);
    else if (is_join(join) && failure)
        refuse_because(join, "%s; when it can, join again with a new token", failure);
    else
        return false;
    return true;
}

static void on_answer(const char *certificate, const char *ticket, const char *text, void *data)
{
    struct join *join = data;
    struct joins *joins = join->joins;
    struct err err = ERR_INIT;
    assert(!join->waits && !join->certificate);
    join->ask = NULL;
    if (!certificate || read_facts(join, certificate, &err)) {
        refuse(join, certificate ? err.text : text);
        return;
    }
    if (has_changed(join))
        return;
    bool is_new = is_join(join) && !is_member(joins, join->host);
    if (is_new) {
        log_notice("host=%s is not in the configuration, and joins with a token that names it: it is a host of the "
                   "cluster now, until eadmin remove",
                   join->host);
        joins->add_host(join->host, joins->add_data);
    }
    join->certificate = mem_strdup(certificate);
    join->ticket = mem_strdup(ticket);
    certificates_add(joins->certificates, &join->facts);
    if (is_join(join))
        note_joined(join, is_new, replace_older(join));
    struct engine_wait wait = {
        .run = on_committed, .owner = joins, .urgency = ENGINE_WORK, .number = join->number, .host = -1};
    engine_after_commit(joins->room.engine, &wait);
}

/* ---- the request ---- */

static bool may_begin(struct kind *kind, unsigned per_second)
{
    int64_t second = engine_now_ms() / 1000;
    if (second != kind->second)
        kind->begun = 0;
    kind->second = second;
    return kind->begun < per_second && ++kind->begun;
}

static struct join *take(struct joins *joins, struct peer *peer, int host, struct wire_message *message)
{
    struct join *join = mem_zalloc(sizeof(*join));
    const char *name = host < 0 ? message->u.join.host : engine_host_name(joins->room.engine, host);
    char printable[300];
    *join = (struct join){.joins = joins,
                          .number = ++joins->last,
                          .peer = peer,
                          .waits = true,
                          .message = *message,
                          .next = joins->all,
                          .place = &joins->all};
    join->host = mem_strdup(str_printable(printable, sizeof(printable), name, strlen(name)));
    message->memory = NULL;
    if (joins->all)
        joins->all->place = &join->next;
    joins->all = join;
    kind_of(join)->count++;
    return join;
}

static void ask(struct join *join, const struct wire_message *request)
{
    assert(!join->ask && !join->waits);
    join->ask = signer_ask(&join->joins->room, join->joins->settings->signer, request, on_answer, join);
    if (!join->ask)
        refuse(join, "the queue host cannot sign certificates now: elmer's log there says why");
}

static void begin_join(struct join *join)
{
    const struct joins *joins = join->joins;
    const struct wire_join *m = &join->message.u.join;
    struct wire_message request = {.type = WIRE_sign_join};
    join->taken = is_taken(joins, m->host);
    if (!str_valid_hostname(m->host) || strlen(m->host) > PKI_NAME_MAX) {
        refuse_because(join, "\"%.80s\" is no name for a host", join->host);
    } else if (joins->settings->fixed && !is_member(joins, m->host)) {
        refuse_because(join,
                       "%s is not in the configuration, and with topology = cube all hosts are: add it to \"hosts = "
                       "...\" in elmer.conf on the queue host and restart elmer, or join under a name that is there "
                       "(--name)",
                       m->host);
    } else if (strcmp(m->host, joins->settings->queue_host) == 0) {
        refuse_because(
            join,
            "%s is the queue host: its rsd needs no certificate (leave \"elmer = ...\" out of its rsd.conf); "
            "a workstation joins under its own name (--name)",
            m->host);
    } else if (engine_store_failure(joins->room.engine)) {
        refuse_because(join, "%s; when it can, join again with the same token",
                       engine_store_failure(joins->room.engine));
    } else if (*m->ticket_key) {
        request.type = WIRE_sign_host;
        request.u.sign_host = (struct wire_sign_host){.host = m->host,
                                                      .taken = join->taken,
                                                      .token = m->token,
                                                      .proof = m->proof,
                                                      .request = m->request,
                                                      .ticket_key = m->ticket_key};
        ask(join, &request);
    } else if (join->taken) {
        request.type = WIRE_sign_rejoin;
        request.u.sign_rejoin =
            (struct wire_sign_rejoin){.host = m->host, .token = m->token, .proof = m->proof, .request = m->request};
        ask(join, &request);
    } else {
        request.u.sign_join =
            (struct wire_sign_join){.host = m->host, .token = m->token, .proof = m->proof, .request = m->request};
        ask(join, &request);
    }
}

static void begin_renewal(struct join *join)
{
    const struct wire_renew *m = &join->message.u.renew;
    struct wire_message request = {.type = WIRE_sign_renew};
    struct pki_certificate facts;
    struct err err = ERR_INIT;
    if (!hosts_peer_serial(join->peer)) {
        refuse(join, "a link without certificate has nothing to renew");
    } else if (pki_inspect(m->certificate, &facts, &err) ||
               certificates_judge(join->joins->certificates, join->host, facts.serial, &err)) {
        refuse(join, err.text);
    } else {
        request.u.sign_renew.certificate = m->certificate;
        request.u.sign_renew.proof = m->proof;
        request.u.sign_renew.request = m->request;
        ask(join, &request);
    }
}

/* The list has the latest first. */
static struct join *first_waiting(const struct joins *joins, const struct kind *kind)
{
    struct join *first = NULL;
    for (struct join *join = joins->all; join; join = join->next)
        if (join->waits && kind_of(join) == kind)
            first = join;
    return first;
}

static void begin_waiting(struct joins *joins)
{
    struct kind *joining = &joins->joining, *renewing = &joins->renewing;
    for (struct join *join; (join = first_waiting(joins, renewing)) && may_begin(renewing, RENEWALS_PER_SECOND);) {
        join->waits = false;
        begin_renewal(join);
    }
    for (struct join *join; (join = first_waiting(joins, joining)) && may_begin(joining, JOINS_PER_SECOND);) {
        join->waits = false;
        begin_join(join);
    }
    if (first_waiting(joins, renewing) || first_waiting(joins, joining))
        deadline_set(joins->room.deadlines, &joins->pace, (engine_now_ms() / 1000 + 1) * 1000);
}

static void on_pace(struct deadline *deadline)
{
    begin_waiting(CONTAINER_OF(deadline, struct joins, pace));
}

static bool is_renewed_already(const struct join *join)
{
    for (const struct join *other = join->joins->all; other; other = other->next)
        if (other != join && !is_join(other) && strcmp(other->host, join->host) == 0)
            return true;
    return false;
}

/* NULL: it has a place. */
static const char *has_no_place(const struct join *join)
{
    if (is_join(join))
        return join->joins->joining.count > MAX_JOINS ? "too many hosts join at once: try again in some seconds" : NULL;
    if (is_renewed_already(join))
        return "another renewal of this host is under way";
    return join->joins->renewing.count > MAX_RENEWALS ? "too many hosts renew at once" : NULL;
}

void joins_ask(struct joins *joins, struct peer *peer, int host, struct wire_message *message)
{
    struct join *join = take(joins, peer, host, message);
    const char *why = has_no_place(join);
    if (why) {
        join->waits = false;
        refuse(join, why);
    } else {
        begin_waiting(joins);
    }
}

void joins_removed(struct joins *joins, const char *host)
{
    give_up(joins, host, true);
}

void joins_peer_gone(struct joins *joins, struct peer *peer)
{
    for (struct join *join = joins->all, *next; join; join = next) {
        next = join->next;
        if (join->peer == peer && join->waits)
            release(join);
        else if (join->peer == peer)
            join->peer = NULL;
    }
}
