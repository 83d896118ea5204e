/* config_elmer.c - what is wrong with an elmer.conf.
 *
 * All of it is looked at by a process that is the user elmer, as the daemon will be: the files are read, the address is
 * bound (and left at once: nothing listens on it), the names are looked up, the certificates are read as TLS will. */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "client/config_check.h"
#include "elmer/settings.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/net/address.h"

enum { LOOK_UP_MS = 60000 }; /* a name service that does not answer costs some seconds for each name */

struct work {
    const char *path;
    bool required;
    struct config_check check;
    struct settings settings;
    long long until_s;
};

/* ---- the address ---- */

/* Names of other hosts than elmer's own, for a sentence; NULL: there are none. */
static char *others(const struct settings *settings)
{
    char *text = NULL;
    size_t count = 0;

    for (size_t i = 0; i < settings->nhosts; i++) {
        if (strcmp(settings->hosts[i].name, settings->name) == 0 || ++count > 3)
            continue;
        char *longer = must(str_format("%s%s%s", text ? text : "", text ? ", " : "", settings->hosts[i].name));

        free(text);
        text = longer;
    }
    if (count > 3) {
        char *longer = must(str_format("%s and %zu more", text, count - 3));

        free(text);
        text = longer;
    }
    return text;
}

static void say_loopback(struct config_check *check, const char *listen, const struct address *address,
                         const char *loopback)
{
    char own[64];

    config_own_address(own, sizeof(own));
    config_problem(check, "listen", listen,
                   "the name %s stands for %s on this host, which no other host reaches: in /etc/hosts write %s %s "
                   "instead of that line, or here listen = %s:%s (or *:%s for all addresses)",
                   address->host, loopback, own[0] ? own : "ADDRESS", address->host, own[0] ? own : "ADDRESS",
                   address->port, address->port);
}

/* Returns whether it is worth while to try it. */
static bool check_name_of_listen(struct config_check *check, const char *listen, const struct address *address,
                                 const char *peers)
{
    char text[256];

    if (strcmp(address->host, "*") == 0)
        return true;
    switch (config_look_up(address->host, text, sizeof(text))) {
    case NAME_GOOD:
        return true;
    case NAME_UNKNOWN:
        config_problem(check, "listen", listen,
                       "the name %s is not known here: %s; write it with its address into /etc/hosts, or the address "
                       "itself here",
                       address->host, text);
        return false;
    case NAME_LOOPBACK:
        break;
    }
    if (strcmp(address->host, text) != 0 && strcmp(address->host, "localhost") != 0) {
        say_loopback(check, listen, address, text);
        return false;
    }
    if (peers)
        config_problem(check, "listen", listen,
                       "only this host reaches that address, and there are other hosts (%s): write its name, or *:%s "
                       "for all addresses",
                       peers, address->port);
    return !peers;
}

static void try_to_bind(struct config_check *check, const struct settings *settings)
{
    char *why = config_try_listen(settings->listen, settings->socket);

    if (why)
        config_problem(check, "listen", settings->listen, "%s", why);
    free(why);
}

static void check_listen(struct work *work)
{
    const struct settings *settings = &work->settings;
    struct config_check *check = &work->check;
    char *peers = others(settings);
    struct address address;
    struct err err = ERR_INIT;

    if (config_refused(check, "listen")) {
        /* it has been said */
    } else if (!settings->listen) {
        if (peers)
            config_problem(check, "hosts", NULL,
                           "there are other hosts (%s), and elmer does not listen for them: add listen = %s:7110, or "
                           "take them out",
                           peers, settings->name);
    } else if (address_parse(settings->listen, &address, &err) < 0) {
        config_problem(check, "listen", settings->listen, "%s", err.text);
    } else {
        if (check_name_of_listen(check, settings->listen, &address, peers))
            try_to_bind(check, settings);
        config_check_pki(check, settings->pki, true, settings->name,
                         strcmp(address.host, "*") == 0 || strcmp(address.host, "0.0.0.0") == 0 ||
                                 strcmp(address.host, "::") == 0
                             ? NULL
                             : address.host,
                         &work->until_s);
        config_check_unit("pki", settings->pki, ELMER_STATEDIR, "elmer");
    }
    free(peers);
}

/* ---- hosts ---- */

