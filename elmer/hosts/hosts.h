/* hosts.h - the links of the workstations' rsds: who is up, what goes to them, what they say. The contract of this
 * room: hosts are known by their index in the core; texts that are handed out live until something happens to the host;
 * a peer lives until on_peer_gone(). What they say of jobs becomes events here, what they say of processes and for
 * users is handed on. Messages belong to whoever sends them, and are read before a call returns, unless a line says
 * otherwise. What a host does wrong is no error here: it is told, logged, and its link ends. */
#ifndef ELMER_HOSTS_HOSTS_H
#define ELMER_HOSTS_HOSTS_H

#include "elmer/engine/engine.h"
#include "lib/base/err.h"
#include "lib/net/tls.h"
#include "lib/wire/wire.h"

struct hosts;
struct tls_peer;
struct peer; /* a link, of a host or of one that wants to be one */

/* What the configuration says of a host. */
struct host_settings {
    char *name;
    char *address; /* of the host as its peers see it; NULL: as its rsd says */
    int *cpus;     /* [ncpus] increasing: those that Elmer may use; NULL: all that its rsd has */
    int ncpus;
    bool admin; /* its rsd is believed when it says that an administrator asks */
};

/* It must outlive the room. */
struct hosts_settings {
    const struct host_settings *hosts; /* [nhosts], in the order of the core's */
    size_t nhosts;
    const char *queue_host;  /* the name of the host that elmer runs on */
    const char *listen;      /* HOST:PORT for the rsds of other hosts; NULL: none */
    const char *pki;         /* directory of ca.crt, host.crt, host.key */
    const char *host_socket; /* of the local rsd */
    const char *host_user;   /* who beside root may be the local rsd */
    int64_t report_ms, heartbeat_ms, host_timeout_ms, kill_grace_ms;
    int64_t host_messages, host_messages_burst; /* that a host may send in a second, and at once */
};

struct hosts_callbacks {
    /* The host is up (again): the core has been told. */
    void (*on_up)(int host, void *data);
    /* Its link is gone; the clients that it relayed are, too. */
    void (*on_cut)(int host, void *data);
    /* What was unsent to it has gone. */
    void (*on_room)(int host, void *data);
    /* started start_failed line exited empty of a host that is up, and what a launcher has of its own. */
    void (*on_process)(int host, struct wire_message *message, void *data);
    /* relay, relay_closed or relay_room; on_queue_host: the host is the one that elmer runs on. Of any known host. */
    void (*on_relay)(int host, bool on_queue_host, struct wire_message *message, void *data);
    /* A certificate of our CA, for a configured host: 0, or negative with the sentence for its host: it was
     * revoked. Its dates are looked at here. */
    int (*judge)(const struct tls_peer *peer, struct err *err, void *data);
    /* The host has linked with the certificate of this serial. */
    void (*on_shown)(const char *serial, void *data);
    /* The message join of a peer without certificate (host -1), or renew of a host; move it away to keep it. */
    void (*on_certificate)(struct peer *peer, int host, struct wire_message *message, void *data);
    void (*on_peer_gone)(struct peer *peer, void *data);
    /* The hosts' address could not be listened on at the start, and now is; the certificates are there. May be NULL. */
    void (*on_listening)(void *data);
};

/* Open the sockets, and take the engine's orders. The hosts that the core awaits are given up if they do not come
 * within host_timeout. If the address for hosts cannot be used yet, they are awaited from the time on when it can.
 * 0, or negative with the text of err; -EUCLEAN: waiting would not help. hosts_destroy() is right after a failure, too.
 */
int hosts_create(const struct room *room, const struct hosts_settings *settings,
                 const struct hosts_callbacks *callbacks, void *data, struct hosts **hosts, struct err *err);
void hosts_close(struct hosts *hosts);   /* closes sockets and links; callbacks end */
void hosts_destroy(struct hosts *hosts); /* after the loop has ended; NULL: nothing */
/* Where there is much to say to many, in a later turn; what is said to one host stays in order. False when there is no
 * link: whoever needs the answer asks again. */
bool hosts_send(struct hosts *hosts, int host, const struct wire_message *message);
/* The end of this process is on disk: the host need not say it again (the message `taken`). */
void hosts_acknowledge(struct hosts *hosts, int host, uint64_t job, uint32_t attempt, uint32_t process);
/* The configuration is another one, and the core may have more hosts: hosts_settings say so already. relink: what is
 * said to a host when it links has changed, so all of them link again. */
void hosts_configured(struct hosts *hosts, bool relink);
/* So much waits to be sent to it that what is not urgent had better wait. */
bool hosts_congested(const struct hosts *hosts, int host);
/* The minor version that its link speaks; 0 without a link. */
unsigned hosts_minor(const struct hosts *hosts, int host);
/* Why other hosts cannot link yet, or NULL. */
const char *hosts_listen_failure(const struct hosts *hosts);
/* elmer's own certificate is a new one: for links from now on. 0, or negative with the text of err: the old one stays.
 */
int hosts_reload_tls(struct hosts *hosts, struct err *err);
/* The raw key of the CA that has signed the hosts' certificates, and the keys of their tickets; false: there is none.
 */
bool hosts_authority(const struct hosts *hosts, uint8_t key[TLS_AUTHORITY_BYTES]);
/* elmer did not run for so long: nobody's silence is counted for that time. */
void hosts_stalled(struct hosts *hosts, int64_t ms);

struct host_facts {
    const char *name;
    const char *address; /* IPv4 as its peers see it; "": not known */
    uint32_t launchers;  /* that it can run, see elmer/engine/launchers.h */
    bool name_loopback;  /* it resolves its own name to a loopback address */
    bool limits_memory;  /* it holds jobs to the memory that they have asked for */
};
struct host_facts hosts_facts(const struct hosts *hosts, int host);
/* The address of the queue host as that host sees it, "": not known. */
const char *hosts_local_address(const struct hosts *hosts, int host);
/* For `eadmin hosts`, without what is known of its certificate. */
void hosts_view(const struct hosts *hosts, int host, struct wire_host_view *view);
/* The serial of the certificate of its link, and since when there is that link (wall clock); NULL: none. */
const char *hosts_serial(const struct hosts *hosts, int host, int64_t *linked_ms);

/* Its certificate no longer counts: tell it and close every link of its name. lost: its jobs end at once, and this is
 * what their users read behind its name; NULL: they go on. */
void hosts_cut_off(struct hosts *hosts, int host, const char *lost, const char *text);

const char *hosts_peer_address(const struct peer *peer);
const char *hosts_peer_serial(const struct peer *peer); /* NULL: no certificate */
void hosts_peer_send(struct peer *peer, const struct wire_message *message);
void hosts_peer_close(struct peer *peer);
void hosts_peer_refuse(struct peer *peer, uint64_t id, const char *text); /* an error, and the end; not logged */
size_t hosts_count_linked(const struct hosts *hosts);
size_t hosts_count(const struct hosts *hosts); /* without those that are gone */

#endif
