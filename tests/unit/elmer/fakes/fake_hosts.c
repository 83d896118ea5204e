#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elmer/fakes/fake_hosts.h"

struct fake_hosts fake_hosts;

void fake_hosts_begin(void)
{
    fake_hosts = (struct fake_hosts){.cut_off = -1};
    for (int i = 0; i < FAKE_HOSTS; i++)
        fake_hosts.hosts[i].minor = WIRE_MINOR;
}

static const struct fake_host *of(const struct hosts *hosts, int host)
{
    assert_ptr_equal(hosts, FAKE_HOSTS_ROOM);
    assert_true(host >= 0 && host < fake_engine.nhosts);
    return &fake_hosts.hosts[host];
}

bool hosts_send(struct hosts *hosts, int host, const struct wire_message *message)
{
    if (!of(hosts, host)->linked)
        return false;
    heard_put(TO_HOST(host), message);
    return true;
}

bool hosts_authority(const struct hosts *hosts, uint8_t key[TLS_AUTHORITY_BYTES])
{
    assert_ptr_equal(hosts, FAKE_HOSTS_ROOM);
    memcpy(key, fake_hosts.authority, TLS_AUTHORITY_BYTES);
    return fake_hosts.has_authority;
}

bool hosts_congested(const struct hosts *hosts, int host)
{
    return of(hosts, host)->congested;
}

unsigned hosts_minor(const struct hosts *hosts, int host)
{
    return of(hosts, host)->linked ? of(hosts, host)->minor : 0;
}

int hosts_reload_tls(struct hosts *hosts, struct err *err)
{
    assert_ptr_equal(hosts, FAKE_HOSTS_ROOM);
    fake_hosts.reloads++;
    return fake_hosts.reload_code ? err_set(err, fake_hosts.reload_code, "cannot be read") : 0;
}

struct host_facts hosts_facts(const struct hosts *hosts, int host)
{
    return of(hosts, host)->facts;
}

const char *hosts_local_address(const struct hosts *hosts, int host)
{
    return of(hosts, host)->linked ? "10.0.0.1" : "";
}

void hosts_view(const struct hosts *hosts, int host, struct wire_host_view *view)
{
    *view = (struct wire_host_view){.host = fake_engine.hosts[host].name,
                                    .state = of(hosts, host)->linked ? "up" : "down",
                                    .mode = "rt",
                                    .drained_by = of(hosts, host)->drained_by,
                                    .drained_for = of(hosts, host)->drained_for,
                                    .valid_until_ms = -1};
}

const char *hosts_serial(const struct hosts *hosts, int host, int64_t *linked_ms)
{
    *linked_ms = of(hosts, host)->linked_ms;
    return of(hosts, host)->linked ? of(hosts, host)->serial : NULL;
}

size_t hosts_count_linked(const struct hosts *hosts)
{
    size_t count = 0;
    for (int i = 0; i < fake_engine.nhosts; i++)
        count += of(hosts, i)->linked;
    return count;
}

void hosts_cut_off(struct hosts *hosts, int host, const char *lost, const char *text)
{
    (void)of(hosts, host);
    fake_hosts.cut_off = host;
    snprintf(fake_hosts.lost, sizeof(fake_hosts.lost), "%s", lost ? lost : "");
    snprintf(fake_hosts.cut_off_text, sizeof(fake_hosts.cut_off_text), "%s", text);
}

/* ---- peers ---- */

const char *hosts_peer_address(const struct peer *peer)
{
    (void)peer;
    return "10.0.0.2";
}

const char *hosts_peer_serial(const struct peer *peer)
{
    return peer->serial;
}

void hosts_peer_send(struct peer *peer, const struct wire_message *message)
{
    if (!peer->closed)
        heard_put(TO_PEER(peer), message);
}

void hosts_peer_close(struct peer *peer)
{
    peer->closed = true;
}

void hosts_peer_refuse(struct peer *peer, uint64_t id, const char *text)
{
    struct wire_message message = {.type = WIRE_error, .id = id, .u.error = {.code = WIRE_CODE_REFUSED, .text = text}};
    hosts_peer_send(peer, &message);
    peer->refused = peer->closed = true;
}
