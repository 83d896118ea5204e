#include "config.h"

#include "lib/net/address.h"

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

#include "lib/base/str.h"

static int parse_path(const char *text, struct address *address, struct err *err)
{
    struct sockaddr_un un;

    if (strlen(text) >= sizeof(un.sun_path))
        return err_set(err, -EINVAL, "%s: the path of a socket has at most %zu bytes", text, sizeof(un.sun_path) - 1);
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
    if (!colon || colon == text || !str_to_u64(colon + 1, &port) || port > 65535 || strlen(colon + 1) > 5)
        return err_set(err, -EINVAL,
                       "\"%.200s\" is not an address: write HOST:PORT (such as ws1:7110), or /path of a socket", text);
    length = (size_t)(colon - text);
    if (host[0] == '[' && length > 2 && host[length - 1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(host, ':', length)) {
        return err_set(err, -EINVAL,
                       "\"%.200s\" is not an address: write HOST:PORT (such as ws1:7110), and an IPv6 address in "
                       "brackets, such as [fd00::1]:7110",
                       text);
    }
    if (length >= sizeof(address->host))
        return err_set(err, -EINVAL, "the host name is longer than %zu bytes", sizeof(address->host) - 1);
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
    live = connect(fd, (const struct sockaddr *)un, sizeof(*un)) == 0 || errno != ECONNREFUSED;
    (void)close(fd);
    return live;
}

static int bind_once(int fd, const struct sockaddr_un *un)
{
    return bind(fd, (const struct sockaddr *)un, sizeof(*un)) == 0 ? 0 : -errno;
}

static int bind_path(const char *path, unsigned mode, int *out, struct err *err)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct stat st;
    int result, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_set(err, -errno, "%s: socket: %s", path, strerror(errno));
    memcpy(un.sun_path, path, strlen(path));
    result = bind_once(fd, &un);
    if (result == -EADDRINUSE && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !path_is_live(&un)) {
        (void)unlink(path);
        result = bind_once(fd, &un);
    }
    /* Nobody can connect before listen(2), so the mode is right from the beginning. */
    if (result == 0 && chmod(path, mode) != 0)
        result = -errno;
    if (result == 0) {
        *out = fd;
        return 0;
    }
    (void)close(fd);
    if (result == -EADDRINUSE)
        return err_set(err, result, "%s: another process serves this socket; stop it first", path);
    return err_set(err, result, "%s: cannot make the socket: %s", path, strerror(-result));
}

static int bind_tcp(const char *text, const struct sockaddr *address, socklen_t size, int *out, struct err *err)
{
    int one = 1, zero = 0, result;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        (address->sa_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) == 0) &&
        bind(fd, address, size) == 0) {
        *out = fd;
        return 0;
    }
    result = -errno;
    if (fd >= 0)
        (void)close(fd);
    return err_set(err, result, "%s: cannot listen there: %s", text, strerror(-result));
}

static bool is_loopback(const struct sockaddr *address)
{
    char name[64];

    address_name(address, name, sizeof(name));
    return strncmp(name, "127.", 4) == 0 || strcmp(name, "::1") == 0;
}

/* The address of a name that other hosts reach: Debian gives a host's own name 127.0.1.1. */
static const struct addrinfo *choose(const struct addrinfo *list, const char *keep, bool any_will_do)
{
    char name[INET6_ADDRSTRLEN];

    for (const struct addrinfo *one = list; *keep && one; one = one->ai_next) {
        address_name(one->ai_addr, name, sizeof(name));
        if (strcmp(name, keep) == 0)
            return one;
    }
    if (any_will_do)
        return list;
    while (list && is_loopback(list->ai_addr))
        list = list->ai_next;
    return list;
}

