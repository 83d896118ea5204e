/* eadmin_place.c - hosts and address of a new cluster.
 *
 * The names are looked up -> the address is that of --listen, or of the files, or this host's name; a name that other
 * hosts would understand as themselves is refused, and one that this host does not have; one that nobody knows is asked
 * for at a terminal -> the fragment is written -> the files are read again, because a fragment of the administrator's
 * may count more. Where that is refused, or a later step of eadmin init is, what was there before is put back. */
#include "config.h"

#include "client/eadmin_place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/common.h"
#include "client/config_check.h"
#include "elmer/settings.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/net/address.h"
#include "rsd/config.h"

#define FRAGMENT "50-init.conf"

enum { FRAGMENT_MAX = 1 << 20 };

/* ---- hosts ---- */

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == 0 || at[length] == ' '))
            return true;
    return false;
}

/* "a b c" out of "a,b c"; NULL: it has been said what is wrong. */
static char *read_hosts(const char *value)
{
    char *words = must(strdup(value)), *rest = words, *all = must(strdup(""));

    for (char *word; all && (word = strsep(&rest, ", \t"));) {
        char *longer;

        if (!*word)
            continue;
        if (!str_valid_hostname(word)) {
            say("'%s' is not the name of a host", word);
            longer = NULL;
        } else if (has_word(all, word)) {
            say("--hosts names %s twice: name each host once", word);
            longer = NULL;
        } else {
            longer = must(str_format("%s%s%s", all, *all ? " " : "", word));
        }
        free(all);
        all = longer;
    }
    free(words);
    if (all && !*all) {
        say("option '--hosts' needs names");
        free(all);
        all = NULL;
    }
    return all;
}

/* Without an address other hosts' programs do not find each other. */
static int look_up_hosts(const char *hosts, const char *own)
{
    char *words = must(strdup(hosts)), *rest = words, text[256];
    int refused = 0;

    for (char *word; (word = strsep(&rest, " "));) {
        enum name_kind kind = config_look_up(word, text, sizeof(text));

        if (kind == NAME_UNKNOWN) {
            say("the name %s is not known here: %s; write it with its address into /etc/hosts of every host, or into "
                "the DNS, then eadmin init again",
                word, text);
            refused++;
        } else if (kind == NAME_LOOPBACK && strcmp(word, own) != 0) {
            say("the name %s stands for %s here, which is this host itself: write its own address into /etc/hosts, "
                "then eadmin init again",
                word, text);
            refused++;
        } else if (kind == NAME_GOOD && strcmp(word, own) != 0 && config_is_own_address(text)) {
            say("%s (%s) is this host, and its daemons call it %s: write %s, or \"name = %s\" into elmer.conf and "
                "rsd.conf, then eadmin init again",
                word, text, own, own, word);
            refused++;
        }
    }
    free(words);
    return refused == 0 ? EXIT_DONE : EXIT_REFUSED;
}

/* ---- another cluster ---- */

struct membership { /* where rsd.conf names elmer */
    char *elmer, *file;
    int line;
};

static void on_rsd_key(const struct ini_value *value, void *data)
{
    struct membership *found = data;

    if (strcmp(value->key->name, "elmer") != 0 || value->refused)
        return;
    free(found->elmer);
    free(found->file);
    *found = (struct membership){must(strdup(value->value)), must(strdup(value->file)), value->line};
}

/* What is not understood is left to those that use it. A name that nobody knows counts: the name service may be away.
 */
static bool is_elsewhere(const char *elmer, const char *name)
{
    struct address address;
    char text[256];

    if (address_parse(elmer, &address, NULL) < 0 || address.path || strcmp(address.host, name) == 0)
        return false;
    return config_look_up(address.host, text, sizeof(text)) != NAME_LOOPBACK && !config_is_own_address(text);
}

