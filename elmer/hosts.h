/* hosts.h - the links of the workstations' rsds. */
#ifndef ELMER_DAEMON_HOSTS_H
#define ELMER_DAEMON_HOSTS_H

#include "elmer/daemon.h"
#include "libelmer/base/err.h"

struct hosts;

struct hosts_callbacks {
    /* The host is up (again): the core has been told. */
    void (*on_up)(struct daemon *daemon, int host);
    /* Its link is gone; the clients that it relayed are, too. */
    void (*on_cut)(struct daemon *daemon, int host);
    /* started start_failed line exited lost opened open_failed empty pvm_* of a host that is up. */
    void (*on_job)(struct daemon *daemon, int host, struct wire_message *message);
    /* relay or relay_closed; on_queue_host: the host is the one that elmer runs on. Of any known host. */
    void (*on_relay)(struct daemon *daemon, int host, bool on_queue_host, struct wire_message *message);
};

/* Open the sockets. The hosts are those of the core, in the order of the settings. */
int hosts_create(struct daemon *daemon, const struct hosts_callbacks *callbacks, struct hosts **hosts, struct err *err);
void hosts_close(struct hosts *hosts);   /* closes sockets and links; callbacks end */
void hosts_destroy(struct hosts *hosts); /* after the loop has ended */
/* False when there is no link: whoever needs the answer asks again. */
bool hosts_send(struct hosts *hosts, int host, const struct wire_message *message);
/* So much waits to be sent to it that what is not urgent had better wait. */
bool hosts_congested(const struct hosts *hosts, int host);
/* A host with restored jobs that does not come within host_timeout is given up. */
void hosts_await(struct hosts *hosts);

struct host_facts {
    const char *name;
    const char *address; /* IPv4 as its peers see it; "": not known */
    bool linked;
    bool known; /* has said hello since elmer was started */
    bool pvm;
    bool name_loopback;   /* it resolves its own name to a loopback address */
    const char *unusable; /* why it gets no jobs though it is linked; NULL */
};
struct host_facts hosts_facts(const struct hosts *hosts, int host);
/* The address of the queue host as that host sees it, "": not known. */
const char *hosts_local_address(const struct hosts *hosts, int host);
size_t hosts_count_linked(const struct hosts *hosts);

#endif
