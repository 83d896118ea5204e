/* certificates.c - one that elmer does not know is refused, although the CA has signed it: it may be of a store that
 * was lost, and then nobody can say whether it was revoked. */
#include "config.h"

#include "elmer/membership/certificates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/store/store.h"
#include "lib/memory/map.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

struct certificates {
    struct engine *engine;
    struct map by_serial;
    struct certificate **newest; /* [nhosts] */
    size_t nhosts;
};

/* Serials are random: their first digits tell them apart, and find() looks at all of them. */
static uint64_t key_of(const char *serial)
{
    char digits[16] = "";
    memcpy(digits, serial, strnlen(serial, sizeof(digits) - 1));
    return strtoull(digits, NULL, 16);
}

const struct certificate *certificates_find(const struct certificates *c, const char *serial)
{
    const struct certificate *found = map_get(&c->by_serial, key_of(serial));
    return found && strcmp(found->serial, serial) == 0 ? found : NULL;
}

static void note_newest(struct certificates *c, struct certificate *certificate)
{
    int host = core_host_by_name(engine_core(c->engine), certificate->host);
    if (host < 0 || certificate->revoked_ms)
        return;
    if (!c->newest[host] || c->newest[host]->end_ms <= certificate->end_ms)
        c->newest[host] = certificate;
}

static void remember(const struct certificate *certificate, void *data)
{
    struct certificates *c = data;
    struct certificate *copy = mem_zalloc(sizeof(*copy));
    *copy = *certificate;
    free(map_remove(&c->by_serial, key_of(copy->serial)));
    map_put(&c->by_serial, key_of(copy->serial), copy);
    note_newest(c, copy);
}

static void find_newest(struct certificates *c, int host)
{
    size_t cursor = 0;
    c->newest[host] = NULL;
    for (struct certificate *each; (each = map_next(&c->by_serial, &cursor));)
        if (core_host_by_name(engine_core(c->engine), each->host) == host)
            note_newest(c, each);
}

/* A new host may be one of before: taken out of the configuration, and put back after a restart. */
void certificates_make_room(struct certificates *c)
{
    size_t before = c->nhosts, now = (size_t)engine_host_count(c->engine);
    c->newest = mem_exactly(c->newest, before, now, sizeof(*c->newest));
    c->nhosts = now;
    for (size_t host = before; host < now; host++)
        find_newest(c, (int)host);
}

int certificates_create(const struct room *room, struct certificates **out, struct err *err)
{
    struct certificates *c = mem_zalloc(sizeof(*c));
    c->engine = room->engine;
    certificates_make_room(c);
    *out = c;
    return store_load_certificates(engine_store(room->engine), remember, c, err);
}

void certificates_destroy(struct certificates *c)
{
    size_t cursor = 0;
    if (!c)
        return;
    for (struct certificate *each; (each = map_next(&c->by_serial, &cursor));)
        free(each);
    map_fini(&c->by_serial);
    free(c->newest);
    free(c);
}

void certificates_add(struct certificates *c, const struct certificate *certificate)
{
    remember(certificate, c);
    engine_put_certificate(c->engine, certificate);
}

static void revoke_one(struct certificates *c, struct certificate *certificate)
{
    certificate->revoked_ms = wall_now().ms;
    engine_put_certificate(c->engine, certificate);
}

size_t certificates_revoke(struct certificates *c, const char *host, const char *except)
{
    size_t cursor = 0, count = 0;
    int index = core_host_by_name(engine_core(c->engine), host);
    for (struct certificate *each; (each = map_next(&c->by_serial, &cursor));) {
        if (each->revoked_ms || strcmp(each->host, host) != 0 || (except && strcmp(each->serial, except) == 0))
            continue;
        revoke_one(c, each);
        count++;
    }
    if (index >= 0)
        find_newest(c, index);
    return count;
}

void certificates_shown(struct certificates *c, const char *serial)
{
    const struct certificate *shown = certificates_find(c, serial);
    size_t cursor = 0, count = 0;
    if (!shown)
        return;
    for (struct certificate *each; (each = map_next(&c->by_serial, &cursor));) {
        if (each->revoked_ms || strcmp(each->host, shown->host) != 0 || each->issued_ms >= shown->issued_ms)
            continue;
        revoke_one(c, each);
        count++;
    }
    if (count)
        log_notice("host=%s has linked with its new certificate: the one before counts no more", shown->host);
    if (count && core_host_by_name(engine_core(c->engine), shown->host) >= 0)
        find_newest(c, core_host_by_name(engine_core(c->engine), shown->host));
}

const struct certificate *certificates_newest(const struct certificates *c, int host)
{
    return c->newest[host];
}

int certificates_judge(const struct certificates *c, const char *host, const char *serial, struct err *err)
{
    const struct certificate *found = certificates_find(c, serial);
    char when[32];
    if (!found || strcmp(found->host, host) != 0)
        return err_set(err, -EACCES,
                       "the certificate of %s is not one that this elmer has passed on: join again, with a token of "
                       "`eadmin token` on the queue host",
                       host);
    if (!found->revoked_ms)
        return 0;
    wall_format((struct wall){found->revoked_ms}, when, sizeof(when));
    return err_set(err, -EACCES,
                   "the certificate of %s was revoked at %s (the host was removed, joined again, or has shown a newer "
                   "one): join again, with a token of `eadmin token` on the queue host",
                   host, when);
}
