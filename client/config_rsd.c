/* config_rsd.c - what is wrong with an rsd.conf. Root's half reads it and starts the programs; a process that is the
 * user of the network half looks at what that one needs: elmer's address, and the host's certificate. */
#include "config.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/common.h"
#include "client/config_check.h"
#include "lib/base/str.h"
#include "lib/net/address.h"
#include "rsd/config.h"

struct work {
    struct config_check check;
    struct rsd_config config;
    long long until_s;
};

/* ---- as the network half ---- */

static void check_socket(struct work *work)
{
    const char *elmer = work->config.elmer;
    char *copy = must(strdup(elmer));
    const char *dir = dirname(copy);

    if (access(dir, X_OK) < 0)
        config_problem(&work->check, "elmer", elmer,
                       "no elmer has made %s on this host (%s): start it, or let this host join the cluster of another "
                       "with rsd --join HOST:7110 TOKEN",
                       dir, strerror(errno));
    else if (access(elmer, F_OK) == 0 && access(elmer, R_OK | W_OK) < 0)
        config_problem(&work->check, "elmer", elmer,
                       "the user %s may not use this socket: %s; see host_user in elmer.conf", work->config.user,
                       strerror(errno));
    free(copy);
}

static void check_address(struct work *work, const char *elmer)
{
    struct address address;
    struct err err = ERR_INIT;
    char text[256];
    enum name_kind kind;

    if (address_parse(elmer, &address, &err) < 0) {
        config_problem(&work->check, "elmer", elmer, "%s", err.text);
        return;
    }
    kind = config_look_up(address.host, text, sizeof(text));
    if (kind == NAME_UNKNOWN)
        config_problem(&work->check, "elmer", elmer,
                       "the name %s is not known here: %s; write it with its address into /etc/hosts", address.host,
                       text);
    else if (kind == NAME_LOOPBACK && strcmp(text, address.host) != 0 && strcmp(address.host, "localhost") != 0)
        config_problem(&work->check, "elmer", elmer,
                       "the name %s stands for %s here, which is this host itself: write the queue host's address into "
                       "/etc/hosts, or, if elmer runs here, leave this line out",
                       address.host, text);
}

static void check_addresses(struct work *work)
{
    char *words = must(strdup(work->config.elmer)), *rest = words;

    for (char *word; (word = strsep(&rest, " "));)
        check_address(work, word);
    free(words);
    if (!config_refused(&work->check, "pki")) {
        char *copy = must(strdup(work->config.pki));

        config_check_pki(&work->check, work->config.pki, false, work->config.name, NULL, &work->until_s);
        config_check_directory(&work->check, "pki", work->config.pki, dirname(copy), ELMER_RSD_STATEDIR);
        config_check_unit("pki", work->config.pki, ELMER_RSD_STATEDIR, "rsd-net");
        free(copy);
    }
}

static void say_good(const struct work *work)
{
    char date[16];

    config_date(work->until_s, date);
    if (work->config.elmer[0] == '/')
        printf("OK: host %s, elmer on this host\n", work->config.name);
    else
        printf("OK: host %s, elmer %s, TLS until %s\n", work->config.name, work->config.elmer, date);
}

static int look(void *data)
{
    struct work *work = data;

    if (config_refused(&work->check, "elmer"))
        ; /* it has been said */
    else if (work->config.elmer[0] == '/')
        check_socket(work);
    else
        check_addresses(work);
    if (work->check.problems > 0)
        return EXIT_REFUSED;
    say_good(work);
    return EXIT_DONE;
}

/* ---- as root ---- */

static void check_program(struct work *work, const struct ini_key *key, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        config_problem(&work->check, key->name, path, "this program: %s; install it, or leave the line out",
                       strerror(errno));
    else if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
        config_problem(&work->check, key->name, path,
                       "this is no program: leave the line out to use the one of this build");
}

/* What a helper is for may be missing here, unless the file names it. */
static void check_programs(struct work *work)
{
    for (const struct ini_key *key = rsd_config_keys; key->name; key++) {
        const char *path = config_value(&work->check, key);

        if (path && path[0] == '/' &&
            (key->flags & (config_given(&work->check, key->name) ? INI_PROGRAM | INI_HELPER : INI_PROGRAM)))
            check_program(work, key, path);
    }
}

static void check_here(struct work *work)
{
    const struct rsd_config *config = &work->config;

    check_programs(work);
    if (config->cgroup_root[0] && access(config->cgroup_root, F_OK) < 0)
        config_problem(&work->check, "cgroup_root", config->cgroup_root, "%s; leave the line out, then it is found",
                       strerror(errno));
    if (config->user_slice[0] && access(config->user_slice, F_OK) < 0)
        config_problem(&work->check, "user_slice", config->user_slice, "%s; leave the line out, then it is found",
                       strerror(errno));
    if (access(config->proc_stat, R_OK) < 0)
        config_problem(&work->check, "proc_stat", config->proc_stat, "%s; leave the line out", strerror(errno));
    if (config->tickets_required && !getpwnam("elmer-ticket"))
        config_problem(&work->check, "tickets", "require",
                       "there is no user elmer-ticket here: run systemd-sysusers, or leave the line out until then");
    if (config_given(&work->check, "rundir")) {
        char *copy = must(strdup(config->rundir));

        config_check_directory(&work->check, "rundir", config->rundir, dirname(copy), NULL);
        free(copy);
    }
}

int config_check_rsd(const char *path, bool required, const char *name)
{
    static struct work work; /* large */
    struct ini_watch watch = config_check_watch(&work.check);
    struct err err = ERR_INIT;
    const struct passwd *user;
    int result;

    config_check_init(&work.check, path, rsd_config_keys);
    rsd_config_default(&work.config);
    (void)rsd_config_read(&work.config, path, !required, &watch, &err);
    check_here(&work);
    user = getpwnam(name ? name : work.config.user);
    if (!user || (user->pw_uid == 0 && !name))
        config_problem(&work.check, "user", work.config.user,
                       user ? "the network half must not be root: leave the line out"
                            : "there is no such user: run systemd-sysusers, or leave the line out");
    result = user ? config_as_user(user, look, &work) : look(&work);
    config_check_fini(&work.check);
    return result;
}
