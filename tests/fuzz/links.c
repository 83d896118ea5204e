#include "config.h"

#include "tests/fuzz/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/net/tls.h"

enum { LISTENERS = 4 };

struct link {
    bool open, closing, waits /* for links_answer() */, refused;
    struct link_options options;
    const struct link_callbacks *callbacks;
    void *data;
    uid_t uid;
    size_t unsent;
    struct budget *budget;
    const char *name, *serial;
    unsigned minor;
    char text[200];
};

struct listener {
    bool open;
    unsigned max_links;
    struct link_options options;
    const struct link_callbacks *callbacks;
    listener_accept accept;
    void *data;
};

static struct link links[LINKS];
static struct listener listeners[LISTENERS];
static unsigned role;
static struct introduced {
    bool is;
    const char *name, *serial;
    unsigned minor;
} next;
static int listeners_code, tcp_code;

void links_begin(unsigned program)
{
    memset(links, 0, sizeof(links));
    memset(listeners, 0, sizeof(listeners));
    role = program;
    next = (struct introduced){0};
    listeners_code = tcp_code = 0;
}

void links_end(void)
{
    for (size_t i = 0; i < LISTENERS; i++)
        FUZZ_CHECK(!listeners[i].open, "listener %zu was left open", i);
    for (size_t i = 0; i < LINKS; i++)
        FUZZ_CHECK(!links[i].open || links[i].closing, "link %zu was left open", i);
    links_turn();
}

static void close_now(struct link *link, const char *text)
{
    const struct link_callbacks *callbacks = link->callbacks;
    void *data = link->data;

    callbacks->on_close(link, text, data);
    link->open = false;
}

void links_introduce(const char *name, const char *serial, unsigned minor)
{
    next = (struct introduced){true, name, serial, minor};
}

void links_refuse_listeners(int code)
{
    listeners_code = code;
}

void links_refuse_tcp(int code)
{
    tcp_code = code;
}

/* Certificates are shown over TCP only, by most. */
static void meet(struct link *link)
{
    static const char *const names[] = {"ws1", "ws2", "ws3", NULL};

    if (!next.is)
        next = (struct introduced){true, names[link->uid % 4], "0123456789ABCDEF", WIRE_MINOR};
    link->name = link->options.tls ? next.name : NULL;
    link->serial = link->name ? next.serial : NULL;
    link->minor = next.minor;
    next.is = false;
}

void links_turn(void)
{
    for (size_t i = 0; i < LINKS; i++)
        if (links[i].open && links[i].closing)
            close_now(&links[i], links[i].text);
}

static bool has_room(const struct listener *listener)
{
    unsigned count = 0;

    for (size_t i = 0; i < LINKS; i++)
        count += links[i].open && links[i].callbacks == listener->callbacks;
    return count < listener->max_links;
}

int links_accept(size_t number, uid_t uid)
{
    struct listener *listener = &listeners[number % LISTENERS];
    size_t at = 0;

    while (at < LINKS && links[at].open)
        at++;
    if (!listener->open || at == LINKS || (!listener->options.tls && !has_room(listener)))
        return -1;
    links[at] = (struct link){.open = true, .options = listener->options, .callbacks = listener->callbacks, .uid = uid};
    meet(&links[at]);
    links[at].data = listener->accept(&links[at], listener->data);
    if (!links[at].data) {
        links[at].open = false;
        return -1;
    }
    if (links[at].callbacks->on_ready)
        links[at].callbacks->on_ready(&links[at], links[at].data);
    return (int)at;
}

bool links_open(size_t number)
{
    return links[number % LINKS].open && !links[number % LINKS].closing;
}

void links_say(size_t number, struct wire_message *message)
{
    struct link *link = &links[number % LINKS];

    if (!links_open(number) || link->waits || !wire_may_send(message->type, link->options.peer)) {
        ;
    } else if (message->type == WIRE_error && message->id == 0) {
        link->refused = true;
        link_close(link, "refused");
    } else {
        link->callbacks->on_message(link, message, link->data);
    }
    wire_message_fini(message);
}