/* One of several may be this host, which is to take the place of another one, or be the first. */
static bool all_elsewhere(const char *addresses, const char *name)
{
    char *words = must(strdup(addresses)), *rest = words;
    bool elsewhere = true;

    for (char *word; (word = strsep(&rest, " \t"));)
        elsewhere = elsewhere && (!*word || is_elsewhere(word, name));
    free(words);
    return elsewhere;
}

int place_is_free(const char *rsd_conf, const char *name)
{
    struct membership found = {NULL, NULL, 0};
    const struct ini_watch watch = {.given = on_rsd_key, .data = &found};
    struct rsd_config *config = must(calloc(1, sizeof(*config)));
    bool elsewhere;

    rsd_config_default(config);
    (void)rsd_config_read(config, rsd_conf, true, &watch, NULL); /* a wrong one is for eadmin config check */
    elsewhere = found.elmer && all_elsewhere(found.elmer, name);
    if (elsewhere)
        say("this host belongs to the cluster of %s (%s:%d), which has its queue host: to add hosts to it, eadmin "
            "token "
            "there; if this one is to begin another cluster, take that line out, then eadmin init again",
            found.elmer, found.file, found.line);
    free(found.elmer);
    free(found.file);
    free(config);
    return elsewhere ? EXIT_REFUSED : EXIT_DONE;
}

/* ---- the address ---- */

static char *with_port(const char *host)
{
    const char *last = strrchr(host, ']');

    return must(strchr(last ? last : host, ':') ? strdup(host) : str_format("%s:%s", host, ADDRESS_PORT));
}

static int refuse_loopback(const char *name, const char *text)
{
    char own[64];

    config_own_address(own, sizeof(own));
    say("the name %s stands for %s on this host, which no other host reaches: in /etc/hosts write \"%s %s\" in place "
        "of the line with %s, then eadmin init again; or name an address: eadmin init --listen %s",
        name, text, own[0] ? own : "ADDRESS", name, text, own[0] ? own : "ADDRESS");
    return EXIT_REFUSED;
}

static int judge_address(const char *listen, const char *socket)
{
    char *why = config_try_listen(listen, socket);

    if (!why)
        return EXIT_DONE;
    say("%s: %s", listen, why);
    free(why);
    return EXIT_REFUSED;
}

/* socket: of the elmer that may run here and listen there. */
static int judge(const char *listen, const char *socket)
{
    struct address address;
    struct err err = ERR_INIT;
    char text[256];

    if (address_parse(listen, &address, &err) < 0 || address.path) {
        say("--listen %s: %s", listen, address.path ? "want HOST or HOST:PORT" : err.text);
        return EXIT_USAGE;
    }
    if (strcmp(address.host, "*") == 0)
        return judge_address(listen, socket);
    switch (config_look_up(address.host, text, sizeof(text))) {
    case NAME_GOOD:
        return judge_address(listen, socket);
    case NAME_LOOPBACK:
        return refuse_loopback(address.host, text);
    case NAME_UNKNOWN:
        break;
    }
    say("the name %s is not known here: %s; write it with its address into /etc/hosts, or name an address: eadmin init "
        "--listen ADDRESS",
        address.host, text);
    return EXIT_REFUSED;
}

/* malloc'd; NULL: nothing was said. */
static char *ask(const char *name)
{
    char own[64], line[300];

    config_own_address(own, sizeof(own));
    printf("The name %s is not known here. By which address do the other hosts reach this one? %s%s%s", name,
           own[0] ? "[" : "", own, own[0] ? "] " : "");
    if (fflush(stdout) != 0 || !fgets(line, sizeof(line), stdin))
        return NULL;
    line[strcspn(line, " \t\r\n")] = 0;
    if (!line[0] && !own[0])
        return NULL;
    return with_port(line[0] ? line : own);
}

