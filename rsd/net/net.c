/* net.c - the network half of rsd: the dispatcher between elmer, the root half and local users.
 *
 * Each new link to elmer (uplink.c): we ask the root half to say everything again (resync). Its root_state and what we
 * know ourselves become host_hello; what it says after root_state follows elmer's welcome. So nothing that happened
 * while there was no link is lost, and nothing that was said for an older link is passed on: until root_state has come,
 * the root half's events are dropped. While a link is READY, orders pass down, events pass up, unchanged; we look at
 * them only to know which processors a job uses (usage.c). Local users' requests and their answers pass by clients.c.
 * Each report interval the utilisation goes to elmer. SIGTERM or the end of the root half: everything is closed within
 * a second or so, and we return. Jobs do not notice. As a unit of its own (door.c) it goes on without root half, and
 * without link to elmer, until that joins again: then a new link begins, and all is said again.
 * We decide nothing and have no rights: what we pass down is checked again by the root half.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/service.h"
#include "lib/base/str.h"
#include "lib/net/link.h"
#include "lib/net/rest.h"
#include "lib/pki/renewal.h"
#include "rsd/net/clients.h"
#include "rsd/net/door.h"
#include "rsd/net/facts.h"
#include "rsd/net/host_renewal.h"
#include "rsd/net/launchers.h"
#include "rsd/net/net.h"
#include "rsd/net/own_name.h"
#include "rsd/net/passes.h"
#include "rsd/net/report.h"
#include "rsd/net/uplink.h"
#include "rsd/net/usage.h"

enum {
    ROOT_OUT_MAX = 64 << 20,
    REPORT_MIN_MS = 50,
    REPORT_FIRST_MS = 500, /* the first report of a link comes early: jobs may wait for it */
};
enum { STOP_MS = 3000 };

struct net {
    uv_loop_t loop;
    const struct rsd_config *config;
    struct link *root; /* NULL: it is away */
    struct door *door; /* where it joins; NULL: we are its child */
    struct uplink *uplink;
    struct host_renewal *renewal; /* NULL: links have no certificates */
    struct clients *clients;
    struct usage usage;
    unsigned resyncs;          /* sent, and not answered yet */
    struct wire_message state; /* the last root_state of this link; memory NULL: not there */
    struct own_name name;
    uv_timer_t report_timer, stop_timer;
    struct rest rest;
    uv_signal_t term, interrupt;
    bool stopping, said_why;
    int result;
    uint64_t report_ms;
    struct log_limit limit;
};

static void stop(struct net *net, int result);

static bool root_ready(const struct net *net)
{
    return net->root && link_ready(net->root);
}

/* ---- greeting ---- */

static void drop_state(struct net *net)
{
    wire_message_fini(&net->state);
    net->state.memory = NULL;
}

static void try_greet(struct net *net)
{
    const struct wire_root_state *state = &net->state.u.root_state;
    struct wire_host_hello hello = {0};
    char boot[65];

    if (!net->state.memory || !net->name.known || uplink_state(net->uplink) != UPLINK_GREETING)
        return;
    facts_boot(boot, sizeof(boot));
    hello.host = net->config->name;
    hello.boot = boot;
    hello.cpus = state->cpus;
    hello.generation = state->generation;
    hello.holdings.items = state->holdings.items;
    hello.holdings.count = state->holdings.count;
    facts_tell(net->config, state, &hello);
    hello.address = uplink_local_address(net->uplink);
    hello.name_loopback = net->name.loopback;
    launchers_offer(net->config, &hello);
    uplink_greet(net->uplink, &hello);
}

static void on_name(void *data)
{
    try_greet(data);
}

static int send_root(struct net *net, const struct wire_message *message)
{
    int result = net->root ? link_send(net->root, message) : -ENOTCONN;

    if (result != 0 && net->root && net->door) {
        link_close(net->root, "cannot be told something"); /* on_root_close() follows, and it joins again */
    } else if (result != 0 && !net->door && !net->stopping) {
        log_error("the root half cannot be told %s (%s); rsd starts again", wire_type_name(message->type),
                  strerror(-result));
        stop(net, -EPIPE);
    }
    return result;
}

