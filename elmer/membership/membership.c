#include "config.h"

#include "elmer/membership/membership.h"

#include <stdlib.h>

#include "elmer/membership/certificates.h"
#include "elmer/membership/join.h"
#include "elmer/membership/renewal_schedule.h"

struct membership {
    struct certificates *certificates;
    struct joins *joins;
    struct renewals *renewals;
};

int membership_create(const struct room *room, const struct membership_settings *settings, struct membership **out,
                      struct err *err)
{
    struct membership *membership = mem_zalloc(sizeof(*membership));
    *out = membership;
    int result = certificates_create(room, &membership->certificates, err);
    if (result)
        return result;
    membership->joins = joins_create(room, settings, membership->certificates);
    membership->renewals = renewals_create(room, settings, membership->certificates);
    return 0;
}

void membership_begin(struct membership *membership, struct hosts *hosts)
{
    joins_begin(membership->joins, hosts);
    renewals_begin(membership->renewals, hosts);
}

void membership_connect(struct membership *membership, void (*add_host)(const char *name, void *data), void *data)
{
    joins_connect(membership->joins, add_host, data);
}

void membership_configured(struct membership *membership)
{
    certificates_make_room(membership->certificates);
    renewals_make_room(membership->renewals);
}

void membership_certificate_came(struct membership *membership)
{
    renewals_recover(membership->renewals);
}

void membership_close(struct membership *membership)
{
    if (!membership)
        return;
    renewals_close(membership->renewals);
    joins_close(membership->joins);
}

void membership_destroy(struct membership *membership)
{
    if (!membership)
        return;
    joins_destroy(membership->joins);
    renewals_destroy(membership->renewals);
    certificates_destroy(membership->certificates);
    free(membership);
}

void membership_ask(struct membership *membership, struct peer *peer, int host, struct wire_message *message)
{
    joins_ask(membership->joins, peer, host, message);
}

void membership_peer_gone(struct membership *membership, struct peer *peer)
{
    joins_peer_gone(membership->joins, peer);
}

int membership_judge(const struct membership *membership, const char *host, const char *serial, struct err *err)
{
    return certificates_judge(membership->certificates, host, serial, err);
}

void membership_shown(struct membership *membership, const char *serial)
{
    certificates_shown(membership->certificates, serial);
}

size_t membership_revoke(struct membership *membership, const char *host)
{
    joins_removed(membership->joins, host);
    return certificates_revoke(membership->certificates, host, NULL);
}

const struct certificate *membership_newest(const struct membership *membership, int host)
{
    return certificates_newest(membership->certificates, host);
}
