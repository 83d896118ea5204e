/* fuzz_elmer.c - the queue daemon, whole, with its real core: requests of clients on its own socket and relayed by
 * hosts, messages of hosts, links that come and go, a store that commits later or fails, users that are unknown, time.
 * Nothing is outside: links.c stands in for the network, fuzz_store.c for the store, this file for libuv, the name
 * services and libsystemd. The core's own check looks at every state. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/core/core.h"
#include "elmer/daemon.h"
#include "elmer/engine/engine.h"
#include "elmer/notify.h"
#include "elmer/membership/renewal_schedule.h"
#include "elmer/membership/signer.h"
#include "elmer/requests/users.h"
#include "lib/base/clock.h"
#include "tests/fuzz/fuzz_store.h"
#include "tests/fuzz/links.h"

enum { MAX_EVENTS = 200, QUESTIONS = 32, HOSTS = 3 };

static struct {
    struct input input;
    int64_t now_ms;
    uv_timer_cb timer;
    uv_timer_t *timer_handle;
    int64_t timer_ms; /* -1: not armed */
    uv_signal_cb terminate;
    uv_signal_t *terminate_handle;
    bool stopped;
} world;

/* ---- time and libuv ---- */

struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    return (struct mono){.ns = world.now_ms * 1000000};
}

struct wall __wrap_wall_now(void);
struct wall __wrap_wall_now(void)
{
    return (struct wall){.ms = 1700000000000 + world.now_ms};
}

int uv_loop_init(uv_loop_t *loop)
{
    memset(loop, 0, sizeof(*loop));
    return 0;
}

int uv_loop_close(uv_loop_t *loop)
{
    (void)loop;
    return 0;
}

uint64_t uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return (uint64_t)mono_ms(mono_now());
}

void uv_update_time(uv_loop_t *loop)
{
    (void)loop;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    memset(timer, 0, sizeof(*timer));
    timer->loop = loop;
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t timeout, uint64_t repeat)
{
    FUZZ_CHECK(repeat == 0 && (!world.timer_handle || world.timer_handle == timer), "a second timer");
    world.timer_handle = timer;
    world.timer = callback;
    world.timer_ms = world.now_ms + (int64_t)timeout;
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    (void)timer;
    world.timer_ms = -1;
    return 0;
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *handle)
{
    void *data = handle->data;

    memset(handle, 0, sizeof(*handle));
    handle->loop = loop;
    handle->data = data;
    return 0;
}

int uv_signal_start(uv_signal_t *handle, uv_signal_cb callback, int number)
{
    if (number == SIGTERM) {
        world.terminate = callback;
        world.terminate_handle = handle;
    }
    return 0;
}

void uv_close(uv_handle_t *handle, uv_close_cb callback)
{
    if (handle == (uv_handle_t *)world.timer_handle)
        world.timer_ms = -1;
    if (callback)
        callback(handle);
}

/* ---- in place of signer.c and renewals.c ---- */

struct signer_ask {
    signer_answer answer;
    void *data;
};

static struct signer_ask asks[4];

struct signer_ask *signer_ask(const struct room *room, const char *socket, const struct wire_message *request,
                              signer_answer answer, void *data)
{
    (void)room;
    (void)socket;
    FUZZ_CHECK(wire_may_send(request->type, WIRE_FROM_ELMER), "%s", wire_type_name(request->type));
    for (size_t i = 0; i < 4; i++) {
        if (asks[i].answer)
            continue;
        asks[i] = (struct signer_ask){answer, data};
        return &asks[i];
    }
    return NULL;
}

void signer_abandon(struct signer_ask *ask)
{
    if (ask)
        ask->answer = NULL;
}

static void answer_signer(size_t which)
{
    struct signer_ask ask = asks[which % 4];

    if (!ask.answer)
        return;
    asks[which % 4].answer = NULL;
    ask.answer(NULL, "", "the token is used up", ask.data);
}

struct renewals *renewals_create(const struct room *room, const struct membership_settings *settings,
                                 const struct certificates *certificates)
{
    (void)room, (void)settings, (void)certificates;
    return NULL;
}

void renewals_make_room(struct renewals *renewals)
{
    (void)renewals;
}

void renewals_begin(struct renewals *renewals, struct hosts *hosts)
{
    (void)renewals, (void)hosts;
}

void renewals_close(struct renewals *r)
{
    (void)r;
}

void renewals_recover(struct renewals *renewals)
{
    (void)renewals;
}

void renewals_destroy(struct renewals *renewals)
{
    (void)renewals;
}

/* ---- in place of users.c and notify.c ---- */