static void on_greeting(void *data)
{
    struct net *net = data;
    struct wire_message resync = {.type = WIRE_resync};

    drop_state(net);
    own_name_resolve(&net->name);
    if (!root_ready(net)) /* on_root_ready() asks */
        return;
    if (send_root(net, &resync) == 0)
        net->resyncs++;
}

/* The root half alone speaks for the service. */
static void on_why(void *data)
{
    struct net *net = data;
    const char *why = net->uplink ? uplink_why(net->uplink) : "";
    char text[700] = "";
    struct wire_message uplink = {.type = WIRE_uplink, .u.uplink.text = text};

    if (!root_ready(net) || net->stopping || (!*why && !net->said_why))
        return;
    net->said_why = *why;
    if (*why)
        (void)snprintf(text, sizeof(text), "no link to %.200s: %.440s%s", uplink_address(net->uplink), why,
                       strchr(net->config->elmer, ' ') ? "; the other addresses are tried too" : "");
    (void)send_root(net, &uplink);
}

static void on_root_ready(struct link *link, void *data)
{
    struct net *net = data;

    (void)link;
    on_why(net);
    if (uplink_state(net->uplink) == UPLINK_GREETING && net->resyncs == 0)
        on_greeting(net);
}

static void take_state(struct net *net, struct wire_message *message)
{
    const struct wire_root_state *state = &message->u.root_state;

    if (net->resyncs > 0)
        net->resyncs--;
    if (net->resyncs > 0 || uplink_state(net->uplink) != UPLINK_GREETING)
        return; /* for a link that is gone */
    if (usage_set_host(&net->usage, state->cpus.items, state->cpus.count, state->jobs_group) != 0) {
        uplink_drop(net->uplink, "out of memory");
        return;
    }
    usage_hold(&net->usage, state->holdings.items, state->holdings.count);
    drop_state(net);
    net->state = *message;
    message->memory = NULL;
    try_greet(net);
}

/* ---- what passes ---- */

static void on_elmer_message(struct wire_message *message, void *data)
{
    struct net *net = data;
    char text[512];

    if (net->renewal && host_renewal_message(net->renewal, message))
        return;
    if (message->type == WIRE_relayed) {
        if (net->clients)
            clients_relayed(net->clients, &message->u.relayed);
        return;
    }
    if (passes_down[message->type]) {
        if (message->type == WIRE_order)
            report_order(&net->usage, &message->u.order);
        if (message->type == WIRE_open)
            usage_add_job(&net->usage, message->u.open.job, (uint32_t)message->u.open.attempt,
                          message->u.open.cpus.items, message->u.open.cpus.count, true);
        (void)send_root(net, message);
        return;
    }
    if (message->type == WIRE_error) {
        if (log_allowed(&net->limit, 10, 60000))
            log_warning("elmer refuses something: %s",
                        str_printable(text, sizeof(text), message->u.error.text, strlen(message->u.error.text)));
        return;
    }
    if (message->type == WIRE_done)
        return;
    (void)snprintf(text, sizeof(text), "elmer sent %s, which is not for a host", wire_type_name(message->type));
    uplink_drop(net->uplink, text);
}

static void on_root_message(struct link *link, struct wire_message *message, void *data)
{
    struct net *net = data;

    (void)link;
    if (message->type == WIRE_root_state) {
        take_state(net, message);
        return;
    }
    if (message->type == WIRE_empty)
        usage_end_job(&net->usage, message->u.empty.job, (uint32_t)message->u.empty.attempt,
                      message->u.empty.cpu_seconds);
    if (message->type == WIRE_waits)
        usage_waits(&net->usage, &message->u.waits); /* told with the next report */
    else if (!passes_up[message->type])
        log_error("the root half sent %s, which is not for elmer", wire_type_name(message->type));
    else if (net->state.memory) /* else it comes again after root_state */
        (void)uplink_send(net->uplink, message);
}

static void on_root_close(struct link *link, const char *text, void *data)
{
    struct net *net = data;

    if (link != net->root)
        return; /* it has joined again meanwhile */
    net->root = NULL;
    if (!net->stopping)
        log_notice("the root half has gone: %s", text);
    if (!net->door) {
        stop(net, 0);
    } else if (!net->stopping) {
        net->resyncs = 0;
        service_notify("STATUS=waits for rsd");
        uplink_hold(net->uplink, "rsd is not running here, or just starting: see systemctl status rsd");
    }
}

