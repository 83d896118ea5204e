/* hosts.h - the links of the workstations' rsds. */
#ifndef ELMER_HOSTS_HOSTS_H
#define ELMER_HOSTS_HOSTS_H

#include "elmer/daemon.h"
#include "lib/base/err.h"

struct hosts;
struct tls_peer;
struct peer; /* a link, of a host or of one that wants to be one */

struct hosts_callbacks {
    /* The host is up (again): the core has been told. */
    void (*on_up)(struct daemon *daemon, int host);
    /* Its link is gone; the clients that it relayed are, too. */
    void (*on_cut)(struct daemon *daemon, int host);
    /* started start_failed line exited lost opened open_failed empty pvm_* of a host that is up. */
    void (*on_job)(struct daemon *daemon, int host, struct wire_message *message);
    /* relay or relay_closed; on_queue_host: the host is the one that elmer runs on. Of any known host. */
    void (*on_relay)(struct daemon *daemon, int host, bool on_queue_host, struct wire_message *message);
    /* A certificate of our CA, for a configured host, valid now: 0, or negative with the sentence that its host gets
     * (it was revoked). May be NULL. */
    int (*judge)(struct daemon *daemon, const struct tls_peer *peer, struct err *err);
    /* The message join of a peer without certificate (host -1), or renew of a host; move it away to keep it. */
    void (*on_certificate)(struct daemon *daemon, struct peer *peer, int host, struct wire_message *message);
    void (*on_peer_gone)(struct daemon *daemon, struct peer *peer);
};

/* Open the sockets. The hosts are those of the core, in the order of the settings. */
int hosts_create(struct daemon *daemon, const struct hosts_callbacks *callbacks, struct hosts **hosts, struct err *err);
void hosts_close(struct hosts *hosts);   /* closes sockets and links; callbacks end */
void hosts_destroy(struct hosts *hosts); /* after the loop has ended */
/* Where there is much to say to many, in a later turn; what is said to one host stays in order. False when there is no
 * link: whoever needs the answer asks again. */
bool hosts_send(struct hosts *hosts, int host, const struct wire_message *message);
/* So much waits to be sent to it that what is not urgent had better wait. */
bool hosts_congested(const struct hosts *hosts, int host);
/* The minor version that its link speaks; 0 without a link. */
unsigned hosts_minor(const struct hosts *hosts, int host);
/* elmer's own certificate is a new one: for links from now on. On failure the old one stays. */
int hosts_reload_tls(struct hosts *hosts, struct err *err);
/* elmer did not run for so long: nobody's silence is counted for that time. */
void hosts_stalled(struct hosts *hosts, int64_t ms);
/* A host that was up, or has restored jobs, and does not come within host_timeout is given up. */
void hosts_await(struct hosts *hosts);

struct host_facts {
    const char *name;
    const char *address; /* IPv4 as its peers see it; "": not known */
    bool linked;
    bool known; /* has said hello since elmer was started */
    bool pvm;
    bool name_loopback;   /* it resolves its own name to a loopback address */
    const char *unusable; /* why it gets no new jobs though it is linked; NULL */
};
struct host_facts hosts_facts(const struct hosts *hosts, int host);
/* The address of the queue host as that host sees it, "": not known. */
const char *hosts_local_address(const struct hosts *hosts, int host);
/* For `eadmin hosts`; the texts live until something happens. */
void hosts_view(const struct hosts *hosts, int host, struct wire_host_view *view);
/* The serial of the certificate of its link, and since when there is that link (wall clock); NULL: none. */
const char *hosts_serial(const struct hosts *hosts, int host, int64_t *linked_ms);

/* Its certificate no longer counts: tell it and close every link of its name. give_up: its jobs end at once. */
void hosts_cut_off(struct hosts *hosts, int host, bool give_up, const char *text);

const char *hosts_peer_address(const struct peer *peer);
const char *hosts_peer_serial(const struct peer *peer); /* NULL: no certificate */
void hosts_peer_send(struct peer *peer, const struct wire_message *message);
void hosts_peer_close(struct peer *peer);
void hosts_peer_refuse(struct peer *peer, uint64_t id, const char *text); /* an error, and the end; not logged */
size_t hosts_count_linked(const struct hosts *hosts);

#endif
