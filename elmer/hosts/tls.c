/* tls.c - whose certificate opens a host's link. A peer without one is a joiner: what it may say is in
 * messages.def, and how long in hosts.c. */
#include "config.h"

#include "elmer/hosts/internal.h"

#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/tls.h"

/* Links of one name that have not said host_hello: a restart needs two, and one host shall not take everybody's room.
 */
enum { UNNAMED_MAX = 8, PUT_OFF_MS = 86400000 };

/* It lives. But nobody sets a clock that is wrong for a day, and then it is the certificate. */
static void put_off_its_end(struct host *host)
{
    if (host->peer || !host->deadline.slot || engine_now_ms() - host->heard_ms > PUT_OFF_MS)
        return;
    host->silent_since_ms = engine_now_ms();
    host_arm(host, host->silent_since_ms + host->hosts->settings->host_timeout_ms);
}

/* A certificate that elmer has passed on and nobody has revoked, but by this clock its time is not now. One that begins
 * later was made when this clock said more than it does now, so it is this clock that is wrong, and nothing is gained
 * by refusing. One that has ended is refused; but this clock may be ahead, and the host is alive, so its jobs do not
 * end for that. */
static int judge_time(struct host *host, const struct tls_peer *peer, struct err *why)
{
    if (wall_now().ms > peer->not_after.ms) {
        put_off_its_end(host);
        return err_set(why, -EPERM, "%s", peer->untimely);
    }
    if (hosts_may_log(host->hosts))
        log_warning("host=%s is let in although %s", settings_of(host)->name, peer->untimely);
    return 0;
}

static int judge(const struct tls_peer *peer, void *data, struct err *err)
{
    struct hosts *hosts = data;
    struct err why = ERR_INIT;
    int result, index = hosts_index(hosts, peer->name);
    if (index < 0)
        return err_set(err, -EPERM,
                       "the certificate is that of %s, which is not in the configuration: add the name to \"hosts = "
                       "...\" in elmer.conf and reload elmer, or join again with a token that names it",
                       peer->name);
    result = hosts->callbacks.judge(peer, &why, hosts->data);
    if (!result && peer->untimely)
        result = judge_time(hosts->hosts[index], peer, &why);
    if (result)
        hosts_note_refused(hosts, peer->name, why.text);
    return result ? err_set(err, result, "%s", why.text) : 0;
}

int hosts_make_tls(struct hosts *hosts, struct err *err)
{
    const struct hosts_settings *settings = hosts->settings;
    struct err why = ERR_INIT;
    if (!settings->listen)
        return 0;
    int result = tls_context_server(settings->pki, judge, hosts, &hosts->tls, &why);
    if (result == -ENOENT)
        return err_set(err, result,
                       "listen = %s needs a certificate, and there is none (%s): make the cluster's CA with \"eadmin "
                       "init\" as root, or leave \"listen\" out",
                       settings->listen, why.text);
    return result ? err_set(err, result == -EACCES ? result : -EUCLEAN,
                            "the certificate for listen = %s cannot be used: %s", settings->listen, why.text)
                  : 0;
}

int hosts_reload_tls(struct hosts *hosts, struct err *err)
{
    return hosts->tls ? tls_context_reload(hosts->tls, err) : 0;
}

bool hosts_authority(const struct hosts *hosts, uint8_t key[TLS_AUTHORITY_BYTES])
{
    return hosts->tls && tls_context_authority(hosts->tls, key);
}

bool hosts_too_many(struct hosts *hosts, const char *name)
{
    int count = 0;
    for (const struct peer *peer = hosts->peers; peer; peer = peer->next)
        count +=
            !peer->host && !peer->local && link_peer_name(peer->link) && strcmp(link_peer_name(peer->link), name) == 0;
    return count >= UNNAMED_MAX;
}

char *hosts_wrong_name(const struct peer *peer, const char *name)
{
    const char *certified = link_peer_name(peer->link);
    if (peer->local || (certified && strcmp(certified, name) == 0))
        return NULL;
    return mem_format("its certificate is that of \"%s\": write name = %s into its rsd.conf, or join again under its "
                      "own name (eadmin token, rsd --join)",
                      certified ? certified : "nobody", certified ? certified : name);
}
