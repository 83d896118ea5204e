/* daemon.c - composition: makes the rooms, connects them, and nothing more. Who knows whom is said here: what one room
 * tells another that it does not depend on goes through the callbacks below. */
#include "config.h"

#include "elmer/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "elmer/engine/engine.h"
#include "elmer/hosts/hosts.h"
#include "elmer/launch/launch.h"
#include "elmer/membership/membership.h"
#include "elmer/notify.h"
#include "elmer/reload.h"
#include "elmer/requests/requests.h"
#include "lib/base/container.h"
#include "lib/base/log.h"
#include "lib/net/rest.h"
#include "lib/net/tls.h"

enum { BEAT_MS = 1000 };

struct daemon {
    uv_loop_t loop;
    struct settings *settings;
    struct deadlines deadlines;
    struct engine *engine;
    struct membership *membership;
    struct hosts *hosts;
    struct launches *launches;
    struct requests *requests;
    struct notify *notify;
    struct hosts_settings hosts_settings; /* each room keeps a pointer to its own */
    struct launch_settings launch_settings;
    struct membership_settings membership_settings;
    struct requests_settings requests_settings;
    struct deadline beat; /* each second: so a stall is noticed within one */
    uv_signal_t terminate, interrupt, hangup;
    struct rest rest;
    char reloaded[100]; /* what became of the last reload; "": there was none */
    bool stopping;
    struct err *fatal; /* why it ended by itself */
    int fatal_code;
};

/* ---- what the hosts say, to the rooms that they do not know ---- */

static void on_up(int host, void *data)
{
    launches_host_up(((struct daemon *)data)->launches, host);
}

static void on_cut(int host, void *data)
{
    requests_host_cut(((struct daemon *)data)->requests, host);
}

static void on_room(int host, void *data)
{
    requests_host_room(((struct daemon *)data)->requests, host);
}

static void on_process(int host, struct wire_message *message, void *data)
{
    if (message->type == WIRE_file_part)
        requests_file_part(((struct daemon *)data)->requests, host, message);
    else
        launches_message(((struct daemon *)data)->launches, host, message);
}

static void on_relay(int host, bool on_queue_host, struct wire_message *message, void *data)
{
    requests_relay(((struct daemon *)data)->requests, host, on_queue_host, message);
}

static int judge(const struct tls_peer *peer, struct err *err, void *data)
{
    return membership_judge(((struct daemon *)data)->membership, peer->name, peer->serial, err);
}

static void on_shown(const char *serial, void *data)
{
    membership_shown(((struct daemon *)data)->membership, serial);
}

static void on_certificate(struct peer *peer, int host, struct wire_message *message, void *data)
{
    membership_ask(((struct daemon *)data)->membership, peer, host, message);
}

static void on_peer_gone(struct peer *peer, void *data)
{
    membership_peer_gone(((struct daemon *)data)->membership, peer);
}

static void on_listening(void *data)
{
    membership_certificate_came(((struct daemon *)data)->membership);
}

/* ---- its end ---- */

static void stop(struct daemon *d)
{
    if (d->stopping)
        return;
    d->stopping = true;
    notify_stopping(d->notify);
    requests_close(d->requests);
    hosts_close(d->hosts);
    membership_close(d->membership);
    engine_close(d->engine);
    notify_destroy(d->notify);
    deadlines_fini(&d->deadlines);
    rest_end(&d->rest);
    uv_close((uv_handle_t *)&d->terminate, NULL);
    uv_close((uv_handle_t *)&d->interrupt, NULL);
    uv_close((uv_handle_t *)&d->hangup, NULL);
}

static void destroy(struct daemon *d)
{
    launches_destroy(d->launches);
    requests_destroy(d->requests);
    hosts_destroy(d->hosts);
    membership_destroy(d->membership);
    engine_destroy(d->engine);
}

static void on_signal(uv_signal_t *signal, int number)
{
    log_notice("ends after %s", number == SIGINT ? "SIGINT" : "SIGTERM");
    stop(signal->data);
}

static void on_damage(const char *text, void *data)
{
    struct daemon *d = data;
    d->fatal_code = err_set(d->fatal, -EUCLEAN, "%s", text);
    stop(d);
}

/* ---- time ---- */

static void on_beat(struct deadline *deadline)
{
    struct daemon *d = CONTAINER_OF(deadline, struct daemon, beat);
    deadline_set(&d->deadlines, &d->beat, engine_now_ms() + BEAT_MS);
}

