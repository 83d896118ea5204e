/* listen.c - the address for the hosts' links.
 *
 * At the start: certificates, then the address -> listening, and hosts of before are awaited. Where that fails although
 * nothing in the configuration is wrong (no certificates yet, the address is another's or not up yet, the name service
 * does not answer) elmer serves its own host meanwhile and tries again: WAITING, every RETRY_MS -> certificates -> the
 * name is looked up in a worker thread, since the name service may take long -> the address. It is said once, and
 * hosts_listen_failure() says it as long as it lasts. Hosts are awaited only from the moment on in which they can link:
 * until then nobody's silence means anything, and from then on new jobs wait once more until they have gathered. What
 * waiting does not mend ends elmer at the start; later nothing does.
 *
 * Listening, it follows its name, as the queue host may get another address: every RETRY_MS it looks whether this host
 * has the address still, which asks nobody; if not, and else once in LOOK_EVERY times, the name is looked up. Another
 * address is listened on before the old socket is closed; the links that there are live on until they end by
 * themselves. A name service that does not answer changes nothing while the old address is here. "*" has nothing to
 * follow, a number only has to be there.
 */
#include "config.h"

#include "elmer/hosts/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/net/address.h"
#include "lib/net/tls.h"

enum { RETRY_MS = 5000, LOOK_EVERY = 12 };

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

/* At a numeric address, or all; the socket of before is closed when this one is there. */
static int listen_at(struct hosts *hosts, const char *where, struct err *err)
{
    struct link_options options = hosts->links.options;
    struct listener *listener;
    options.tls = hosts->tls;
    int result = listener_create(hosts->room.loop, where, 0, hosts->links.max, &options, hosts->links.callbacks,
                                 hosts->links.accept_tcp, hosts, &listener, err);
    if (result)
        return result;
    if (hosts->tcp_listener)
        listener_close(hosts->tcp_listener);
    hosts->tcp_listener = listener;
    snprintf(hosts->listens_on, sizeof(hosts->listens_on), "%s", where);
    return 0;
}

static void look_again(struct hosts *hosts)
{
    if (*hosts->listens_on != '*')
        deadline_set(hosts->room.deadlines, &hosts->listen_again, engine_now_ms() + RETRY_MS);
}

static void wait_for_better(struct hosts *hosts, const char *why)
{
    look_again(hosts);
    if (hosts->listen_failure && strcmp(hosts->listen_failure, why) == 0)
        return;
    log_warning("other hosts cannot link: %s; elmer tries again every %d s", why, RETRY_MS / 1000);
    free(hosts->listen_failure);
    hosts->listen_failure = mem_strdup(why);
}

static void listens_now(struct hosts *hosts, const char *before)
{
    if (hosts->listen_failure)
        log_notice("other hosts can link now: elmer listens on %s", hosts->listens_on);
    else if (strcmp(before, hosts->listens_on) != 0)
        log_notice("elmer listens on %s now, which %s has become; it was %s", hosts->listens_on,
                   hosts->settings->listen, before);
    free(hosts->listen_failure);
    hosts->listen_failure = NULL;
    look_again(hosts);
    if (*before)
        return;
    struct event event = {.type = EVENT_GATHER, .host = -1};
    if (await(hosts))
        engine_event(hosts->room.engine, &event);
    if (hosts->callbacks.on_listening)
        hosts->callbacks.on_listening(hosts->data);
}

/* ---- trying again ---- */

static void look_up(uv_work_t *work)
{
    struct hosts *hosts = work->data;
    hosts->look_err = (struct err)ERR_INIT;
    hosts->looked_up = address_resolve(hosts->looks_for, hosts->keeps, hosts->found, &hosts->look_err);
}

static void looked_up(uv_work_t *work, int status)
{
    struct hosts *hosts = work->data;
    char before[ADDRESS_TEXT];
    (void)status;
    if (hosts->closing)
        return;
    bool here = hosts->tcp_listener && address_is_here(hosts->listens_on);
    int result = hosts->looked_up;
    snprintf(before, sizeof(before), "%s", hosts->listens_on);
    if (!result && strcmp(hosts->found, before) != 0)
        result = listen_at(hosts, hosts->found, &hosts->look_err);
    else if (!result && !here)
        result = err_set(&hosts->look_err, -EADDRNOTAVAIL,
                         "this host does not have the address %s any more, which is listen = %s: give the name its new "
                         "address in /etc/hosts or the DNS, or write another listen and restart elmer",
                         before, hosts->settings->listen);
    if (!result)
        listens_now(hosts, before);
    else if (here && hosts->looked_up)
        look_again(hosts);
    else
        wait_for_better(hosts, hosts->look_err.text);
}

static bool needs_look_up(struct hosts *hosts)
{
    if (!hosts->tcp_listener || hosts->listen_failure || !address_is_here(hosts->listens_on))
        return true;
    return ++hosts->looks % LOOK_EVERY == 0;
}

static void on_again(struct deadline *deadline)
{
    struct hosts *hosts = CONTAINER_OF(deadline, struct hosts, listen_again);
    struct err err = ERR_INIT;
    if (!hosts->tls && hosts_make_tls(hosts, &err)) {
        wait_for_better(hosts, err.text);
        return;
    }
    if (!needs_look_up(hosts)) {
        look_again(hosts);
        return;
    }
    hosts->look_up.data = hosts;
    snprintf(hosts->looks_for, sizeof(hosts->looks_for), "%s", hosts->settings->listen);
    snprintf(hosts->keeps, sizeof(hosts->keeps), "%s",
             hosts->tcp_listener && address_is_here(hosts->listens_on) ? hosts->listens_on : "");
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
        result = address_resolve(hosts->settings->listen, "", hosts->found, &why);
    if (!result && hosts->settings->listen)
        result = listen_at(hosts, hosts->found, &why);
    if (!result) {
        await(hosts);
        if (hosts->tcp_listener)
            look_again(hosts);
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