struct question {
    struct request_user user;
    users_answer answer;
    void *data;
};

static struct users {
    struct question questions[QUESTIONS];
    size_t count;
} the_users;

struct users *users_create(uv_loop_t *loop, const char *admin_group)
{
    (void)loop;
    (void)admin_group;
    the_users.count = 0;
    return &the_users;
}

void users_destroy(struct users *users)
{
    if (users)
        users->count = 0;
}

static struct request_user user_of(uint32_t uid)
{
    struct request_user user = {.uid = uid, .admin = uid == 2002};

    (void)snprintf(user.name, sizeof(user.name), "%s",
                   uid == 2001   ? "alice"
                   : uid == 2002 ? "bob"
                   : uid == 0    ? "root"
                                 : "");
    return user;
}

bool users_ask(struct users *users, uint32_t uid, int host, const char *vouched, users_answer answer, void *data)
{
    struct request_user user = user_of(uid);

    FUZZ_CHECK(host >= -1 && strlen(vouched) < 256, "name %s", vouched);
    if (users->count < QUESTIONS)
        users->questions[users->count++] = (struct question){user, answer, data};
    else
        answer(&user, data);
    return true;
}

bool users_known_admin(const struct users *users, uint32_t uid)
{
    return users && user_of(uid).admin;
}

const char *users_conflict(const struct request_user *user, const char *name, const char *host, char *text, size_t size)
{
    if (*name == '\0' || strcmp(user->name, name) == 0)
        return NULL;
    (void)snprintf(text, size, "uid %u is not %s of %s", (unsigned)user->uid, name, host);
    return text;
}

static void answer_user(void)
{
    struct question question;

    if (the_users.count == 0)
        return;
    question = the_users.questions[0];
    memmove(the_users.questions, the_users.questions + 1, --the_users.count * sizeof(question));
    question.answer(&question.user, question.data);
}

struct notify {
    int unused;
};

struct notify *notify_create(struct deadlines *deadlines, void (*status)(char *text, size_t size, void *data),
                             void *data)
{
    static struct notify notify;
    char text[256];
    (void)deadlines;
    status(text, sizeof(text), data);
    return &notify;
}

void notify_ready(struct notify *notify)
{
    (void)notify;
}

void notify_reloading(struct notify *notify)
{
    (void)notify;
}

void notify_reloaded(struct notify *notify)
{
    (void)notify;
}

void notify_stopping(struct notify *notify)
{
    (void)notify;
}

void notify_destroy(struct notify *notify)
{
    (void)notify;
}

bool notify_wait(const char *why)
{
    (void)why;
    return true;
}

/* ---- what happens ---- */

void links_heard(size_t link, const struct wire_message *message)
{
    struct wire_message inner;
    struct err err = ERR_INIT;

    (void)link;
    if (message->type != WIRE_relayed)
        return;
    FUZZ_CHECK(wire_decode(message->u.relayed.frame, strlen(message->u.relayed.frame), WIRE_MINOR, &inner, &err) == 0,
               "relays %s: %s", message->u.relayed.frame, err.text);
    wire_message_fini(&inner);
}

static void connect_one(struct input *input)
{
    static const uid_t uids[] = {2001, 2002, 0, 3000};

    (void)links_accept(input_below(input, 3), uids[input_below(input, 4)]);
}

static void a_client_says(struct input *input)
{
    size_t link = input_below(input, LINKS);
    struct wire_message message;

    input_message(input, input_type(input, WIRE_FROM_CLIENT), &message);
    links_say(link, &message);
}

/* A hello that is accepted, or nearly. */
static void hello_of(struct input *input, struct wire_message *message)
{
    static const char *const names[HOSTS] = {"ws1", "ws2", "ws3"};
    static uint64_t cpus[] = {0, 1, 2, 3};

    message->u.host_hello.host = names[input_below(input, HOSTS)];
    message->u.host_hello.cpus = (struct wire_uints){cpus, 1 + input_below(input, 4)};
    message->u.host_hello.boot = input_byte(input) < 200 ? "boot-1" : "boot-2";
}

/* A local user's request within a relay. */
static void relay_of(struct input *input, struct wire_message *message, char **json)
{
    struct wire_message inner;
    size_t size;

    input_message(input, input_type(input, WIRE_FROM_CLIENT), &inner);
    if (wire_encode(&inner, WIRE_MINOR, json, &size, NULL) == 0 && size <= 786432)
        message->u.relay.frame = *json;
    wire_message_fini(&inner);
    message->u.relay.client = input_below(input, 4);
    message->u.relay.user = input_byte(input) < 200 ? "alice" : "bob";
}

