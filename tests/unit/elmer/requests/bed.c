#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/ticket/keys.h"
#include "lib/ticket/warrant.h"
#include "tests/unit/elmer/requests/bed.h"

struct bed bed;

/* ---- name services ---- */

enum { ADMINS = 500 };
static struct passwd passwds[] = {{.pw_name = (char *)"root", .pw_uid = ROOT},
                                  {.pw_name = (char *)"daemon", .pw_uid = DAEMON},
                                  {.pw_name = (char *)"alice", .pw_uid = ALICE},
                                  {.pw_name = (char *)"bob", .pw_uid = BOB},
                                  {.pw_name = (char *)"carol", .pw_uid = CAROL}};
enum { PASSWDS = sizeof(passwds) / sizeof(*passwds) };

int __wrap_getpwuid_r(uid_t uid, struct passwd *passwd, char *buffer, size_t size, struct passwd **found);
int __wrap_getpwuid_r(uid_t uid, struct passwd *passwd, char *buffer, size_t size, struct passwd **found)
{
    (void)buffer;
    (void)size;
    *found = NULL;
    for (size_t i = 0; i < PASSWDS; i++)
        if (passwds[i].pw_uid == uid)
            *(*found = passwd) = passwds[i];
    return 0;
}

int __wrap_getpwnam_r(const char *name, struct passwd *passwd, char *buffer, size_t size, struct passwd **found);
int __wrap_getpwnam_r(const char *name, struct passwd *passwd, char *buffer, size_t size, struct passwd **found)
{
    (void)buffer;
    (void)size;
    *found = NULL;
    for (size_t i = 0; i < PASSWDS; i++)
        if (strcmp(passwds[i].pw_name, name) == 0)
            *(*found = passwd) = passwds[i];
    return 0;
}

int __wrap_getgrnam_r(const char *name, struct group *group, char *buffer, size_t size, struct group **found);
int __wrap_getgrnam_r(const char *name, struct group *group, char *buffer, size_t size, struct group **found)
{
    (void)buffer;
    (void)size;
    assert_string_equal(name, "admins");
    *group = (struct group){.gr_gid = ADMINS};
    *found = group;
    return 0;
}

int __wrap_getgrouplist(const char *user, gid_t gid, gid_t *groups, int *count);
int __wrap_getgrouplist(const char *user, gid_t gid, gid_t *groups, int *count)
{
    assert_true(*count > 0);
    groups[0] = strcmp(user, "carol") != 0 ? gid : ADMINS;
    *count = 1;
    return 1;
}

/* ---- its life ---- */

static void create(void)
{
    struct err err = ERR_INIT;
    links_begin(WIRE_FROM_ELMER);
    if (requests_create(&fake_engine.room, &bed.settings, FAKE_HOSTS_ROOM, FAKE_MEMBERSHIP_ROOM, FAKE_LAUNCH_ROOM,
                        &bed.requests, &err))
        fail_msg("%s", err.text);
}

static void make_keys(void);

int bed_setup(void **state)
{
    (void)state;
    log_open("test", LOG_LEVEL_ERROR);
    fake_engine_begin();
    fake_store_begin();
    fake_hosts_begin();
    make_keys();
    fake_work_begin();
    fake_membership = (struct fake_membership){0};
    fake_engine_add_host("queue");
    fake_engine_add_host("ws1");
    fake_engine_add_host("ws2");
    for (int i = QUEUE; i <= WS2; i++) {
        fake_hosts.hosts[i].linked = true;
        fake_engine.hosts[i].state = CORE_HOST_UP;
        fake_engine.hosts[i].known = true;
        fake_engine.hosts[i].ncpus = 2;
    }
    memset(bed.hosts, 0, sizeof(bed.hosts));
    bed.settings = (struct requests_settings){.queue_host = "queue",
                                              .socket = "/socket",
                                              .admin_group = "admins",
                                              .hosts = bed.hosts,
                                              .user_queued = 3,
                                              .user_memory = 1,
                                              .user_connections = 4,
                                              .user_request_bytes = 200000,
                                              .user_requests = 10,
                                              .user_requests_burst = 400,
                                              .max_nprocs = 64,
                                              .minimum_uid = 1000,
                                              .levels = 3};
    create();
    return 0;
}

static void destroy(void)
{
    requests_close(bed.requests);
    fake_work_run(); /* a worker thread that was asking ends */
    links_turn();
    requests_destroy(bed.requests);
    bed.requests = NULL;
    links_end();
}

void bed_again(int hosts)
{
    destroy();
    while (fake_engine.nhosts < hosts)
        fake_engine_add_host("another");
    create();
}

int bed_teardown(void **state)
{
    (void)state;
    destroy();
    heard_forget();
    fake_store_end();
    fake_engine_end();
    return 0;
}

/* ---- clients ---- */

int bed_client(uint32_t uid)
{
    links_introduce(NULL, NULL, WIRE_MINOR);
    return links_accept(0, uid);
}