/* *listen: for the fragment, malloc'd; NULL: the files say it. */
static int find_address(const struct place_wish *wish, const struct settings *settings, char **listen)
{
    char text[256];
    int code;

    *listen = NULL;
    if (!wish->listen && settings->listen && (!wish->here || strncmp(settings->listen, "*:", 2) == 0))
        return judge(settings->listen, settings->socket);
    if (wish->listen)
        *listen = with_port(wish->listen);
    else if (config_look_up(settings->name, text, sizeof(text)) == NAME_UNKNOWN && isatty(STDIN_FILENO))
        *listen = ask(settings->name);
    else if (settings->listen)
        *listen = must(str_format("%s:%s", settings->name, strrchr(settings->listen, ':') + 1));
    else
        *listen = with_port(settings->name);
    if (!*listen) {
        say("no address: eadmin init --listen ADDRESS");
        return EXIT_REFUSED;
    }
    code = judge(*listen, settings->socket);
    if (code != EXIT_DONE) {
        free(*listen);
        *listen = NULL;
    }
    return code;
}

/* ---- the fragment ---- */

struct before { /* what the fragment of an earlier eadmin init says, and stays */
    char *listen, *hosts;
};

static void on_given(const struct ini_value *value, void *data)
{
    struct before *before = data;
    const char *name = strrchr(value->file, '/');
    char **text = strcmp(value->key->name, "listen") == 0  ? &before->listen
                  : strcmp(value->key->name, "hosts") == 0 ? &before->hosts
                                                           : NULL;

    if (!text || strcmp(name ? name + 1 : value->file, FRAGMENT) != 0)
        return;
    free(*text);
    *text = must(strdup(value->value));
}

static struct before read_before(const char *config, bool required)
{
    struct before before = {NULL, NULL};
    const struct ini_watch watch = {.given = on_given, .data = &before};
    struct settings settings = {0};

    if (settings_load_watched(&settings, config, required, &watch, NULL) == 0)
        settings_fini(&settings);
    return before;
}

static char *fragment_text(const char *listen, const char *hosts)
{
    return must(str_format("# Written by eadmin init; it counts more than elmer.conf.\n[elmer]\n%s%s%s%s%s%s",
                           listen ? "listen = " : "", listen ? listen : "", listen ? "\n" : "", hosts ? "hosts = " : "",
                           hosts ? hosts : "", hosts ? "\n" : ""));
}

