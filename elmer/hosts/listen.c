/* listen.c - the address for the hosts' links.
 *
 * At the start: certificates, then the address -> listening, and hosts of before are awaited. Where that fails although
 * nothing in the configuration is wrong (no certificates yet, the address is another's or not up yet, the name service
 * does not answer) elmer serves its own host meanwhile and tries again: WAITING, every RETRY_MS -> certificates -> the
 * name is looked up in a worker thread, since the name service may take long -> the address. It is said once, and
 * hosts_listen_failure() says it as long as it lasts. Hosts are awaited only from the moment on in which they can link:
 * until then nobody's silence means anything, and from then on new jobs wait once more until they have gathered. What
 * waiting does not mend ends elmer at the start; later nothing does.
 */
#include "config.h"

#include "elmer/hosts/internal.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/net/tls.h"

enum { RETRY_MS = 5000 };

/* Those that were up before a restart, or have jobs of before; whether there are any. */
static bool await(struct hosts *hosts)
{
    bool any = false;
    for (int i = 0; i < hosts->nhosts; i++) {
        if (host_state(hosts->hosts[i]) != CORE_HOST_AWAITED)
            continue;
        host_arm(hosts->hosts[i], engine_now_ms() + hosts->settings->host_timeout_ms);
        any = true;
    }
    return any;
}

static int try_to_listen(struct hosts *hosts, struct err *err)
{
    const struct hosts_settings *settings = hosts->settings;
    struct link_options options = hosts->links.options;
    options.tls = hosts->tls;
    return listener_create(hosts->room.loop, settings->listen, 0, hosts->links.max, &options, hosts->links.callbacks,
                           hosts->links.accept_tcp, hosts, &hosts->tcp_listener, err);
}

static void wait_for_better(struct hosts *hosts, const char *why)
{
    deadline_set(hosts->room.deadlines, &hosts->listen_again, engine_now_ms() + RETRY_MS);
    if (hosts->listen_failure && !strcmp(hosts->listen_failure, why))
        return;
    log_warning("other hosts cannot link: %s; elmer tries again every %d s", why, RETRY_MS / 1000);
    free(hosts->listen_failure);
    hosts->listen_failure = mem_strdup(why);
}

static void listens_now(struct hosts *hosts)
{
    log_notice("other hosts can link now: elmer listens on %s", hosts->settings->listen);
    free(hosts->listen_failure);
    hosts->listen_failure = NULL;
    struct event event = {.type = EVENT_GATHER, .host = -1};
    if (await(hosts))
        engine_event(hosts->room.engine, &event);
    if (hosts->callbacks.on_listening)
        hosts->callbacks.on_listening(hosts->data);
}

/* ---- trying again ---- */

/* The host of settings->listen, which the configuration has checked. */
static void look_up(uv_work_t *work)
{
    struct hosts *hosts = work->data;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char *name = mem_strdup(hosts->settings->listen), *host = name, *end = strrchr(name, ':');
    *end = 0;
    if (*host == '[' && end[-1] == ']') {
        host++;
        end[-1] = 0;
    }
    hosts->looked_up = strcmp(host, "*") ? getaddrinfo(host, NULL, &hints, &list) : 0;
    if (!hosts->looked_up && list)
        freeaddrinfo(list);
    free(name);
}

static void looked_up(uv_work_t *work, int status)
{
    struct hosts *hosts = work->data;
    struct err err = ERR_INIT;
    (void)status;
    if (hosts->closing)
        return;
    int result = hosts->looked_up ? err_set(&err, -EINVAL, "cannot find the address of %s: %s", hosts->settings->listen,
                                            gai_strerror(hosts->looked_up))
                                  : try_to_listen(hosts, &err);
    if (result)
        wait_for_better(hosts, err.text);
    else
        listens_now(hosts);
}

static void on_again(struct deadline *deadline)
{
    struct hosts *hosts = CONTAINER_OF(deadline, struct hosts, listen_again);
    struct err err = ERR_INIT;
    if (!hosts->tls && hosts_make_tls(hosts, &err)) {
        wait_for_better(hosts, err.text);
        return;
    }
    hosts->look_up.data = hosts;
    int result = uv_queue_work(hosts->room.loop, &hosts->look_up, look_up, looked_up);
    assert(!result);
}

/* ---- the room's side ---- */

int hosts_listen(struct hosts *hosts, struct err *err)
{
    hosts->began_ms = wall_now().ms;
    struct err why = ERR_INIT;
    hosts->listen_again.fire = on_again;
    int result = hosts->settings->listen ? hosts_make_tls(hosts, &why) : 0;
    if (!result && hosts->settings->listen)
        result = try_to_listen(hosts, &why);
    if (!result) {
        await(hosts);
        return 0;
    }
    if (result == -EUCLEAN || (result == -EACCES && hosts->tls))
        return err_set(err, -EUCLEAN, "listen = %s: %s", hosts->settings->listen, why.text);
    wait_for_better(hosts, why.text);
    return 0;
}

const char *hosts_listen_failure(const struct hosts *hosts)
{
    return hosts->listen_failure;
}