static int open_root(struct net *net, int fd, struct err *err)
{
    static const struct link_callbacks callbacks = {
        .on_ready = on_root_ready, .on_message = on_root_message, .on_close = on_root_close};
    static const struct link_options options = {
        .program = "rsd", .peer = WIRE_FROM_ROOT, .out_max = ROOT_OUT_MAX, .no_hello = true};

    net->root = NULL;
    return link_open_fd(&net->loop, fd, &options, &callbacks, net, &net->root, err);
}

/* What it does not know of us it is told by on_root_ready(), and what we do not know of it by a new link. */
static void on_joined(int fd, void *data)
{
    struct net *net = data;
    struct link *before = net->root;
    struct err err = ERR_INIT;

    if (fd < 0) {
        stop(net, SERVICE_AGAIN);
        return;
    }
    net->resyncs = 0;
    uplink_hold(net->uplink, "rsd has started again");
    if (open_root(net, fd, &err) != 0)
        log_error("rsd cannot be joined: %s", err.text);
    else
        service_notify("STATUS=");
    if (before)
        link_close(before, "it has joined again");
    if (net->root)
        uplink_hold(net->uplink, NULL);
}

/* ---- reports ---- */

static void on_report_timer(uv_timer_t *timer)
{
    struct net *net = timer->data;

    report_send(&net->usage, net->uplink, &net->limit);
}

static void on_ready(const struct wire_host_welcome *welcome, void *data)
{
    struct net *net = data;
    struct err err = ERR_INIT;
    uint64_t first;

    net->report_ms = welcome->report_ms > REPORT_MIN_MS ? welcome->report_ms : REPORT_MIN_MS;
    first = net->report_ms < REPORT_FIRST_MS ? net->report_ms : REPORT_FIRST_MS;
    if (usage_begin(&net->usage, &err) != 0)
        log_warning("the utilisation cannot be measured: %s", err.text);
    (void)uv_timer_start(&net->report_timer, on_report_timer, first, net->report_ms);
}

/* Before anything else that elmer says after it: a job with a lease may be opened then. */
static void on_contact(int64_t said_ms, void *data)
{
    struct wire_message contact = {.type = WIRE_contact, .u.contact.said_ms = (uint64_t)said_ms};

    (void)send_root(data, &contact);
}

static void on_offline(void *data)
{
    struct net *net = data;

    drop_state(net);
    (void)uv_timer_stop(&net->report_timer);
    if (net->clients)
        clients_offline(net->clients);
}

/* ---- local users ---- */

static int send_for_client(const struct wire_message *message, void *data)
{
    struct net *net = data;

    if (message->type == WIRE_relay)
        return uplink_offer(net->uplink, message);
    return uplink_state(net->uplink) == UPLINK_READY ? uplink_send(net->uplink, message) : -ENOTCONN;
}

static const char *why_offline(void *data)
{
    struct net *net = data;

    return uplink_why(net->uplink);
}

static int minor_of_elmer(void *data)
{
    struct net *net = data;

    return uplink_state(net->uplink) == UPLINK_READY ? (int)uplink_minor(net->uplink) : -ENOTCONN;
}

/* ---- beginning and end ---- */