int links_find(unsigned peer)
{
    for (int i = 0; i < LINKS; i++)
        if (links[i].open && !links[i].closing && links[i].options.peer == peer)
            return i;
    return -1;
}

void links_answer(size_t number)
{
    struct link *link = &links[number % LINKS];

    if (!links_open(number) || !link->waits)
        return;
    link->waits = false;
    if (link->callbacks->on_ready)
        link->callbacks->on_ready(link, link->data);
}

void links_cut(size_t number)
{
    struct link *link = &links[number % LINKS];

    if (link->open)
        close_now(link, link->closing ? link->text : "reset by peer");
}

void links_set_unsent(size_t number, size_t bytes)
{
    links[number % LINKS].unsent = bytes;
}

struct budget *links_budget(size_t number)
{
    return links[number % LINKS].budget;
}

void links_room(size_t number)
{
    struct link *link = &links[number % LINKS];

    link->unsent = 0;
    if (links_open(number) && !link->waits && link->callbacks->on_room)
        link->callbacks->on_room(link, link->data);
}

/* ---- link.h ---- */

int listener_create(uv_loop_t *loop, const char *address, unsigned mode, unsigned max_links,
                    const struct link_options *options, const struct link_callbacks *callbacks, listener_accept accept,
                    void *data, struct listener **listener, struct err *err)
{
    (void)loop;
    (void)mode;
    if (listeners_code != 0 || (tcp_code != 0 && options->tls))
        return err_set(err, listeners_code != 0 ? listeners_code : tcp_code, "%s: nobody can listen there", address);
    for (size_t i = 0; i < LISTENERS; i++) {
        if (listeners[i].open)
            continue;
        listeners[i] = (struct listener){true, max_links, *options, callbacks, accept, data};
        *listener = &listeners[i];
        return 0;
    }
    return err_set(err, -EMFILE, "%s: too many listeners", address);
}

int listener_create_fd(uv_loop_t *loop, int fd, unsigned max_links, const struct link_options *options,
                       const struct link_callbacks *callbacks, listener_accept accept, void *data,
                       struct listener **listener, struct err *err)
{
    (void)fd;
    return listener_create(loop, "a socket", 0, max_links, options, callbacks, accept, data, listener, err);
}

static int open_waiting(const struct link_options *options, const struct link_callbacks *callbacks, void *data,
                        struct link **link, struct err *err)
{
    for (size_t i = 0; i < LINKS; i++) {
        if (links[i].open)
            continue;
        links[i] =
            (struct link){.open = true, .waits = true, .options = *options, .callbacks = callbacks, .data = data};
        links[i].minor = WIRE_MINOR;
        *link = &links[i];
        return 0;
    }
    return err_set(err, -EMFILE, "too many links");
}

int link_connect(uv_loop_t *loop, const char *address, unsigned timeout_ms, const struct link_options *options,
                 const struct link_callbacks *callbacks, void *data, struct link **link, struct err *err)
{
    (void)loop;
    (void)timeout_ms;
    FUZZ_CHECK(address[0] != '\0', "dials nobody");
    return open_waiting(options, callbacks, data, link, err);
}

int link_open_fd(uv_loop_t *loop, int fd, const struct link_options *options, const struct link_callbacks *callbacks,
                 void *data, struct link **link, struct err *err)
{
    (void)loop;
    (void)fd;
    return open_waiting(options, callbacks, data, link, err);
}

bool link_was_refused(const struct link *link)
{
    return link->refused;
}

bool link_ready(const struct link *link)
{
    return link->open && !link->waits && !link->closing;
}

void listener_allow(struct listener *listener, unsigned max_links)
{
    listener->max_links = max_links;
}

void listener_close(struct listener *listener)
{
    FUZZ_CHECK(listener->open, "closed twice");
    listener->open = false;
}

static unsigned role_on(const struct link *link)
{
    return role == WIRE_FROM_HOST && link->options.peer == WIRE_FROM_CLIENT ? WIRE_FROM_ELMER : role;
}