/* What hosts have said in that time is still to be read, and what they should have been asked was not. */
static void on_stalled(struct deadlines *deadlines, int64_t ms)
{
    struct daemon *d = CONTAINER_OF(deadlines, struct daemon, deadlines);
    struct event event = {.type = EVENT_TICK, .u.stalled_ms = ms};
    if (d->stopping)
        return;
    log_warning("elmer did not run for %" PRId64 ".%" PRId64 " s: nobody's silence is counted for that time", ms / 1000,
                ms % 1000 / 100);
    hosts_stalled(d->hosts, ms);
    engine_event(d->engine, &event);
}

/* ---- its begin ---- */

static const char *configured_host(int index, int *ncpus, void *data)
{
    const struct settings *s = data;
    if ((size_t)index >= s->nhosts)
        return NULL;
    *ncpus = s->hosts[index].cpus ? s->hosts[index].ncpus : 0;
    return s->hosts[index].name;
}

static void share_settings(struct daemon *d)
{
    const struct settings *s = d->settings;
    d->hosts_settings = (struct hosts_settings){.hosts = s->hosts,
                                                .nhosts = s->nhosts,
                                                .queue_host = s->name,
                                                .listen = s->listen,
                                                .pki = s->pki,
                                                .host_socket = s->host_socket,
                                                .host_user = s->host_user,
                                                .report_ms = s->report_ms,
                                                .heartbeat_ms = s->heartbeat_ms,
                                                .host_timeout_ms = s->host_timeout_ms,
                                                .host_messages = s->host_messages,
                                                .host_messages_burst = s->host_messages_burst,
                                                .kill_grace_ms = s->kill_grace_ms};
    d->launch_settings = (struct launch_settings){.jobs_dir = s->jobs_dir, .queue_host = s->name};
    d->membership_settings = (struct membership_settings){.queue_host = s->name,
                                                          .signer = s->signer,
                                                          .pki = s->listen ? s->pki : NULL,
                                                          .fixed = s->core.topology == TOPOLOGY_CUBE};
    d->requests_settings = (struct requests_settings){.queue_host = s->name,
                                                      .socket = s->socket,
                                                      .admin_group = s->admin_group,
                                                      .user_queued = s->user_queued,
                                                      .user_memory = s->user_memory,
                                                      .user_connections = s->user_connections,
                                                      .user_request_bytes = s->user_request_bytes,
                                                      .user_requests = s->user_requests,
                                                      .user_requests_burst = s->user_requests_burst,
                                                      .private_jobs = s->private_jobs,
                                                      .max_nprocs = s->max_nprocs,
                                                      .minimum_uid = s->minimum_uid,
                                                      .hosts = s->hosts,
                                                      .levels = s->core.levels};
}

/* From the bottom up: each room has what it depends on. */
static int open_rooms(struct daemon *d, struct err *err)
{
    static const struct hosts_callbacks hosts = {.on_up = on_up,
                                                 .on_cut = on_cut,
                                                 .on_room = on_room,
                                                 .on_process = on_process,
                                                 .on_relay = on_relay,
                                                 .judge = judge,
                                                 .on_shown = on_shown,
                                                 .on_certificate = on_certificate,
                                                 .on_peer_gone = on_peer_gone,
                                                 .on_listening = on_listening};
    const struct settings *s = d->settings;
    const struct engine_settings engine = {.core = s->core,
                                           .store = s->store,
                                           .history_jobs = s->history_jobs,
                                           .history_age_ms = s->history_age_ms,
                                           .host = configured_host,
                                           .data = (void *)s};
    int result = engine_create(&d->loop, &d->deadlines, &engine, on_damage, d, &d->engine, err);
    const struct room room = {&d->loop, &d->deadlines, d->engine};
    if (!result) {
        reload_meet_stored(d->settings, d->engine);
        share_settings(d);
    }
    if (!result)
        result = membership_create(&room, &d->membership_settings, &d->membership, err);
    if (!result)
        result = hosts_create(&room, &d->hosts_settings, &hosts, d, &d->hosts, err);
    if (result)
        return result;
    membership_begin(d->membership, d->hosts);
    d->launches = launches_create(&room, &d->launch_settings, d->hosts);
    return requests_create(&room, &d->requests_settings, d->hosts, d->membership, d->launches, &d->requests, err);
}

