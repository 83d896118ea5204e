/* fake_hosts.h - in place of the room hosts: what is sent to a host or a peer is heard (heard.h). */
#ifndef TESTS_UNIT_ELMER_FAKES_FAKE_HOSTS_H
#define TESTS_UNIT_ELMER_FAKES_FAKE_HOSTS_H

#include "elmer/hosts/hosts.h"
#include "tests/unit/elmer/fakes/fake_engine.h"
#include "tests/unit/elmer/fakes/heard.h"

/* As links: of host h, and of peer p. */
#define TO_HOST(h) (LINKS + (h))
#define TO_PEER(p) (LINKS + FAKE_HOSTS + (p)->number)

struct peer {
    int number;
    const char *serial;
    bool closed, refused;
};

extern struct fake_hosts {
    struct fake_host {
        struct host_facts facts;
        bool linked, congested;
        unsigned minor;
        const char *serial; /* of its link's certificate */
        int64_t linked_ms;
        const char *drained_by, *drained_for; /* NULL: nobody has drained it */
    } hosts[FAKE_HOSTS];
    int reload_code;
    uint8_t authority[TLS_AUTHORITY_BYTES]; /* of the CA */
    bool has_authority;
    unsigned reloads;
    int cut_off;    /* the last host that was cut off; -1 */
    char lost[400]; /* "": it was not given up */
    char cut_off_text[400];
} fake_hosts;

void fake_hosts_begin(void);
#define FAKE_HOSTS_ROOM ((struct hosts *)&fake_hosts)

#endif