static void check_hosts(struct work *work)
{
    const struct settings *settings = &work->settings;
    int64_t end_ms = mono_ms(mono_now()) + LOOK_UP_MS;

    if (!config_given(&work->check, "hosts") || config_refused(&work->check, "hosts"))
        return;
    for (size_t i = 0; i < settings->nhosts; i++) {
        const char *name = settings->hosts[i].name;
        char text[256];
        enum name_kind kind = config_look_up(name, text, sizeof(text));

        if (kind == NAME_UNKNOWN)
            config_problem(&work->check, "hosts", name,
                           "this name is not known here: %s; write it with its address into /etc/hosts of every host, "
                           "or into the DNS",
                           text);
        else if (kind == NAME_LOOPBACK && strcmp(name, settings->name) != 0)
            config_problem(&work->check, "hosts", name,
                           "this name stands for %s here, which is this host itself: write its own address into "
                           "/etc/hosts (if it is this host, it is elmer's name: name = %s)",
                           text, name);
        else if (kind == NAME_GOOD && strcmp(name, settings->name) != 0 && config_is_own_address(text))
            config_problem(&work->check, "hosts", name,
                           "%s is this host, and its daemons call it %s: write %s here, or name = %s in elmer.conf and "
                           "rsd.conf",
                           text, settings->name, settings->name, name);
        if (mono_ms(mono_now()) > end_ms && i + 1 < settings->nhosts) {
            config_problem(&work->check, "hosts", settings->hosts[i + 1].name,
                           "the name service takes too long: from this one on they have not been looked up; look at "
                           "/etc/resolv.conf");
            return;
        }
    }
}

/* ---- places and names on this host ---- */

static void check_parent(struct work *work, const char *key, const char *path, const char *made)
{
    char *copy = must(strdup(path));

    config_check_directory(&work->check, key, path, dirname(copy), made);
    free(copy);
}

static void check_store(struct work *work)
{
    const char *store = work->settings.store;
    char *copy = must(strdup(store));

    check_parent(work, "store", store, ELMER_STATEDIR);
    config_check_unit("store", dirname(copy), ELMER_STATEDIR, "elmer");
    free(copy);
    if (access(store, F_OK) == 0 && access(store, R_OK | W_OK) < 0)
        config_problem(&work->check, "store", store, "the user of elmer may not read and write this file: %s; chown it",
                       strerror(errno));
}

static void check_places(struct work *work)
{
    const struct settings *settings = &work->settings;

    if (!config_refused(&work->check, "store"))
        check_store(work);
    if (config_given(&work->check, "socket"))
        check_parent(work, "socket", settings->socket, ELMER_RUNDIR);
    if (config_given(&work->check, "host_socket"))
        check_parent(work, "host_socket", settings->host_socket, ELMER_RUNDIR);
    if (config_given(&work->check, "admin_group") && !getgrnam(settings->admin_group))
        config_problem(&work->check, "admin_group", settings->admin_group,
                       "there is no such group, so nobody but root is an administrator: groupadd --system %s",
                       settings->admin_group);
    if (config_given(&work->check, "host_user") && !getpwnam(settings->host_user))
        config_problem(&work->check, "host_user", settings->host_user,
                       "there is no such user, so the rsd of this host cannot reach elmer: say user = of its rsd.conf");
}

/* ---- the whole ---- */

static void say_good(const struct work *work)
{
    const struct settings *settings = &work->settings;
    char date[16];

    printf("OK: %zu host%s, ", settings->nhosts, settings->nhosts == 1 ? "" : "s");
    config_date(work->until_s, date);
    if (settings->listen)
        printf("listen %s, TLS until %s\n", settings->listen, date);
    else
        puts("no listen: for this host alone");
}

static int look(void *data)
{
    struct work *work = data;
    struct ini_watch watch = config_check_watch(&work->check);
    struct err err = ERR_INIT;
    size_t problems;

    /* What has no line of its own, such as a host without a name. */
    if (settings_load_watched(&work->settings, work->path, work->required, &watch, &err) != 0 &&
        work->check.problems == 0) {
        say("%s", err.text);
        work->check.problems++;
    } else {
        check_listen(work);
        check_hosts(work);
        check_places(work);
    }
    problems = work->check.problems;
    if (problems == 0)
        say_good(work);
    settings_fini(&work->settings);
    config_check_fini(&work->check);
    return problems == 0 ? EXIT_DONE : EXIT_REFUSED;
}

int config_check_elmer(const char *path, bool required, const char *name)
{
    struct work work = {.path = path, .required = required};
    const struct passwd *user = getpwnam(name ? name : "elmer");

    config_check_init(&work.check, path, settings_keys);
    if (user)
        return config_as_user(user, look, &work);
    say("there is no user %s, which elmer is to run as: run systemd-sysusers", name ? name : "elmer");
    work.check.problems++;
    return look(&work);
}
