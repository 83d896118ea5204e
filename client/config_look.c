/* config_look.c - what a configuration needs of the machine: names, directories, certificates. */
#include "config.h"

#include "client/config_check.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <libgen.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/net/address.h"
#include "lib/net/tls.h"
#include "lib/pki/x509.h"

enum { PATH_BYTES = 4200 };

/* ---- names ---- */

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

enum name_kind config_look_up(const char *host, char *text, size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    enum name_kind kind = NAME_LOOPBACK;
    int code = getaddrinfo(host, NULL, &hints, &list);

    if (code != 0) {
        snprintf(text, size, "%s", code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
        return NAME_UNKNOWN;
    }
    for (const struct addrinfo *item = list; item && kind != NAME_GOOD; item = item->ai_next) {
        char address[64];

        address_name(item->ai_addr, address, sizeof(address));
        if (!is_loopback(address))
            kind = NAME_GOOD;
        snprintf(text, size, "%s", address);
    }
    freeaddrinfo(list);
    return kind;
}

bool config_is_own_address(const char *text)
{
    struct ifaddrs *list = NULL;
    bool own = false;
    char address[64];

    if (getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *item = list; item && !own; item = item->ifa_next) {
        if (!item->ifa_addr)
            continue;
        address_name(item->ifa_addr, address, sizeof(address));
        own = strcmp(address, text) == 0;
    }
    freeifaddrs(list);
    return own;
}

void config_own_address(char *text, size_t size)
{
    struct ifaddrs *list = NULL;

    text[0] = 0;
    if (getifaddrs(&list) < 0)
        return;
    for (const struct ifaddrs *item = list; item && !text[0]; item = item->ifa_next)
        if (item->ifa_addr && item->ifa_addr->sa_family == AF_INET && item->ifa_flags & IFF_UP &&
            !(item->ifa_flags & IFF_LOOPBACK))
            address_name(item->ifa_addr, text, (unsigned)size);
    freeifaddrs(list);
}

/* ---- directories ---- */

static const char *whose(void)
{
    static char text[80];
    const struct passwd *user = getpwuid(geteuid());

    snprintf(text, sizeof(text), "%s", user ? user->pw_name : "?");
    return text;
}

static const char *hint(const struct config_check *check, int code)
{
    return (code == EACCES || code == EPERM) && !check->by_root ? " (run eadmin config check as root to see all)" : "";
}

void config_check_directory(struct config_check *check, const char *key, const char *value, const char *path,
                            const char *made)
{
    struct stat st;
    int result = stat(path, &st) < 0 ? errno : 0;

    if (result == ENOENT && made && strcmp(path, made) == 0)
        return;
    if (result != 0)
        config_problem(check, key, value, "the directory %s: %s; make it, and give it to the user %s%s", path,
                       strerror(result), whose(), hint(check, result));
    else if (!S_ISDIR(st.st_mode))
        config_problem(check, key, value, "%s is no directory: move it away, or choose another path", path);
    else if (faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) < 0 && (result = errno) != 0)
        config_problem(check, key, value, "the user %s may not write to the directory %s: %s; chown %s %s%s", whose(),
                       path, strerror(result), whose(), path, hint(check, result));
}

/* ---- certificates ---- */

void config_date(long long seconds, char text[16])
{
    time_t time = (time_t)seconds;
    struct tm tm;

    if (!gmtime_r(&time, &tm) || strftime(text, 16, "%Y-%m-%d", &tm) == 0)
        snprintf(text, 16, "?");
}