static void describe(char *text, size_t size, void *data)
{
    struct daemon *d = data;
    const struct jobs *jobs = engine_jobs(d->engine);
    const char *deaf = hosts_listen_failure(d->hosts);
    size_t hosts = hosts_count(d->hosts), unended = jobs->by_id.count - jobs->nended;
    snprintf(text, size, "%zu of %zu host%s up, %zu job%s%s%s%s%s", hosts_count_linked(d->hosts), hosts,
             hosts == 1 ? "" : "s", unended, unended == 1 ? "" : "s",
             engine_store_failure(d->engine) ? ", THE STORE CANNOT BE WRITTEN" : "",
             deaf ? ", OTHER HOSTS CANNOT LINK: " : "", deaf ? deaf : "", d->reloaded);
}

/* ---- the configuration changes ---- */

static void share(void *data)
{
    share_settings(data); /* the rooms read it where it is */
}

static struct reload_rooms reload_rooms(struct daemon *d)
{
    return (struct reload_rooms){d->settings, d->engine, d->hosts, d->membership, d->requests, share, d};
}

static void on_hangup(uv_signal_t *signal, int number)
{
    struct daemon *d = signal->data;
    const struct reload_rooms rooms = reload_rooms(d);
    (void)number;
    if (d->stopping)
        return;
    notify_reloading(d->notify);
    reload(&rooms, d->reloaded, sizeof(d->reloaded));
    notify_reloaded(d->notify);
}

static void on_new_host(const char *name, void *data)
{
    const struct reload_rooms rooms = reload_rooms(data);
    reload_add_joined(&rooms, name);
}

static void begin(struct daemon *d)
{
    const struct settings *s = d->settings;
    membership_connect(d->membership, on_new_host, d);
    engine_begin(d->engine);
    d->notify = notify_create(&d->deadlines, describe, d);
    uv_signal_start(&d->hangup, on_hangup, SIGHUP);
    notify_ready(d->notify);
    d->deadlines.stalled = on_stalled; /* not for the start, which may take long */
    on_beat(&d->beat);
    size_t jobs = engine_jobs(d->engine)->by_id.count;
    log_notice(
        "ready: %zu host%s, %zu job%s, allocator %s, %d level%s", s->nhosts, s->nhosts == 1 ? "" : "s", jobs,
        jobs == 1 ? "" : "s",
        core_setting_value_name(SETTING_ALLOCATOR, core_setting_value(engine_core(d->engine), SETTING_ALLOCATOR)),
        s->core.levels, s->core.levels == 1 ? "" : "s");
}

/* waited: it could not begin before. began: it was ready once. */
static int run_once(struct settings *settings, bool waited, bool *began, struct err *err)
{
    struct daemon d = {.settings = settings, .fatal = err, .beat.fire = on_beat};
    size_t configured = settings->nhosts;
    int result = uv_loop_init(&d.loop);
    if (result)
        return err_set(err, result, "no event loop: %s", uv_strerror(result));
    share_settings(&d);
    deadlines_init(&d.deadlines, &d.loop);
    rest_begin(&d.rest, &d.loop);
    uv_signal_init(&d.loop, &d.terminate);
    uv_signal_init(&d.loop, &d.interrupt);
    uv_signal_init(&d.loop, &d.hangup);
    d.terminate.data = d.interrupt.data = d.hangup.data = &d;
    uv_signal_start(&d.terminate, on_signal, SIGTERM); /* they come in the loop, also what came before it ran */
    uv_signal_start(&d.interrupt, on_signal, SIGINT);
    result = open_rooms(&d, err);
    *began = !result;
    if (!result && waited)
        log_notice("elmer can begin now");
    if (result)
        stop(&d);
    else
        begin(&d);
    uv_run(&d.loop, UV_RUN_DEFAULT);
    destroy(&d);
    if (uv_loop_close(&d.loop))
        log_error("handles were left open: a bug");
    if (!*began)
        settings_forget_hosts(settings, configured);
    return result ? result : d.fatal_code;
}

int daemon_run(struct settings *settings, struct err *err)
{
    struct err before = ERR_INIT;
    log_fields();
    for (;;) {
        bool began = false;
        int result = run_once(settings, *before.text, &began, err);
        if (!result || began || daemon_is_hopeless(result))
            return result;
        if (strcmp(err->text, before.text) != 0)
            log_warning("elmer cannot begin: %s; it tries again every %d s", err->text, NOTIFY_WAIT_S);
        before = *err;
        if (notify_wait(err->text)) {
            log_notice("ends after a signal, without having begun");
            return 0;
        }
        err_clear(err);
    }
}

bool daemon_is_hopeless(int result)
{
    return result == -EUCLEAN || result == -EPROTO || result == -EINVAL;
}
