/* fuzz_net.c - the network half of rsd, whole: what elmer sends it, what its own root half says, requests of local
 * users, links that come and go, names that are looked up late or not at all, time. links.c stands in for the network,
 * this file for libuv and the name services. Neither users nor elmer may end it, or be passed on where they may not
 * speak. */
#include "config.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/base/clock.h"
#include "rsd/net/net.h"
#include "tests/fuzz/links.h"

enum { MAX_EVENTS = 200, TIMERS = 8, WORKS = 16 };

struct timer {
    uv_timer_t *handle;
    uv_timer_cb callback;
    int64_t at_ms; /* -1: not armed */
    uint64_t repeat;
};

static struct {
    struct input input;
    int64_t now_ms;
    struct timer timers[TIMERS];
    uv_work_t *works[WORKS];
    uv_getaddrinfo_t *lookup;
    uv_signal_cb terminate;
    uv_signal_t *terminate_handle;
    bool stopped;
} world;

struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    return (struct mono){.ns = world.now_ms * 1000000};
}

int __wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **found);
int __wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **found)
{
    (void)snprintf(buffer, size, "%s", uid == 2001 ? "alice" : "bob");
    entry->pw_name = buffer;
    *found = uid == 3000 ? NULL : entry;
    return 0;
}

int __wrap_setrlimit(int what, const struct rlimit *limit);
int __wrap_setrlimit(int what, const struct rlimit *limit)
{
    (void)what;
    (void)limit;
    return 0;
}

/* ---- libuv ---- */

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

void uv_stop(uv_loop_t *loop)
{
    (void)loop;
    world.stopped = true;
}

void uv_update_time(uv_loop_t *loop)
{
    (void)loop;
}

uv_pid_t uv_os_getpid(void)
{
    return 1;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    memset(timer, 0, sizeof(*timer));
    timer->loop = loop;
    for (size_t i = 0; i < TIMERS; i++) {
        if (world.timers[i].handle)
            continue;
        world.timers[i] = (struct timer){.handle = timer, .at_ms = -1};
        return 0;
    }
    FUZZ_CHECK(false, "too many timers");
}

static struct timer *timer_of(const void *handle)
{
    for (size_t i = 0; i < TIMERS; i++)
        if ((void *)world.timers[i].handle == handle)
            return &world.timers[i];
    return NULL;
}

int uv_timer_start(uv_timer_t *handle, uv_timer_cb callback, uint64_t timeout, uint64_t repeat)
{
    struct timer *timer = timer_of(handle);

    if (!timer)
        abort();
    timer->callback = callback;
    timer->at_ms = world.now_ms + (int64_t)timeout;
    timer->repeat = repeat;
    return 0;
}

int uv_timer_stop(uv_timer_t *handle)
{
    struct timer *timer = timer_of(handle);

    if (timer)
        timer->at_ms = -1;
    return 0;
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *handle)
{
    memset(handle, 0, sizeof(*handle));
    handle->loop = loop;
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

int uv_is_closing(const uv_handle_t *handle)
{
    return handle->flags != 0;
}

void uv_unref(uv_handle_t *handle)
{
    (void)handle;
}

void uv_close(uv_handle_t *handle, uv_close_cb callback)
{
    struct timer *timer = timer_of(handle);

    FUZZ_CHECK(handle->flags == 0, "closed twice");
    handle->flags = 1;
    if (timer)
        timer->handle = NULL;
    if (callback)
        callback(handle);
}

/* A worker does its work at once and is heard of later. */
int uv_queue_work(uv_loop_t *loop, uv_work_t *work, uv_work_cb run, uv_after_work_cb after)
{
    (void)loop;
    for (size_t i = 0; i < WORKS; i++) {
        if (world.works[i])
            continue;
        world.works[i] = work;
        work->after_work_cb = after;
        run(work);
        return 0;
    }
    return UV_ENOMEM;
}

int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb callback, const char *node,
                   const char *service, const struct addrinfo *hints)
{
    (void)loop;
    (void)service;
    (void)hints;
    FUZZ_CHECK(strcmp(node, "ws1") == 0 && !world.lookup, "looks up %s", node);
    world.lookup = request;
    request->cb = callback;
    return 0;
}

void uv_freeaddrinfo(struct addrinfo *info)
{
    (void)info;
}

int uv_cancel(uv_req_t *request)
{
    (void)request;
    return UV_EBUSY;
}

/* ---- what happens ---- */

void links_heard(size_t link, const struct wire_message *message)
{
    struct wire_message inner;
    struct err err = ERR_INIT;

    (void)link;
    if (message->type != WIRE_relay)
        return;
    FUZZ_CHECK(message->u.relay.user[0] != '\0', "a user without a name");
    FUZZ_CHECK(wire_decode(message->u.relay.frame, strlen(message->u.relay.frame), WIRE_MINOR, &inner, &err) == 0,
               "relays %s: %s", message->u.relay.frame, err.text);
    FUZZ_CHECK(wire_may_send(inner.type, WIRE_FROM_CLIENT), "relays %s of a user", wire_type_name(inner.type));
    wire_message_fini(&inner);
}

/* Whether a name service answers, and what: nothing, or that there is none. */
static void answer_lookup(int status)
{
    uv_getaddrinfo_t *request = world.lookup;

    world.lookup = NULL;
    if (request)
        request->cb(request, status, NULL);
}

static void answer_work(size_t which)
{
    uv_work_t *work = world.works[which % WORKS];

    world.works[which % WORKS] = NULL;
    if (work)
        work->after_work_cb(work, 0);
}

