#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/net/tls.h"
#include "tests/unit/elmer/fakes/fake_address.h"
#include "tests/unit/elmer/fakes/fake_work.h"
#include "tests/unit/elmer/hosts/bed.h"

struct bed bed;

/* A turn of the loop is over when time has passed. */
uint64_t __wrap_uv_now(const uv_loop_t *loop);
uint64_t __wrap_uv_now(const uv_loop_t *loop)
{
    assert_ptr_equal(loop, fake_engine.room.loop);
    return (uint64_t)fake_now_ms();
}

static void note(const char *what, int host, const char *word)
{
    size_t used = strlen(bed.log);
    snprintf(bed.log + used, sizeof(bed.log) - used, "%s%s%s%s", used ? "; " : "", what,
             host >= 0 ? fake_engine.hosts[host].name : "", word);
}

static void on_up(int host, void *data)
{
    assert_ptr_equal(data, &bed);
    note("up ", host, "");
}

static void on_cut(int host, void *data)
{
    assert_ptr_equal(data, &bed);
    note("cut ", host, "");
}

static void on_room(int host, void *data)
{
    assert_ptr_equal(data, &bed);
    note("room ", host, "");
}

static void on_process(int host, struct wire_message *message, void *data)
{
    char word[40];
    assert_ptr_equal(data, &bed);
    snprintf(word, sizeof(word), " %s", wire_type_name(message->type));
    note("", host, word);
}

static void on_relay(int host, bool on_queue_host, struct wire_message *message, void *data)
{
    assert_ptr_equal(data, &bed);
    assert_true(message->type == WIRE_relay || message->type == WIRE_relay_closed || message->type == WIRE_relay_room);
    note("relay ", host, on_queue_host ? " here" : "");
}

static int judge(const struct tls_peer *peer, struct err *err, void *data)
{
    (void)err;
    assert_ptr_equal(data, &bed);
    note("judge ", -1, peer->name);
    return 0;
}

static void on_shown(const char *serial, void *data)
{
    assert_ptr_equal(data, &bed);
    note("shown ", -1, serial);
}

static void on_certificate(struct peer *peer, int host, struct wire_message *message, void *data)
{
    assert_ptr_equal(data, &bed);
    assert_true(message->type == (host < 0 ? WIRE_join : WIRE_renew));
    note(host < 0 ? "join" : "renew ", host, "");
    bed.peer = peer;
}

static void on_peer_gone(struct peer *peer, void *data)
{
    assert_ptr_equal(data, &bed);
    if (peer == bed.peer)
        note("gone", -1, "");
}

int bed_setup(void **state)
{
    static const struct hosts_callbacks callbacks = {.on_up = on_up,
                                                     .on_cut = on_cut,
                                                     .on_room = on_room,
                                                     .on_process = on_process,
                                                     .on_relay = on_relay,
                                                     .judge = judge,
                                                     .on_shown = on_shown,
                                                     .on_certificate = on_certificate,
                                                     .on_peer_gone = on_peer_gone};
    static char names[3][8] = {"queue", "ws1", "ws2"};
    struct err err = ERR_INIT;
    (void)state;
    log_open("test", LOG_LEVEL_ERROR);
    fake_engine_begin();
    fake_work_begin();
    fake_address_begin();
    links_begin(WIRE_FROM_ELMER);
    bed = (struct bed){.settings = {.hosts = bed.configured,
                                    .nhosts = 3,
                                    .queue_host = "queue",
                                    .listen = "0.0.0.0:6500",
                                    .pki = "/pki",
                                    .host_socket = "/socket",
                                    .host_user = "daemon", /* HOST_UID on every Debian */
                                    .report_ms = 2000,
                                    .heartbeat_ms = BEAT_MS,
                                    .host_timeout_ms = TIMEOUT_MS,
                                    .host_messages = 100,
                                    .host_messages_burst = 2000,
                                    .kill_grace_ms = 700}};
    for (int i = 0; i < 3; i++) {
        bed.configured[i].name = names[i];
        fake_engine_add_host(names[i]);
    }
    assert_int_equal(hosts_create(&fake_engine.room, &bed.settings, &callbacks, &bed, &bed.hosts, &err), 0);
    return 0;
}

int bed_teardown(void **state)
{
    (void)state;
    hosts_close(bed.hosts);
    links_turn();
    hosts_destroy(bed.hosts);
    links_end();
    heard_forget();
    fake_engine_end();
    return 0;
}

void bed_expect(const char *log)
{
    char told[sizeof(bed.log)];
    snprintf(told, sizeof(told), "%s", bed.log);
    *bed.log = 0;
    assert_string_equal(told, log);
}

int bed_link(const struct greeting *g)
{
    const char *name = g->certificate ? g->certificate : g->host;
    const char *serial = g->serial ? g->serial : "AB";
    links_introduce(g->joiner ? NULL : name, serial, g->minor ? g->minor : WIRE_MINOR);
    return links_accept(g->local ? LISTENER_UNIX : LISTENER_TCP, g->uid);
}

void bed_hello(int link, const struct greeting *g)
{
    uint64_t cpus[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const char *lacks[] = {"no memory limit"};
    struct wire_message message = {.type = WIRE_host_hello, .id = 9};
    struct wire_host_hello *hello = &message.u.host_hello;
    *hello = (struct wire_host_hello){.host = g->host,
                                      .boot = g->boot ? g->boot : "b1",
                                      .cpus = {cpus, g->ncpus ? g->ncpus : 2},
                                      .generation = g->generation,
                                      .mode = "rt",
                                      .address = "10.0.0.9",
                                      .pvm = true,
                                      .lacks = {lacks, 1}};
    hello->holdings.items = (struct wire_holding *)g->holdings;
    hello->holdings.count = g->nholdings;
    say(link, &message);
}

int bed_up(const struct greeting *greeting)
{
    int link = bed_link(greeting);
    assert_true(link >= 0);
    bed_hello(link, greeting);
    assert_int_equal(heard(link, WIRE_host_welcome)->id, 9);
    fake_event(EVENT_HOST_UP);
    *bed.log = 0;
    return link;
}

int bed_ws1_up(void)
{
    return bed_up(&(struct greeting){.host = "ws1"});
}

void bed_pong(int link)
{
    struct wire_message pong = {.type = WIRE_pong, .id = heard(link, WIRE_ping)->id};
    say(link, &pong);
}

const char *bed_state_of(int host)
{
    struct wire_host_view view;
    hosts_view(bed.hosts, host, &view);
    return view.state;
}

struct fake_job *job_on_both(void)
{
    static struct core_processor processors[] = {{WS1, 0}, {WS1, 1}, {WS2, 0}};
    struct fake_job *job = fake_engine_add_job(7, 5, JOB_STARTING);
    job->state.attempt = 2;
    job->state.nprocs = 3;
    job->state.processors = processors;
    return job;
}