int link_send_json(struct link *link, const char *json, size_t size)
{
    struct wire_message heard;
    struct err err = ERR_INIT;

    FUZZ_CHECK(link->open, "%.*s on a link that is gone", (int)size, json);
    if (link->closing || link->waits)
        return -ENOTCONN;
    FUZZ_CHECK(wire_decode(json, size, link->minor, &heard, &err) == 0, "sends %.*s: %s", (int)size, json, err.text);
    FUZZ_CHECK(wire_may_send(heard.type, role_on(link)), "sends %s, which it may not", wire_type_name(heard.type));
    links_heard((size_t)(link - links), &heard);
    wire_message_fini(&heard);
    return 0;
}

int link_send(struct link *link, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    int result;

    FUZZ_CHECK(link->open, "%s on a link that is gone", wire_type_name(message->type));
    if (link->closing || link->waits)
        return -ENOTCONN;
    result = wire_encode(message, link->minor, &json, &size, &err);
    FUZZ_CHECK(result == 0 || link->minor < WIRE_MINOR, "cannot be encoded: %s", err.text);
    if (result != 0)
        return result;
    result = link_send_json(link, json, size);
    free(json);
    return result;
}

int link_offer(struct link *link, const struct wire_message *message)
{
    return link_send(link, message);
}

void link_close(struct link *link, const char *text)
{
    FUZZ_CHECK(link->open, "a link that is gone");
    if (link->closing)
        return;
    link->closing = true;
    (void)snprintf(link->text, sizeof(link->text), "%s", text ? text : "");
}

void link_refuse(struct link *link, const char *code, const char *text)
{
    struct wire_message message = {.type = WIRE_error, .u.error = {.code = code, .text = text}};

    (void)link_send(link, &message);
    link_close(link, text);
}

int link_peer_cred(const struct link *link, uid_t *uid, gid_t *gid, pid_t *pid)
{
    *uid = link->uid;
    *gid = link->uid;
    *pid = 1000;
    return 0;
}

const char *link_peer_address(const struct link *link)
{
    return link->options.peer & WIRE_FROM_HOST ? "10.0.0.2" : "";
}

const char *link_local_address(const struct link *link)
{
    return link->options.peer & WIRE_FROM_HOST ? "10.0.0.1" : "";
}

static const char *capability_of_all = "";

void links_have(const char *capability)
{
    capability_of_all = capability;
}

const char *link_peer_capability(const struct link *link)
{
    (void)link;
    return capability_of_all;
}

const char *link_peer_name(const struct link *link)
{
    return link->name;
}

const char *link_peer_serial(const struct link *link)
{
    return link->serial;
}

static struct {
    tls_judge judge;
    void *data;
} judge_of_server;

int links_judge(const struct tls_peer *peer, struct err *err)
{
    return judge_of_server.judge(peer, judge_of_server.data, err);
}

int tls_context_server(const char *dir, tls_judge judge, void *data, struct tls_context **context, struct err *err)
{
    (void)dir;
    (void)err;
    judge_of_server.judge = judge;
    judge_of_server.data = data;
    *context = (struct tls_context *)(void *)links;
    return 0;
}

int tls_context_client(const char *dir, struct tls_context **context, struct err *err)
{
    return tls_context_server(dir, NULL, NULL, context, err);
}

int tls_context_joiner(const uint8_t ca_sha256[TLS_PIN_BYTES], struct tls_context **context, struct err *err)
{
    (void)ca_sha256;
    return tls_context_server(NULL, NULL, NULL, context, err);
}

const char *link_ca_pem(const struct link *link)
{
    (void)link;
    return NULL;
}

bool tls_context_authority(const struct tls_context *context, uint8_t key[TLS_AUTHORITY_BYTES])
{
    (void)context;
    memset(key, 0, TLS_AUTHORITY_BYTES);
    return false;
}

int tls_context_reload(struct tls_context *context, struct err *err)
{
    (void)err;
    return context ? 0 : -EINVAL;
}

void tls_context_unref(struct tls_context *context)
{
    (void)context;
}

unsigned link_minor(const struct link *link)
{
    return link->minor;
}

void link_set_budget(struct link *link, struct budget *budget)
{
    link->budget = budget;
}

size_t link_unsent(const struct link *link)
{
    return link->unsent;
}