/* The end of a relayed answer, as elmer makes it. */
static void relayed_of(struct input *input, struct wire_message *message, char **json)
{
    struct wire_message inner;
    size_t size;

    input_message(input, input_type(input, WIRE_FROM_ELMER), &inner);
    if (wire_encode(&inner, WIRE_MINOR, json, &size, NULL) == 0 && size <= 786432)
        message->u.relayed.frame = *json;
    wire_message_fini(&inner);
    message->u.relayed.client = input_below(input, 4);
}

static void elmer_says(struct input *input)
{
    static const enum wire_type usual[] = {WIRE_host_welcome, WIRE_relayed, WIRE_order,
                                           WIRE_open,         WIRE_ping,    WIRE_pong};
    uint8_t what = input_byte(input);
    int link = links_find(WIRE_FROM_ELMER);
    enum wire_type type = what < 0xC0 ? usual[what % 6] : input_type(input, WIRE_FROM_ELMER);
    struct wire_message message;
    char *json = NULL;

    input_message(input, type, &message);
    if (type == WIRE_relayed)
        relayed_of(input, &message, &json);
    if (link >= 0)
        links_say((size_t)link, &message);
    else
        wire_message_fini(&message);
    free(json);
}

static void root_says(struct input *input)
{
    uint8_t what = input_byte(input);
    int link = links_find(WIRE_FROM_ROOT);
    struct wire_message message;

    input_message(input, what < 0x80 ? WIRE_root_state : input_type(input, WIRE_FROM_ROOT), &message);
    if (link >= 0)
        links_say((size_t)link, &message);
    else
        wire_message_fini(&message);
}

static void a_user_says(struct input *input)
{
    size_t link = input_below(input, LINKS);
    struct wire_message message;

    input_message(input, input_type(input, WIRE_FROM_CLIENT), &message);
    if ((int)link != links_find(WIRE_FROM_ELMER) && (int)link != links_find(WIRE_FROM_ROOT))
        links_say(link, &message);
    else
        wire_message_fini(&message);
}

static void connect_one(struct input *input)
{
    static const uid_t uids[] = {2001, 2002, 0, 3000};

    (void)links_accept(0, uids[input_below(input, 4)]);
}

static void fire(struct timer *timer)
{
    timer->at_ms = timer->repeat > 0 ? world.now_ms + (int64_t)timer->repeat : -1;
    timer->callback(timer->handle);
}

static void time_passes(int64_t ms)
{
    world.now_ms += ms;
    for (size_t i = 0; i < TIMERS; i++)
        if (world.timers[i].handle && world.timers[i].at_ms >= 0 && world.timers[i].at_ms <= world.now_ms)
            fire(&world.timers[i]);
}

static void to_next_timer(void)
{
    int64_t next = -1;

    for (size_t i = 0; i < TIMERS; i++)
        if (world.timers[i].handle && world.timers[i].at_ms >= 0 && (next < 0 || world.timers[i].at_ms < next))
            next = world.timers[i].at_ms;
    time_passes(next > world.now_ms ? next - world.now_ms : 0);
}

static void cut_one(struct input *input)
{
    size_t link = input_below(input, LINKS);

    if ((int)link != links_find(WIRE_FROM_ROOT) || input_byte(input) >= 0xF0)
        links_cut(link);
}

static void happen(struct input *input)
{
    uint8_t what = input_byte(input);

    if (what < 0x40)
        elmer_says(input);
    else if (what < 0x60)
        root_says(input);
    else if (what < 0x90)
        a_user_says(input);
    else if (what < 0xA0)
        connect_one(input);
    else if (what < 0xB8)
        links_answer(input_below(input, LINKS));
    else if (what < 0xC4)
        answer_work(input_byte(input));
    else if (what < 0xC8)
        answer_lookup(input_byte(input) & 1 ? 0 : UV_EAI_AGAIN);
    else if (what < 0xE0)
        to_next_timer();
    else if (what < 0xE8)
        time_passes(100 * (int64_t)input_byte(input));
    else if (what < 0xF4)
        cut_one(input);
    else
        links_turn();
}

static void end(void)
{
    world.terminate(world.terminate_handle, SIGTERM);
    links_turn();
    answer_lookup(UV_ECANCELED);
    for (size_t i = 0; i < WORKS; i++)
        answer_work(i);
    links_end();
}

int uv_run(uv_loop_t *loop, uv_run_mode mode)
{
    (void)loop;
    if (mode == UV_RUN_NOWAIT)
        return 0;
    to_next_timer(); /* the first dial */
    for (int i = 0; world.input.left > 0 && i < MAX_EVENTS && links_find(WIRE_FROM_ROOT) >= 0; i++)
        happen(&world.input);
    end();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rsd_config config;

    memset(&world, 0, sizeof(world));
    world.input = (struct input){data, size};
    world.now_ms = 1000000;
    rsd_config_default(&config);
    (void)snprintf(config.name, sizeof(config.name), "ws1");
    (void)snprintf(config.elmer, sizeof(config.elmer), "/fuzz/elmer.sock");
    (void)snprintf(config.proc_stat, sizeof(config.proc_stat), "/fuzz/stat");
    config.user_connections = 3;
    config.user_requests_burst = 20;
    links_begin(WIRE_FROM_HOST);
    FUZZ_CHECK(rsd_net_main(1000, 1001, NULL, &config) == 0, "it has failed");
    return 0;
}
