/* tls.c - whose certificate opens a host's link. A peer without one is a joiner: what it may say is in
 * messages.def, and how long in hosts.c. */
#include "config.h"

#include "elmer/hosts/internal.h"

#include <errno.h>
#include <string.h>

#include "lib/net/tls.h"

/* Links of one name that have not said host_hello: a restart needs two, and one host shall not take everybody's room.
 */
enum { UNNAMED_MAX = 8 };

static int judge(const struct tls_peer *peer, void *data, struct err *err)
{
    struct hosts *hosts = data;
    struct err why = ERR_INIT;
    int result;
    if (hosts_index(hosts, peer->name) < 0)
        return err_set(err, -EPERM,
                       "the certificate is that of %s, which is not in the configuration: add the name to \"hosts = "
                       "...\" in elmer.conf and reload elmer, or join again with a token that names it",
                       peer->name);
    result = hosts->callbacks.judge ? hosts->callbacks.judge(peer, &why, hosts->data) : 0;
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

bool hosts_too_many(struct hosts *hosts, const char *name)
{
    int count = 0;
    for (const struct peer *peer = hosts->peers; peer; peer = peer->next)
        count += !peer->host && !peer->local && link_peer_name(peer->link) && !strcmp(link_peer_name(peer->link), name);
    return count >= UNNAMED_MAX;
}

char *hosts_wrong_name(const struct peer *peer, const char *name)
{
    const char *certified = link_peer_name(peer->link);
    if (peer->local || (certified && !strcmp(certified, name)))
        return NULL;
    return mem_format("its certificate is that of \"%s\": write name = %s into its rsd.conf, or join again under its "
                      "own name (eadmin token, rsd --join)",
                      certified ? certified : "nobody", certified ? certified : name);
}
