#include "config.h"

#include "libelmer/net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libelmer/base/str.h"

static int parse_path(const char *text, struct address *address, struct err *err)
{
    struct sockaddr_un un;

    if (strlen(text) >= sizeof un.sun_path)
        return err_set(err, -EINVAL, "%s: the path of a socket has at most %zu bytes", text, sizeof un.sun_path - 1);
    *address = (struct address){.path = true};
    return 0;
}

int address_parse(const char *text, struct address *address, struct err *err)
{
    const char *colon = strrchr(text, ':'), *host = text;
    size_t length;
    uint64_t port;

    if (text[0] == '/')
        return parse_path(text, address, err);
    *address = (struct address){0};
    if (colon == NULL || colon == text || !str_to_u64(colon + 1, &port) || port > 65535 || strlen(colon + 1) > 5)
        return err_set(err, -EINVAL,
                       "\"%.200s\" is not an address: write HOST:PORT (such as ws1:7700), or /path of a socket", text);
    length = (size_t)(colon - text);
    if (host[0] == '[' && length > 2 && host[length - 1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(host, ':', length) != NULL) {
        return err_set(err, -EINVAL, "\"%.200s\": write an IPv6 address in brackets: [%.*s]:%s", text, (int)length,
                       host, colon + 1);
    }
    if (length >= sizeof address->host)
        return err_set(err, -EINVAL, "the host name is longer than %zu bytes", sizeof address->host - 1);
    memcpy(address->host, host, length);
    memcpy(address->port, colon + 1, strlen(colon + 1));
    return 0;
}

void address_name(const struct sockaddr *address, char *out, unsigned size)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;

    out[0] = '\0';
    if (address->sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, out, size);
    } else if (address->sa_family == AF_INET6) {
        /* An IPv4 peer of a socket that takes both. */
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
            (void)inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], out, size);
        else
            (void)inet_ntop(AF_INET6, &in6->sin6_addr, out, size);
    }
}

/* Does somebody accept on this socket file? */
static bool path_is_live(const struct sockaddr_un *un)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool live;

    if (fd < 0)
        return true;
    live = connect(fd, (const struct sockaddr *)un, sizeof *un) == 0 || errno != ECONNREFUSED;
    (void)close(fd);
    return live;
}

static int bind_once(int fd, const struct sockaddr_un *un)
{
    return bind(fd, (const struct sockaddr *)un, sizeof *un) == 0 ? 0 : -errno;
}

static int bind_path(const char *path, unsigned mode, int *out, struct err *err)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct stat st;
    int code, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_set(err, -errno, "%s: socket: %s", path, strerror(errno));
    memcpy(un.sun_path, path, strlen(path));
    code = bind_once(fd, &un);
    if (code == -EADDRINUSE && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !path_is_live(&un)) {
        (void)unlink(path);
        code = bind_once(fd, &un);
    }
    /* Nobody can connect before listen(2), so the mode is right from the beginning. */
    if (code == 0 && chmod(path, mode) != 0)
        code = -errno;
    if (code == 0) {
        *out = fd;
        return 0;
    }
    (void)close(fd);
    if (code == -EADDRINUSE)
        return err_set(err, code, "%s: another process serves this socket; stop it first", path);
    return err_set(err, code, "%s: cannot make the socket: %s", path, strerror(-code));
}

static int bind_tcp(const char *text, const struct addrinfo *info, int *out, struct err *err)
{
    int one = 1, zero = 0, code;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        (info->ai_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero) == 0) &&
        bind(fd, info->ai_addr, info->ai_addrlen) == 0) {
        *out = fd;
        return 0;
    }
    code = -errno;
    if (fd >= 0)
        (void)close(fd);
    return err_set(err, code, "%s: cannot listen there: %s", text, strerror(-code));
}

static bool is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;

    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* Names are resolved once, here, where a daemon starts and may block. A host's own name that /etc/hosts gives 127.0.1.1 (Debian does so)
 * would listen where no other host reaches it: refused, unless the address is written as a number or as localhost. */
static int resolve_to_bind(const char *text, const struct address *address, struct addrinfo **info, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    int code = getaddrinfo(address->host, address->port, &hints, info);

    if (code == 0)
        return 0;
    hints.ai_flags &= ~AI_NUMERICHOST;
    code = getaddrinfo(address->host, address->port, &hints, info);
    if (code != 0)
        return err_set(err, -EINVAL, "\"%.200s\": cannot resolve this name to listen on it: %s; write an address, or *:PORT", text,
                       gai_strerror(code));
    if (!is_loopback((*info)->ai_addr) || strcmp(address->host, "localhost") == 0)
        return 0;
    freeaddrinfo(*info);
    return err_set(err, -EINVAL,
                   "\"%.200s\": this name resolves to a loopback address, which no other host reaches; correct /etc/hosts, or write the "
                   "address that the others see, or *:PORT",
                   text);
}

int address_bind(const char *text, unsigned mode, int *fd, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *info;
    struct address address;
    struct err ignored = ERR_INIT;
    bool any;
    int code = address_parse(text, &address, err);

    if (code != 0)
        return code;
    if (address.path)
        return bind_path(text, mode, fd, err);
    any = strcmp(address.host, "*") == 0;
    if (any)
        memcpy(address.host, "::", sizeof "::");
    code = resolve_to_bind(text, &address, &info, err);
    if (code != 0)
        return code;
    code = bind_tcp(text, info, fd, any ? &ignored : err);
    freeaddrinfo(info);
    if (code == 0 || !any)
        return code;
    /* No IPv6 on this host. */
    if (getaddrinfo("0.0.0.0", address.port, &hints, &info) != 0)
        return err_set(err, -EINVAL, "\"%.200s\": not an address", text);
    code = bind_tcp(text, info, fd, err);
    freeaddrinfo(info);
    return code;
}
