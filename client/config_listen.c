/* config_listen.c - can elmer listen at its address, and who does?
 *
 * That an elmer runs here says nothing of who has its address: where another program was there first, elmer serves its
 * own host and waits. So the kernel's tables are read, which everybody may: they have the user of each socket that
 * listens, and elmer's user is the one at its own socket. Another program of that user is taken for elmer. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/common.h"
#include "client/config_check.h"
#include "lib/base/str.h"
#include "lib/net/address.h"

bool config_elmer_runs(const char *socket_path, uid_t *user)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t size = sizeof(peer);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool runs;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    runs = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (runs)
        *user = peer.uid;
    if (fd >= 0)
        close(fd);
    return runs;
}

/* ---- the tables ---- */

struct place { /* of IPv4 as mapped into IPv6; all of both is :: */
    struct in6_addr host;
    unsigned port;
};

/* The table has words of the machine's order, which are the bytes of the address as they are in memory. */
static bool read_place(const char *host, unsigned port, struct place *place)
{
    size_t words = strlen(host) / 8;
    uint32_t bytes[4] = {0, 0, htonl(0xffff), 0};

    if (words != 1 && words != 4)
        return false;
    for (size_t i = 0; i < words; i++)
        if (sscanf(host + 8 * i, "%8" SCNx32, &bytes[words == 1 ? 3 : i]) != 1)
            return false;
    memcpy(&place->host, bytes, sizeof(place->host));
    place->port = port;
    return true;
}

/* As elmer would, now. */
static int find_place(const char *listen, struct place *place, struct err *err)
{
    char text[ADDRESS_TEXT];
    struct address address;
    struct in_addr in4;
    uint64_t port;
    int result = address_resolve(listen, "", text, err);

    if (result == 0)
        result = address_parse(text, &address, err);
    if (result < 0)
        return result;
    *place = (struct place){.host = in6addr_any, .port = str_to_u64(address.port, &port) ? (unsigned)port : 0};
    if (strcmp(address.host, "*") == 0 || inet_pton(AF_INET6, address.host, &place->host) == 1)
        return 0;
    if (inet_pton(AF_INET, address.host, &in4) != 1)
        return err_set(err, -EINVAL, "%s: no address of a host", listen);
    place->host.s6_addr32[2] = htonl(0xffff);
    place->host.s6_addr32[3] = in4.s_addr;
    return 0;
}

/* A :: that is for IPv6 alone is not told from one for both. */
static bool covers(const struct in6_addr *host, const struct in6_addr *other)
{
    if (IN6_IS_ADDR_UNSPECIFIED(host) || IN6_ARE_ADDR_EQUAL(host, other))
        return true;
    return IN6_IS_ADDR_V4MAPPED(host) && host->s6_addr32[3] == htonl(INADDR_ANY) && IN6_IS_ADDR_V4MAPPED(other);
}

/* Would one of them keep the other from listening? */
static bool overlap(const struct place *a, const struct place *b)
{
    return a->port == b->port && (covers(&a->host, &b->host) || covers(&b->host, &a->host));
}

struct seen {
    bool elmer, same, other; /* same: elmer at just that address, which the kernel gives to nobody beside it */
};

static void look_through(const char *path, const struct place *wished, uid_t elmer, struct seen *seen)
{
    FILE *table = fopen(path, "re");
    char line[512], host[33];
    unsigned port, state, user;
    struct place place;

    while (table && fgets(line, sizeof(line), table)) {
        if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %u", host, &port, &state, &user) !=
                4 ||
            state != TCP_LISTEN || !read_place(host, port, &place) || !overlap(&place, wished))
            continue;
        if (user != elmer)
            seen->other = true;
        else
            seen->elmer = true;
        if (user == elmer && IN6_ARE_ADDR_EQUAL(&place.host, &wished->host))
            seen->same = true;
    }
    if (table)
        fclose(table);
}

int config_who_listens(const char *listen, uid_t elmer, struct err *err)
{
    struct place wished;
    struct seen seen = {false, false, false};
    int result = find_place(listen, &wished, err);

    if (result < 0)
        return result;
    look_through("/proc/net/tcp", &wished, elmer, &seen);
    look_through("/proc/net/tcp6", &wished, elmer, &seen);
    if (seen.same)
        return LISTENS_ELMER;
    return seen.other ? LISTENS_OTHER : seen.elmer ? LISTENS_ELMER : LISTENS_NOBODY;
}

/* ---- may it? ---- */

char *config_try_listen(const char *listen, const char *socket_path)
{
    struct err err = ERR_INIT;
    uid_t user;
    int fd, result = address_bind(listen, 0, &fd, &err);

    if (result == 0) {
        close(fd);
        return NULL;
    }
    if (result == -EADDRINUSE && config_elmer_runs(socket_path, &user) &&
        config_who_listens(listen, user, NULL) == LISTENS_ELMER)
        return NULL;
    return must(str_format("%s; %s", err.text,
                           result == -EADDRINUSE
                               ? "another program has it: ss -ltnp says which; stop it, or take another port"
                           : result == -EADDRNOTAVAIL ? "it is no address of this host: ip address shows those that are"
                           : result == -EACCES        ? "take a port above 1023, such as 7110"
                                                      : "choose another address"));
}