char *place_name_for_old(int dir, const char *name)
{
    char *old = must(str_format("%s.old", name));

    if (faccessat(dir, old, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return old;
    free(old);
    return must(str_format("%s.old.%" PRId64, name, wall_now().ms / 1000));
}

/* What was there before it, for place_undo(). What cannot be kept is not replaced; what else an administrator has
 * written into it is kept beside. */
static int keep_fragment(struct place_undo *undo, const char *path, int dir, const struct before *before,
                         struct err *err)
{
    struct err why = ERR_INIT;
    char *old = NULL, *ours = fragment_text(before->listen, before->hosts);
    int result = file_read(dir, FRAGMENT, FRAGMENT_MAX, &old, &why);

    if (result == 0 && strcmp(old, ours) != 0) {
        undo->kept = place_name_for_old(dir, FRAGMENT);
        result = file_write(dir, undo->kept, old, 0644, &why);
    }
    free(ours);
    if (result < 0 && result != -ENOENT) {
        free(old);
        return err_set(err, result, "%s: %s; move it away, then eadmin init again", path, why.text);
    }
    undo->path = must(strdup(path));
    undo->old = old;
    return 0;
}

static int write_fragment(struct place_undo *undo, const char *config, const struct before *before, const char *listen,
                          const char *hosts)
{
    char *path = must(str_format("%s.d", config)), *text = fragment_text(listen, hosts);
    struct err err = ERR_INIT;
    int dir, result;

    (void)mkdir(ELMER_SYSCONFDIR, 0755); /* else opening says why */
    undo->made_dir = mkdir(path, 0755) == 0;
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    result = dir < 0 ? err_set(&err, -errno, "cannot open %s: %s", path, strerror(errno))
                     : keep_fragment(undo, path, dir, before, &err);
    if (result == 0)
        result = file_write(dir, FRAGMENT, text, 0644, &err);
    if (dir >= 0)
        close(dir);
    if (result < 0)
        say("%s", err.text);
    free(path);
    free(text);
    return result < 0 ? EXIT_REFUSED : EXIT_DONE;
}

static bool has_hosts(const struct settings *settings, const char *hosts)
{
    char *words = must(strdup(hosts)), *rest = words;
    bool same = true;
    size_t i = 0;

    for (char *word; (word = strsep(&rest, " ")); i++)
        same = same && i < settings->nhosts && strcmp(settings->hosts[i].name, word) == 0;
    free(words);
    return same && i == settings->nhosts;
}

static int read_again(const char *config, bool required, const char *listen, const char *hosts,
                      struct settings *settings)
{
    struct settings next = {0};
    struct err err = ERR_INIT;

    if (settings_load(&next, config, required, &err) != 0) {
        say("%s", err.text);
        return EXIT_REFUSED;
    }
    if ((!listen || (next.listen && strcmp(next.listen, listen) == 0)) && (!hosts || has_hosts(&next, hosts))) {
        settings_fini(settings);
        *settings = next;
        return EXIT_DONE;
    }
    settings_fini(&next);
    say("another file in %s.d says something else of listen or hosts, and counts more than " FRAGMENT ": take that out "
        "(eadmin config show names it)",
        config);
    return EXIT_REFUSED;
}

void place_undo(struct place_undo *undo)
{
    int dir = undo->path ? open(undo->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, result = 0;
    struct err err = ERR_INIT;

    if (dir >= 0 && undo->old)
        result = file_write(dir, FRAGMENT, undo->old, 0644, &err);
    else if (dir >= 0 && unlinkat(dir, FRAGMENT, 0) < 0 && errno != ENOENT)
        result = err_set(&err, -errno, "cannot remove %s/" FRAGMENT ": %s", undo->path, strerror(errno));
    if (dir >= 0 && undo->kept && result == 0) /* it stands where it stood */
        (void)unlinkat(dir, undo->kept, 0);
    if (result < 0)
        say("%s", err.text);
    else if (undo->told)
        printf("%s/" FRAGMENT " is as it was before.\n", undo->path);
    if (dir >= 0)
        close(dir);
    if (undo->path && undo->made_dir)
        (void)rmdir(undo->path);
    place_undo_fini(undo);
}

void place_undo_fini(struct place_undo *undo)
{
    free(undo->path);
    free(undo->old);
    free(undo->kept);
    *undo = (struct place_undo){NULL};
}

static void tell(struct place_undo *undo, const char *listen, const char *hosts)
{
    printf("%s/" FRAGMENT " says%s%s%s%s.\n", undo->path, listen ? " listen = " : "", listen ? listen : "",
           hosts ? (listen ? ", hosts = " : " hosts = ") : "", hosts ? hosts : "");
    if (undo->kept)
        printf("What " FRAGMENT " said before is in %s now, and does not count.\n", undo->kept);
    undo->told = true;
}

int place_cluster(const struct place_wish *wish, const char *config, bool required, struct settings *settings,
                  struct place_undo *undo)
{
    char *hosts = wish->hosts ? read_hosts(wish->hosts) : NULL, *listen = NULL;
    int code = wish->hosts && !hosts ? EXIT_USAGE : EXIT_DONE;

    if (code == EXIT_DONE && hosts)
        code = look_up_hosts(hosts, settings->name);
    if (code == EXIT_DONE)
        code = find_address(wish, settings, &listen);
    if (code == EXIT_DONE && (listen || hosts)) {
        struct before before = read_before(config, required);
        const char *all_listen = listen ? listen : before.listen, *all_hosts = hosts ? hosts : before.hosts;

        code = write_fragment(undo, config, &before, all_listen, all_hosts);
        if (code == EXIT_DONE)
            code = read_again(config, required, listen, hosts, settings);
        if (code == EXIT_DONE)
            tell(undo, all_listen, all_hosts);
        else
            place_undo(undo);
        free(before.listen);
        free(before.hosts);
    }
    free(hosts);
    free(listen);
    return code;
}
