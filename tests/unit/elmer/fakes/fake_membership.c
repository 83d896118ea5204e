#include "config.h"

#include "tests/unit/elmer/fakes/fake_membership.h"

#include <stdio.h>
#include <string.h>

struct fake_membership fake_membership;

const struct certificate *membership_newest(const struct membership *membership, int host)
{
    (void)membership;
    return host < 4 && *fake_membership.newest[host].serial ? &fake_membership.newest[host] : NULL;
}

size_t membership_revoke(struct membership *membership, const char *host)
{
    size_t count = 0;
    (void)membership;
    snprintf(fake_membership.revoked, sizeof(fake_membership.revoked), "%s", host);
    for (int i = 0; i < 4; i++) {
        if (strcmp(fake_membership.newest[i].host, host) != 0)
            continue;
        count += *fake_membership.newest[i].serial != 0;
        *fake_membership.newest[i].serial = 0;
    }
    return count;
}