static void on_stop_timer(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void stop(struct net *net, int result)
{
    if (net->stopping)
        return;
    net->stopping = true;
    net->result = result;
    if (net->uplink)
        uplink_stop(net->uplink);
    host_renewal_close(net->renewal);
    net->renewal = NULL;
    if (net->clients)
        clients_stop(net->clients);
    if (net->door)
        door_close(net->door);
    if (net->root)
        link_close(net->root, "the network half ends");
    own_name_close(&net->name);
    close_handle((uv_handle_t *)&net->report_timer);
    rest_end(&net->rest);
    close_handle((uv_handle_t *)&net->term);
    close_handle((uv_handle_t *)&net->interrupt);
    /* What does not end by itself (a name service that hangs) does not keep us. */
    (void)uv_timer_start(&net->stop_timer, on_stop_timer, STOP_MS, 0);
    uv_unref((uv_handle_t *)&net->stop_timer);
}

static void on_signal(uv_signal_t *handle, int number)
{
    log_notice("ends by %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
    stop(handle->data, 0);
}

static void init_handles(struct net *net)
{
    uv_timer_t *timers[] = {&net->report_timer, &net->stop_timer};

    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
        (void)uv_timer_init(&net->loop, timers[i]);
        timers[i]->data = net;
    }
    own_name_init(&net->name, &net->loop, net->config->name, on_name, net);
    (void)rest_begin(&net->rest, &net->loop);
    (void)uv_signal_init(&net->loop, &net->term);
    (void)uv_signal_init(&net->loop, &net->interrupt);
    net->term.data = net->interrupt.data = net;
    (void)uv_signal_start(&net->term, on_signal, SIGTERM);
    (void)uv_signal_start(&net->interrupt, on_signal, SIGINT);
}

static int send_renewal(const struct wire_message *message, void *data)
{
    struct net *net = data;

    return uplink_send(net->uplink, message);
}

static void prepare_renewal(struct net *net, const char *pki)
{
    static const struct host_renewal_callbacks callbacks = {send_renewal};
    struct pki_certificate facts;

    if (!pki)
        return;
    (void)pki_renewal_recover(pki, &facts, NULL); /* what is wrong with the pair, the uplink says */
    net->renewal = host_renewal_create(&net->loop, pki, &callbacks, net);
}

static int begin(struct net *net, int root_fd, int listen_fd, struct err *err)
{
    static const struct uplink_callbacks uplink_callbacks = {.on_greeting = on_greeting,
                                                             .on_ready = on_ready,
                                                             .on_message = on_elmer_message,
                                                             .on_contact = on_contact,
                                                             .on_offline = on_offline,
                                                             .on_why = on_why};
    static const struct clients_callbacks clients_callbacks = {
        .send = send_for_client, .why = why_offline, .minor = minor_of_elmer};
    const struct clients_limits limits = {net->config->user_connections, net->config->user_requests,
                                          net->config->user_requests_burst};
    const char *pki = net->config->elmer[0] == '/' ? NULL : net->config->pki;
    int result;

    init_handles(net);
    usage_init(&net->usage, net->config->proc_stat);
    net->uplink = uplink_create(&net->loop, net->config->elmer, pki, &uplink_callbacks, net);
    if (!net->uplink) {
        close(root_fd);
        if (listen_fd >= 0)
            close(listen_fd);
        return err_set(err, -ENOMEM, "out of memory");
    }
    prepare_renewal(net, pki);
    result = open_root(net, root_fd, err);
    if (result == 0 && net->door)
        result = door_open(net->door, &net->loop, on_joined, net, err);
    if (result == 0 && listen_fd >= 0)
        result = clients_create(&net->loop, listen_fd, &limits, &clients_callbacks, net, &net->clients, err);
    else if (listen_fd >= 0)
        close(listen_fd);
    return result;
}

int rsd_net_main(int root_fd, int listen_fd, struct door *door, const struct rsd_config *config)
{
    struct net net = {.config = config, .door = door};
    struct err err = ERR_INIT;
    int result = uv_loop_init(&net.loop);

    if (result != 0) {
        close(root_fd);
        if (listen_fd >= 0)
            close(listen_fd);
        return result;
    }
    signal(SIGPIPE, SIG_IGN);
    clients_want_files();
    result = begin(&net, root_fd, listen_fd, &err);
    if (result != 0) {
        log_error("the network half cannot begin: %s", err.text);
        stop(&net, result);
    }
    (void)uv_run(&net.loop, UV_RUN_DEFAULT);
    close_handle((uv_handle_t *)&net.stop_timer);
    (void)uv_run(&net.loop, UV_RUN_NOWAIT);
    drop_state(&net);
    if (uv_loop_close(&net.loop) == 0) { /* else a thread still holds something, and the process ends anyway */
        clients_free(net.clients);
        uplink_free(net.uplink);
        usage_fini(&net.usage);
    }
    return net.result;
}