static void a_host_says(struct input *input)
{
    size_t link = input_below(input, LINKS);
    uint8_t what = input_byte(input);
    enum wire_type type = what < 0x30   ? WIRE_host_hello
                          : what < 0x80 ? WIRE_relay
                          : what < 0x90 ? WIRE_opened
                          : what < 0x98 ? WIRE_report
                                        : input_type(input, WIRE_FROM_HOST);
    struct wire_message message;
    char *json = NULL;

    input_message(input, type, &message);
    if (type == WIRE_host_hello)
        hello_of(input, &message);
    else if (type == WIRE_relay)
        relay_of(input, &message, &json);
    links_say(link, &message);
    free(json);
}

static void time_passes(int64_t ms)
{
    world.now_ms += ms;
    if (world.timer_ms >= 0 && world.now_ms >= world.timer_ms) {
        world.timer_ms = -1;
        world.timer(world.timer_handle);
    }
}

static void somebody_reads(struct input *input)
{
    size_t link = input_below(input, LINKS), unsent = (size_t)input_byte(input) << 16;

    if (unsent == 0)
        links_room(link);
    else
        links_set_unsent(link, unsent);
}

static void happen(struct input *input)
{
    uint8_t what = input_byte(input);

    if (what < 0x40)
        a_client_says(input);
    else if (what < 0x98)
        a_host_says(input);
    else if (what < 0xA8)
        connect_one(input);
    else if (what < 0xC0)
        fuzz_store_commit();
    else if (what < 0xC8)
        answer_user();
    else if (what < 0xD0)
        fuzz_store_answer(input_byte(input) >= 0xE0);
    else if (what < 0xE0)
        time_passes(world.timer_ms > world.now_ms ? world.timer_ms - world.now_ms : 0);
    else if (what < 0xE8)
        time_passes(100 * (int64_t)input_byte(input));
    else if (what < 0xF4)
        links_cut(input_below(input, LINKS));
    else if (what < 0xF8)
        somebody_reads(input);
    else if (what < 0xFC)
        fuzz_store_fail(input_byte(input) & 1 ? "the disk is full" : NULL);
    else if (what == 0xFC)
        answer_signer(input_byte(input));
    else
        links_turn();
}

static void check_core(void)
{
    char text[512] = "";

    FUZZ_CHECK(core_check(engine_core(fuzz_store_owner()), text, sizeof(text)) == 0, "%s", text);
}

int uv_run(uv_loop_t *loop, uv_run_mode mode)
{
    (void)loop;
    (void)mode;
    if (!world.terminate)
        return 0; /* it could not start */
    for (int i = 0; world.input.left > 0 && i < MAX_EVENTS; i++) {
        happen(&world.input);
        check_core();
    }
    links_turn();
    world.terminate(world.terminate_handle, SIGTERM);
    links_end();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char ws1[] = "ws1", ws2[] = "ws2", ws3[] = "ws3";
    static const struct host_settings hosts[HOSTS] = {{.name = ws1}, {.name = ws2}, {.name = ws3}};
    static char none[] = "/fuzz/x", group[] = "elmer-admin", root[] = "root", address[] = "*:7110";
    struct settings settings = {.hosts = mem_copy(hosts, HOSTS, sizeof(*hosts)), /* some may join */
                                .nhosts = HOSTS,
                                .listen = address,
                                .name = ws1,
                                .store = none,
                                .socket = none,
                                .host_socket = none,
                                .host_user = root,
                                .admin_group = group,
                                .jobs_dir = none,
                                .report_ms = 2000,
                                .heartbeat_ms = 5000,
                                .host_timeout_ms = 30000,
                                .kill_grace_ms = 1000,
                                .fresh_intervals = 3,
                                .max_nprocs = 64,
                                .minimum_uid = 1000};
    struct err err = ERR_INIT;

    memset(asks, 0, sizeof(asks)), memset(&world, 0, sizeof(world));
    world.input = (struct input){data, size}, world.now_ms = 1000000, world.timer_ms = -1;
    core_options_default(&settings.core);
    settings.host_messages = settings.host_messages_burst = 200000, settings.core.seed = 7;
    settings.core.allocator = input_byte(&world.input) & 1 ? ALLOCATOR_V1 : ALLOCATOR_V2;
    links_begin(WIRE_FROM_ELMER);
    FUZZ_CHECK(daemon_run(&settings, &err) == 0, "%s", err.text);
    settings_forget_hosts(&settings, HOSTS), free(settings.hosts);
    return 0;
}