/* flags: AI_NUMERICHOST, or 0 for a name; the first one fails without a word. keep: see address_resolve(). */
static int find(const char *text, const char *host, const char *port, int flags, const char *keep,
                struct sockaddr_storage *found, socklen_t *size, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV | flags};
    struct addrinfo *list;
    const struct addrinfo *chosen;
    int code = getaddrinfo(host, port, &hints, &list), result = 0;

    if (code != 0 && flags == 0)
        return err_set(err, -EINVAL, "cannot find the address of %s: %s", text, gai_strerror(code));
    if (code != 0)
        return -EINVAL;
    chosen = choose(list, keep, flags != 0 || strcmp(host, "localhost") == 0);
    if (chosen) {
        memcpy(found, chosen->ai_addr, chosen->ai_addrlen);
        *size = chosen->ai_addrlen;
    } else {
        result =
            err_set(err, -EADDRNOTAVAIL,
                    "%s: the name %s stands for a loopback address on this host (see /etc/hosts), which no other host "
                    "reaches; write the address itself, or *:%s for all",
                    text, host, port);
    }
    freeaddrinfo(list);
    return result;
}

static int bind_all(const char *text, const char *port, int *fd, struct err *err)
{
    struct sockaddr_storage all;
    socklen_t size;

    if (find(text, "::", port, AI_NUMERICHOST, "", &all, &size, NULL) == 0 &&
        bind_tcp(text, (struct sockaddr *)&all, size, fd, NULL) == 0)
        return 0;
    if (find(text, "0.0.0.0", port, AI_NUMERICHOST, "", &all, &size, NULL) != 0) /* no IPv6 on this host */
        return err_set(err, -EINVAL, "%s: cannot listen there", text);
    return bind_tcp(text, (struct sockaddr *)&all, size, fd, err);
}

int address_bind(const char *text, unsigned mode, int *fd, struct err *err)
{
    struct address address;
    struct sockaddr_storage found;
    socklen_t size;
    int result = address_parse(text, &address, err);

    if (result != 0)
        return result;
    if (address.path)
        return bind_path(text, mode, fd, err);
    if (strcmp(address.host, "*") == 0)
        return bind_all(text, address.port, fd, err);
    /* A name: asked when a daemon starts and nobody waits for it yet; the resolver has its own bound. */
    result = find(text, address.host, address.port, AI_NUMERICHOST, "", &found, &size, NULL);
    if (result == -EINVAL)
        result = find(text, address.host, address.port, 0, "", &found, &size, err);
    return result == 0 ? bind_tcp(text, (struct sockaddr *)&found, size, fd, err) : result;
}

int address_resolve(const char *text, const char *keep, char out[ADDRESS_TEXT], struct err *err)
{
    struct address address, kept = {.host = ""};
    struct sockaddr_storage found;
    socklen_t size;
    char name[INET6_ADDRSTRLEN];
    int result = address_parse(text, &address, err);

    if (result != 0)
        return result;
    if (address.path || strcmp(address.host, "*") == 0 ||
        find(text, address.host, address.port, AI_NUMERICHOST, "", &found, &size, NULL) == 0) {
        (void)snprintf(out, ADDRESS_TEXT, "%s", text);
        return 0;
    }
    (void)address_parse(keep, &kept, NULL);
    result = find(text, address.host, address.port, 0, kept.host, &found, &size, err);
    if (result != 0)
        return result;
    address_name((struct sockaddr *)&found, name, sizeof(name));
    (void)snprintf(out, ADDRESS_TEXT, strchr(name, ':') ? "[%s]:%s" : "%s:%s", name, address.port);
    return 0;
}

bool address_is_here(const char *text)
{
    struct address address;
    struct sockaddr_storage found;
    socklen_t size;
    int result, fd;

    if (address_parse(text, &address, NULL) != 0 || address.path || strcmp(address.host, "*") == 0 ||
        find(text, address.host, "0", AI_NUMERICHOST, "", &found, &size, NULL) != 0)
        return true;
    result = bind_tcp(text, (struct sockaddr *)&found, size, &fd, NULL);
    if (result == 0)
        (void)close(fd);
    return result != -EADDRNOTAVAIL;
}
