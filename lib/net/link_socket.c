/* link_socket.c - what a link knows of its socket, and how TCP is set up. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/address.h"
#include "lib/net/link_internal.h"

enum { KEEPALIVE_IDLE_S = 10, KEEPALIVE_INTERVAL_S = 5, KEEPALIVE_COUNT = 3, USER_TIMEOUT_MS = 20000 };

int link_io_init(struct link *link, bool pipe, int fd)
{
    int result = pipe ? uv_pipe_init(link->loop, &link->io.pipe, 0) : uv_tcp_init(link->loop, &link->io.tcp);

    if (result == 0) {
        link->io.handle.data = link;
        link->io_open = true;
        link->handles++;
        if (fd >= 0)
            result = pipe ? uv_pipe_open(&link->io.pipe, fd) : uv_tcp_open(&link->io.tcp, fd);
    }
    if (result != 0 && fd >= 0)
        (void)close(fd);
    return result;
}

/* A host that vanishes without a word must be noticed, also while we have something to say to it. */
static void tune_tcp(struct link *link, int fd)
{
    int interval = KEEPALIVE_INTERVAL_S, count = KEEPALIVE_COUNT, timeout = USER_TIMEOUT_MS;

    (void)uv_tcp_nodelay(&link->io.tcp, 1);
    (void)uv_tcp_keepalive(&link->io.tcp, 1, KEEPALIVE_IDLE_S);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

/* Addresses are kept, because a broken socket no longer knows them. */
void link_note_addresses(struct link *link)
{
    struct sockaddr_storage address;
    int size = sizeof(address);
    uv_os_fd_t fd;

    if (link->io.handle.type != UV_TCP || uv_fileno(&link->io.handle, &fd) != 0)
        return;
    tune_tcp(link, fd);
    if (uv_tcp_getpeername(&link->io.tcp, (struct sockaddr *)&address, &size) == 0)
        address_name((const struct sockaddr *)&address, link->peer, sizeof(link->peer));
    size = sizeof(address);
    if (uv_tcp_getsockname(&link->io.tcp, (struct sockaddr *)&address, &size) == 0)
        address_name((const struct sockaddr *)&address, link->local, sizeof(link->local));
}

int link_peer_cred(const struct link *link, uid_t *uid, gid_t *gid, pid_t *pid)
{
    struct ucred cred;
    socklen_t size = sizeof(cred);
    uv_os_fd_t fd;

    if (!link->io_open || link->io.handle.type != UV_NAMED_PIPE || uv_fileno(&link->io.handle, &fd) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0)
        return -ENOTSUP;
    *uid = cred.uid;
    *gid = cred.gid;
    *pid = cred.pid;
    return 0;
}

const char *link_peer_address(const struct link *link)
{
    return link->peer;
}

const char *link_local_address(const struct link *link)
{
    return link->local;
}

const char *link_peer_capability(const struct link *link)
{
    return link->capability;
}

const char *link_peer_name(const struct link *link)
{
    const struct tls_peer *peer = link->tls ? tls_peer(link->tls) : NULL;

    return peer ? peer->name : NULL;
}

const char *link_peer_serial(const struct link *link)
{
    const struct tls_peer *peer = link->tls ? tls_peer(link->tls) : NULL;

    return peer ? peer->serial : NULL;
}

const char *link_ca_pem(const struct link *link)
{
    return link->tls ? tls_ca_pem(link->tls) : NULL;
}

uint64_t link_peer_counter(const struct link *link)
{
    return link->tls ? tls_peer_counter(link->tls) : 0;
}

bool link_was_refused(const struct link *link)
{
    return link->was_refused;
}

bool link_ready(const struct link *link)
{
    return link->state == LINK_READY;
}

unsigned link_minor(const struct link *link)
{
    return link->minor;
}

size_t link_unsent(const struct link *link)
{
    return link->io_open ? uv_stream_get_write_queue_size(&link->io.stream) : 0;
}
