/* internal.h - what the files of this room share. */
#ifndef ELMER_HOSTS_INTERNAL_H
#define ELMER_HOSTS_INTERNAL_H

#include "elmer/hosts/hosts.h"
#include "lib/base/container.h"
#include "lib/base/log.h"
#include "lib/net/address.h"
#include "lib/net/link.h"
#include "lib/quota/bucket.h"

enum {
    HELLO_MS = 10000,
    CHALLENGE_MS = 2000,
    OUT_MAX = 64 << 20,
    CONGESTED = 256 << 10,
    LOG_BURST = 30,
    LOG_WINDOW_MS = 10000,
    REFUSED_SIZE = 600,
    SUSPECT_BEATS = 2, /* heartbeats without an answer */
    LACKS = 4,         /* of what a host says, each up to ... */
    LACK_SIZE = 200    /* ... because they are shown for all hosts together */
};

/* The last ones that were sent over a link, by id; id 0 is host_welcome. */
enum { ASKED_KEPT = 16 };
struct asked {
    uint64_t id;
    int64_t sent_ms; /* CLOCK_BOOTTIME; 0: not used */
};

struct peer {
    struct hosts *hosts;
    struct link *link;
    struct host *host;         /* NULL before its hello is accepted */
    struct host *challenged;   /* whose place it wants */
    struct wire_message hello; /* of a challenger */
    struct deadline deadline;  /* for the hello, or for the challenge */
    struct asked asked[ASKED_KEPT];
    unsigned nasked;
    bool local;    /* by the unix socket */
    bool any_host; /* it is whichever host it says: root, or elmer's own user, who have elmer anyway */
    bool closing;
    struct peer *next, **link_of_list;
};

/* To be shown; -1: not known. */
struct host_load {
    double busy, jobs; /* means of the processors that Elmer uses: busy, and of that by its jobs */
    int64_t memory_bytes, memory_free_bytes;
};
#define LOAD_UNKNOWN ((struct host_load){-1, -1, -1, -1})

struct host {
    struct hosts *hosts;
    int index;
    struct peer *peer, *challenger;
    int64_t heard_ms;
    int64_t silent_since_ms;  /* the same, later by the time in which elmer did not run */
    struct deadline deadline; /* with a link: next heartbeat; else: give it up */
    bool name_loopback;
    char boot[65], address[65], version[33], mode[9], mode_reason[600];
    int64_t linked_ms; /* wall clock */
    char *unusable;
    char *refused; /* why a link of it was refused, since it was linked; NULL: none was */
    int64_t refused_ms;
    char reason[1024];  /* as it was shown last */
    char *lacks[LACKS]; /* [nlacks] what jobs have to do without there */
    size_t nlacks;
    bool limits_memory; /* it holds jobs to the memory that they have asked for */
    int *cpus;          /* [ncpus] those that Elmer uses */
    int *places;        /* [ncpus] their index in the host's reports */
    int ncpus;
    size_t reported;        /* CPUs in a report */
    struct host_load load;  /* of the last one */
    struct bucket messages; /* rate.c: over all its links */
    int64_t shut_out_until_ms;
    struct waiting *waiting, **last_waiting; /* pace.c: what goes to it in the next turns */
    struct host *next_paced;
    bool paced; /* in the list of those */
};

struct hosts {
    struct room room;
    const struct hosts_settings *settings;
    struct hosts_callbacks callbacks;
    void *data; /* of the callbacks */
    struct listener *unix_listener, *tcp_listener;
    struct tls_context *tls; /* NULL: TCP is not served, or not yet */
    struct {                 /* that are accepted */
        struct link_options options;
        const struct link_callbacks *callbacks;
        listener_accept accept_tcp;
        unsigned max;
    } links;
    char *listen_failure;          /* why TCP is not served yet, or not any more */
    char listens_on[ADDRESS_TEXT]; /* numeric, or "*:PORT"; "": nowhere */
    struct deadline listen_again;
    unsigned looks;
    uv_work_t look_up; /* reads the next two and fills the three after them, which nobody else touches meanwhile */
    char looks_for[300], keeps[ADDRESS_TEXT];
    int looked_up;
    char found[ADDRESS_TEXT];
    struct err look_err;
    struct host **hosts; /* [nhosts] */
    int nhosts;
    struct peer *peers;
    uid_t host_uid; /* of the local rsd beside root */
    uint64_t pings;
    struct host *paced, **last_paced; /* those for which something waits, or did before their link was cut */
    struct deadline pace;
    uint64_t turn; /* of the loop, */
    int sent;      /* and messages in it */
    struct log_limit limit;
    struct log_repeats repeats; /* of those that are refused, and try again */
    bool closing;
    int64_t began_ms; /* wall clock */
};

/* Never kept: they move when a reload brings more hosts. */
static inline const struct host_settings *settings_of(const struct host *host)
{
    return &host->hosts->settings->hosts[host->index];
}

enum core_host_state host_state(const struct host *host);
void host_arm(struct host *host, int64_t at_ms);
/* Tells the core that it is down, and for how long nothing was heard; what: as in the event. */
void host_tell_down(struct host *host, const char *what);
void host_cut(struct host *host); /* its link is gone */
/* admin.c: the core says that it was retired and has nothing any more. */
void hosts_on_gone(int index, void *data);
/* The index of a host of the cluster; -1: there is none of this name, or not any more. */
int hosts_index(const struct hosts *hosts, const char *name);
void peer_ping(struct peer *peer);
void peer_asked(struct peer *peer, uint64_t id); /* now */
void peer_drop(struct peer *peer, const char *text);
/* Log, send an error, close. */
void peer_refuse(struct peer *peer, uint64_t id, const char *code, const char *text);
/* admin.c: a link that shows a certificate of this host is not let in; name NULL: it shows none. */
void hosts_note_refused(struct hosts *hosts, const char *name, const char *why);
bool hosts_may_log(struct hosts *hosts);

/* hello.c: a peer says who it is. */
void hello_received(struct peer *peer, struct wire_message *message);
void hello_accept_challenger(struct host *host); /* it takes the host's place */
void hello_fend_off(struct host *host);          /* it does not: the old link has shown that it lives */
void hello_replace(struct host *host);           /* the old link is closed */

/* rate.c: the host may say one more message. false: it has been refused and is disconnected. */
bool rate_message(struct peer *peer, const struct wire_message *message);
/* The same for a link. */
bool rate_hello(struct peer *peer, struct host *host, const struct wire_message *message);
/* It invents jobs, and is refused and disconnected. */
void rate_too_many_jobs(struct host *host);

/* pace.c: what waits goes out, as much of it as a turn may. */
void hosts_pace_go_on(struct deadline *deadline);
void hosts_pace_drop(struct host *host); /* with its link */

/* orders.c: the engine's orders are taken here. */
void hosts_take_orders(struct hosts *hosts);
/* The host is up: say which of the jobs that it has needs more than its rsd can do. */
void hosts_warn_of_limits(const struct host *host, const struct wire_host_hello *hello);
/* jobs.c: what a host that is up says of its jobs. */
void hosts_on_job(struct host *host, struct wire_message *message);

/* listen.c: listen for hosts, now or later; negative: that would never work. */
int hosts_listen(struct hosts *hosts, struct err *err);

/* tls.c: read the certificates if TCP is served with TLS. */
int hosts_make_tls(struct hosts *hosts, struct err *err);
/* This name has enough links without host_hello. */
bool hosts_too_many(struct hosts *hosts, const char *name);
/* Why a peer may not be the host: malloc'd, the rest of a sentence. NULL: it may. */
char *hosts_wrong_name(const struct peer *peer, const char *name);

#endif
