#include "config.h"

#include "client/elmer_names.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/common.h"
#include "elmer/settings.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/net/address.h"
#include "lib/pki/ca.h"
#include "lib/pki/x509.h"

static bool numeric(const char *name)
{
    unsigned char address[16];

    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

bool elmer_names_add(struct elmer_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    if ((!numeric(name) && !str_valid_hostname(name)) || names->count == ELMER_NAMES_MAX)
        return false;
    names->items[names->count++] = must(strdup(name));
    return true;
}

/* As the name services say; nothing if they do not. */
static void add_full_name(struct elmer_names *names, const char *host)
{
    struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM}, *found;

    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return;
    if (found->ai_canonname && strchr(found->ai_canonname, '.') && !numeric(found->ai_canonname) &&
        !strstr(found->ai_canonname, "localhost"))
        elmer_names_add(names, found->ai_canonname);
    freeaddrinfo(found);
}

void elmer_names_add_own(struct elmer_names *names, const struct settings *settings)
{
    char host[256] = "";
    struct address address;

    elmer_names_add(names, settings->name);
    if (gethostname(host, sizeof(host) - 1) == 0 && elmer_names_add(names, host))
        add_full_name(names, host);
    if (settings->listen && address_parse(settings->listen, &address, NULL) == 0 && strcmp(address.host, "*") != 0)
        elmer_names_add(names, address.host);
}

static void on_name(const char *name, void *data)
{
    elmer_names_add(data, name); /* those above the most are given up, the oldest */
}

static void add_names_of(struct elmer_names *names, const struct ca *ca, int dir, const char *file)
{
    char *certificate = NULL;
    struct pki_certificate facts;

    if (file_read(dir, file, PKI_PEM_MAX, &certificate, NULL) == 0 &&
        pki_verify(certificate, ca->certificate, NULL) == 0 && pki_inspect(certificate, &facts, NULL) == 0 &&
        facts.server)
        pki_each_name(certificate, on_name, names);
    free(certificate);
}

void elmer_names_add_earlier(struct elmer_names *names, const struct ca *ca, const char *pki)
{
    int dir = open(pki, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    add_names_of(names, ca, ca->dir, CA_ELMER);
    if (dir >= 0) {
        add_names_of(names, ca, dir, "host.crt");
        close(dir);
    }
}

void elmer_names_fini(struct elmer_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free((void *)(uintptr_t)names->items[i]);
}