static bool all_there(struct config_check *check, const char *pki, bool server)
{
    static const char *const names[] = {"ca.crt", "host.crt", "host.key"};
    const char *todo =
        server ? "eadmin init, as root, makes them" : "join: eadmin token on the queue host, rsd --join here";
    char path[PATH_BYTES];
    bool there = true;
    struct stat st;

    if (stat(pki, &st) < 0 && errno == ENOENT) {
        config_problem(check, "pki", pki, "there are no certificates yet; %s", todo);
        return false;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        int fd, result;

        snprintf(path, sizeof(path), "%.4000s/%s", pki, names[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        result = errno;
        if (fd >= 0) {
            close(fd);
            continue;
        }
        there = false;
        if (result == ENOENT)
            config_problem(check, "pki", pki, "there is no %s; %s", names[i], todo);
        else
            config_problem(check, "pki", pki, "the user %s cannot read %s: %s; chown %s %s%s", whose(), path,
                           strerror(result), whose(), path, hint(check, result));
    }
    return there;
}

static void check_dates(struct config_check *check, const char *pki, const char *file,
                        const struct pki_certificate *facts, bool server)
{
    bool ca = strcmp(file, "ca.crt") == 0;
    int64_t now = wall_now().ms / 1000;
    char date[16];

    config_date(now < facts->begin_s ? facts->begin_s : facts->end_s, date);
    if (now < facts->begin_s)
        config_problem(check, "pki", pki, "%s is valid from %s on, which is in the future: set the clock of this host",
                       file, date);
    else if (now >= facts->end_s && !ca)
        config_problem(check, "pki", pki, "%s ended on %s: %s (or set the clock of this host)", file, date,
                       server ? "eadmin init, as root, makes a new one"
                              : "join again: eadmin token on the queue host, rsd --join here");
    else if (now >= facts->end_s && server) /* hosts keep theirs for good: it is renewed with the same key */
        say("warning: the CA's own certificate ended on %s: nobody judges that, and eadmin init, as root, renews it",
            date);
}

/* The daemon's own way to read them says what does not fit; what it does not look at is looked at here. */
static bool usable(struct config_check *check, const char *pki, bool server)
{
    struct tls_context *context = NULL;
    struct err err = ERR_INIT;
    int result = server ? tls_context_server(pki, NULL, NULL, &context, &err) : tls_context_client(pki, &context, &err);

    if (result == 0)
        tls_context_unref(context);
    else
        config_problem(check, "pki", pki, "%s%s", err.text,
                       server ? "; eadmin init, as root, makes a new pair" : "; join again with rsd --join");
    return result == 0;
}

static bool inspect(struct config_check *check, const char *pki, const char *file, struct pki_certificate *facts,
                    char **text)
{
    int dir = open(pki, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result;
    struct err err = ERR_INIT;

    *text = NULL;
    result = dir < 0 ? err_set(&err, -errno, "%s", strerror(errno)) : file_read(dir, file, PKI_PEM_MAX, text, &err);
    if (result == 0)
        result = pki_inspect(*text, facts, &err);
    if (result != 0)
        config_problem(check, "pki", pki, "%s: %s", file, err.text);
    if (dir >= 0)
        close(dir);
    return result == 0;
}

static void check_names(struct config_check *check, const char *pki, bool server, const char *name, const char *dialled,
                        const char *certificate)
{
    struct pki_certificate facts;

    if (pki_inspect(certificate, &facts, NULL) < 0)
        return;
    if (strcmp(facts.name, name) != 0)
        config_problem(check, "name", name, "the certificate in %s is that of %s: %s", pki, facts.name,
                       server ? "eadmin init, as root, makes one for this name"
                              : "write that name here, or join again under this one");
    if (dialled && !pki_names_host(certificate, dialled))
        config_problem(check, "pki", pki,
                       "the certificate does not name %s, by which other hosts are to reach elmer: eadmin init "
                       "--address %s, as root, adds it",
                       dialled, dialled);
}

void config_check_pki(struct config_check *check, const char *pki, bool server, const char *name, const char *dialled,
                      long long *until)
{
    struct pki_certificate own = {.end_s = 0}, ca = {.end_s = 0};
    char *own_text = NULL, *ca_text = NULL;
    size_t before = check->problems;

    *until = 0;
    if (!all_there(check, pki, server) || !usable(check, pki, server))
        return;
    if (inspect(check, pki, "host.crt", &own, &own_text)) {
        check_dates(check, pki, "host.crt", &own, server);
        check_names(check, pki, server, name, dialled, own_text);
    }
    if (inspect(check, pki, "ca.crt", &ca, &ca_text))
        check_dates(check, pki, "ca.crt", &ca, server);
    free(own_text);
    free(ca_text);
    if (check->problems == before)
        *until = own.end_s;
}
