#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/pki/x509.h"
#include "tests/unit/elmer/membership/bed.h"

struct bed bed;

enum { MADE_MAX = 64 };
static char *made[MADE_MAX];
static size_t nmade;

int bed_setup(void **state)
{
    (void)state;
    log_open("test", LOG_LEVEL_ERROR);
    fake_engine_begin();
    fake_store_begin();
    fake_hosts_begin();
    fake_work_begin();
    links_begin(WIRE_FROM_ELMER);
    fake_engine_add_host("queue");
    fake_engine_add_host("ws1");
    fake_engine_add_host("ws2");
    bed = (struct bed){.settings = {.queue_host = "queue", .signer = "/signer"}};
    for (int i = 0; i < PEERS; i++)
        bed.peers[i].number = i;
    return 0;
}

void bed_create(void)
{
    struct err err = ERR_INIT;
    if (membership_create(&fake_engine.room, &bed.settings, &bed.membership, &err))
        fail_msg("%s", err.text);
    membership_begin(bed.membership, FAKE_HOSTS_ROOM);
}

int bed_teardown(void **state)
{
    (void)state;
    membership_close(bed.membership);
    links_turn();
    membership_destroy(bed.membership);
    links_end();
    heard_forget();
    fake_store_end();
    fake_engine_end();
    while (nmade)
        free(made[--nmade]);
    return 0;
}

/* ---- certificates ---- */

static const char *keep(char *text)
{
    assert_true(nmade < MADE_MAX);
    return made[nmade++] = text;
}

const char *bed_certificate(const char *name)
{
    struct err err = ERR_INIT;
    char *ca_key = NULL, *ca = NULL, *key = NULL, *request = NULL, *certificate = NULL;
    int64_t now_s = FAKE_WALL_MS / 1000;
    struct pki_terms terms = {.names = &name, .count = 1, .begin_s = now_s, .end_s = now_s + LIFE_S};
    if (pki_ca_create("cluster", now_s, now_s + LIFE_S, &ca_key, &ca, &err) || pki_key_create(&key, &err) ||
        pki_request_create(key, name, &request, &err) || pki_issue(ca_key, ca, request, &terms, &certificate, &err))
        fail_msg("%s", err.text);
    pki_key_free(ca_key);
    pki_key_free(key);
    free(ca);
    free(request);
    return keep(certificate);
}

const char *bed_serial(const char *certificate)
{
    struct pki_certificate facts;
    struct err err = ERR_INIT;
    char *serial = malloc(PKI_SERIAL_SIZE);
    if (!serial || pki_inspect(certificate, &facts, &err))
        fail_msg("%s", err.text);
    snprintf(serial, PKI_SERIAL_SIZE, "%s", facts.serial);
    return keep(serial);
}

void bed_stored(const char *serial, const char *host, int64_t issued_s_ago)
{
    struct certificate *c = &fake_store.certificates[fake_store.ncertificates++];
    *c = (struct certificate){.issued_ms = FAKE_WALL_MS - issued_s_ago * 1000};
    c->end_ms = c->issued_ms + (int64_t)LIFE_S * 1000;
    snprintf(c->serial, sizeof(c->serial), "%s", serial);
    snprintf(c->host, sizeof(c->host), "%s", host);
}

int bed_judge(const char *host, const char *serial, const char *words)
{
    struct err err = ERR_INIT;
    int result = membership_judge(bed.membership, host, serial, &err);
    if (result && !strstr(err.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", err.text, words);
    return result;
}

/* ---- joining ---- */

void bed_join(int peer, const char *host)
{
    struct wire_message join = {.type = WIRE_join,
                                .id = 5,
                                .u.join = {.host = host,
                                           .token = "0123456789abcdef",
                                           .proof = "aa",
                                           .request = "REQUEST",
                                           .clock_ms = FAKE_WALL_MS,
                                           .ticket_key = bed.ticket_key}};
    struct wire_message taken;
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    assert_int_equal(wire_encode(&join, WIRE_MINOR, &json, &size, &err), 0);
    assert_int_equal(wire_decode(json, size, WIRE_MINOR, &taken, &err), 0);
    free(json);
    membership_ask(bed.membership, &bed.peers[peer], -1, &taken);
    assert_null(taken.memory); /* moved away */
}

void bed_renew(int peer, int host, const char *old)
{
    struct wire_message message = {
        .type = WIRE_renew, .id = 6, .u.renew = {.certificate = old, .proof = "bb", .request = "R"}};
    struct wire_message taken;
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    assert_int_equal(wire_encode(&message, WIRE_MINOR, &json, &size, &err), 0);
    assert_int_equal(wire_decode(json, size, WIRE_MINOR, &taken, &err), 0);
    free(json);
    membership_ask(bed.membership, &bed.peers[peer], host, &taken);
}

int bed_signer(void)
{
    int link = links_find(WIRE_FROM_SIGNER);
    if (link >= 0)
        links_answer((size_t)link);
    return link;
}

void bed_issue_host(int link, const char *certificate, const char *ticket)
{
    struct wire_message issued = {
        .type = WIRE_issued_host, .id = 1, .u.issued_host = {.certificate = certificate, .ticket_certificate = ticket}};
    say(link, &issued);
    links_turn();
}

void bed_issue(int link, const char *certificate)
{
    struct wire_message issued = {.type = WIRE_issued, .id = 1, .u.issued = {.certificate = certificate}};
    say(link, &issued);
    links_turn();
}