void bed_say(int link, enum wire_type type, uint64_t job)
{
    struct wire_message message = {.type = type, .id = 3};
    switch ((int)type) {
    case WIRE_cancel:
        message.u.cancel.job = job;
        break;
    case WIRE_kill:
        message.u.kill.job = job;
        break;
    case WIRE_hold:
        message.u.hold.job = job;
        break;
    case WIRE_release:
        message.u.release.job = job;
        break;
    case WIRE_top:
        message.u.top.job = job;
        break;
    case WIRE_signal_job:
        message.u.signal_job.job = job;
        message.u.signal_job.number = 10;
        break;
    case WIRE_read_output:
        message.u.read_output.job = job;
        break;
    case WIRE_explain:
        message.u.explain.job = job;
        break;
    case WIRE_wait:
        message.u.wait.job = job;
        message.u.wait.timeout_ms = 5000;
        break;
    default:
        fail_msg("not about a job");
    }
    say(link, &message);
}

void bed_answer(const struct event *event, enum answer answer, uint64_t job)
{
    assert_int_not_equal(event->request, 0);
    fake_engine.requests.answered(event->request, answer, job, fake_engine.requests_data);
}

void bed_relay(int host, uint64_t client, uint32_t uid, const char *user, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    char *frame;
    size_t size;
    assert_int_equal(wire_encode(message, WIRE_MINOR, &frame, &size, &err), 0);
    struct wire_message relay = {.type = WIRE_relay,
                                 .u.relay = {.client = client, .uid = uid, .user = user, .frame = frame}};
    requests_relay(bed.requests, host, host == QUEUE, &relay);
    free(frame);
}

/* ---- what is signed ---- */

struct bed_signing bed_signing;
static uint8_t ca_secret[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES], key[TICKET_KEY_BYTES];

static void make_keys(void)
{
    bed_signing = (struct bed_signing){.host = NULL};
    assert_true(ticket_key_create(ca_secret, fake_hosts.authority));
    assert_true(ticket_key_create(secret, key));
    fake_hosts.has_authority = true;
}

static void sign(const char *host, uint32_t uid, const char *user, const char *challenge)
{
    struct warrant w = {.uid = uid};
    uint8_t bytes[TICKET_BYTES_MAX];
    snprintf(w.host, sizeof(w.host), "%s", bed_signing.host ? bed_signing.host : host);
    snprintf(w.user, sizeof(w.user), "%s", user);
    assert_true(hex_read(challenge, w.challenge, sizeof(w.challenge)));
    assert_true(ticket_digest_text(bed_signing.request, w.request));
    assert_true(ticket_sign_bytes(ca_secret, bytes, ticket_certified_bytes(w.host, key, bytes), w.certificate));
    if (bed_signing.spoil)
        bed_signing.spoil(&w);
    assert_true(warrant_sign(&w, key, secret));
    if (bed_signing.forge)
        bed_signing.forge(&w);
    warrant_encode(&w, bed_signing.warrant);
}

void bed_relay_signed(int host, uint64_t client, uint32_t uid, const char *user, const struct wire_message *message)
{
    struct wire_message ask = {.type = WIRE_challenge_ask, .id = 2}, given, decide = {.type = WIRE_decide, .id = 3};
    struct err err = ERR_INIT;
    const char *frame;
    char *json;
    size_t size;
    bed_relay(host, client, uid, user, &ask);
    fake_work_run();
    frame = bed_relayed(host, client);
    assert_int_equal(wire_decode(frame, strlen(frame), WIRE_MINOR, &given, &err), 0);
    assert_int_equal(given.type, WIRE_challenge);
    assert_int_equal(wire_encode(message, WIRE_MINOR, &json, &size, &err), 0);
    snprintf(bed_signing.request, sizeof(bed_signing.request), "%s", json);
    free(json);
    sign(fake_engine.hosts[host].name, uid, user, given.u.challenge.challenge);
    wire_message_fini(&given);
    decide.u.decide.request = bed_signing.request;
    decide.u.decide.minor = WIRE_MINOR;
    decide.u.decide.warrant = bed_signing.warrant;
    if (bed_signing.keep_ms)
        fake_time_pass(bed_signing.keep_ms);
    bed_relay(host, client, uid, user, &decide);
    fake_work_run(); /* who he is is asked again after a minute */
}

const char *bed_relayed(int host, uint64_t client)
{
    const struct wire_message *message = heard(TO_HOST(host), WIRE_relayed);
    assert_int_equal(message->u.relayed.client, client);
    return message->u.relayed.frame;
}

struct wire_message bed_submission(const char *token)
{
    static const char *command[] = {"/bin/true"};
    return (struct wire_message){
        .type = WIRE_submit,
        .id = 3,
        .u.submit = {.token = token, .nprocs = 1, .name = "x", .dir = "/d", .command = {command, 1}}};
}
