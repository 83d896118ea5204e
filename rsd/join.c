/* join.c - rsd --join.
 *
 * The token and rsd.conf are read -> the program of the network half, as its user, makes the key, talks to elmer and
 * writes the certificate: nothing from the network is looked at by root -> rsd.conf is rewritten. A failure
 * before the last step leaves everything as it was. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/net/address.h"
#include "lib/pki/token.h"
#include "rsd/config.h"
#include "rsd/join.h"
#include "rsd/net_start.h"

enum { EXIT_FAILED = 1, EXIT_CONFIG = 2, CONFIG_MAX = 256 * 1024 };

struct plan {
    const struct rsd_join *join;
    struct rsd_config config;
    struct token token;
    const char *name;
    uid_t uid;
    gid_t gid;
};

/* ---- before anything is done ---- */

static int read_token(struct plan *plan, struct err *err)
{
    char line[TOKEN_TEXT_SIZE + 100];
    const char *text = plan->join->token;

    if (strcmp(text, "-") == 0) {
        if (!fgets(line, sizeof line, stdin))
            return err_set(err, -EINVAL, "no token came on the standard input");
        line[strcspn(line, " \t\r\n")] = 0;
        text = line;
    }
    return token_decode(text, strlen(text), &plan->token, err);
}

static int check_address(const char *elmer, struct err *err)
{
    struct address address;
    int code = address_parse(elmer, &address, err);

    return code == 0 && address.path
               ? err_set(err, -EINVAL, "%s is a socket of this host: nobody has to join by that", elmer)
               : code;
}

static int read_config(struct plan *plan, struct err *err)
{
    struct rsd_config standard;
    const struct rsd_join *join = plan->join;
    int code;

    rsd_config_default(&standard);
    rsd_config_default(&plan->config);
    code = rsd_config_read(&plan->config, join->config, !join->config_given, err);
    if (code < 0)
        return code;
    plan->name = join->name ? join->name : plan->config.name;
    if (!str_valid_hostname(plan->name))
        return err_set(err, -EINVAL, "\"%s\" is not the name of a host", plan->name);
    if (join->force || strcmp(plan->config.elmer, join->elmer) == 0 || strcmp(plan->config.elmer, standard.elmer) == 0)
        return 0;
    return err_set(err, -EEXIST, "%s says elmer = %s, not %s: if this host is to change to that cluster, say --force",
                   join->config, plan->config.elmer, join->elmer);
}

static int find_user(struct plan *plan, struct err *err)
{
    const struct passwd *entry = getpwnam(plan->config.user);

    if (!entry || entry->pw_uid == 0)
        return err_set(err, -ENOENT, "there is no user %s for the network half (or it is root): run systemd-sysusers",
                       plan->config.user);
    plan->uid = entry->pw_uid;
    plan->gid = entry->pw_gid;
    return 0;
}

/* The directory above pki/, which the user then makes. */
static int make_state_dir(const struct plan *plan, struct err *err)
{
    char path[sizeof plan->config.pki];
    const char *parent;

    snprintf(path, sizeof path, "%s", plan->config.pki);
    parent = dirname(path);
    if (mkdir(parent, 0700) < 0)
        return errno == EEXIST ? 0 : err_set(err, -errno, "cannot make %s: %s", parent, strerror(errno));
    return chown(parent, plan->uid, plan->gid) < 0
               ? err_set(err, -errno, "cannot give %s to %s: %s", parent, plan->config.user, strerror(errno))
               : 0;
}

static int prepare(struct plan *plan, struct err *err)
{
    int code = read_token(plan, err);

    if (code == 0)
        code = check_address(plan->join->elmer, err);
    if (code == 0)
        code = read_config(plan, err);
    return code;
}

/* ---- the user's part ---- */

static int run_enrolment(const struct plan *plan, struct err *err)
{
    static struct net_plan task;
    int status;
    pid_t pid;

    task.task = NET_ENROL;
    task.config = plan->config;
    task.token = plan->token;
    snprintf(task.elmer, sizeof task.elmer, "%s", plan->join->elmer);
    snprintf(task.name, sizeof task.name, "%s", plan->name);
    if (strcmp(task.elmer, plan->join->elmer) != 0 || strcmp(task.name, plan->name) != 0)
        return err_set(err, -ENAMETOOLONG, "the address or the name is too long");
    pid = net_start(&task, plan->uid, plan->gid, -1, -1, err);
    if (pid < 0)
        return pid;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set(err, -errno, "cannot wait: %s", strerror(errno));
    if (!WIFEXITED(status))
        return err_set(err, -EIO, "the process that joins was killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? 0 : -ECANCELED; /* it has said why */
}

/* ---- rsd.conf ---- */

/* Make text of what is in the file, if it is there, and put it in its place. */
static int rewrite(const struct plan *plan, int dir, const char *name, struct err *err)
{
    char *old = NULL, *text = NULL;
    int code = file_read(dir, name, CONFIG_MAX, &old, err);

    if (code == -ENOENT) {
        err_clear(err);
        code = 0;
    }
    if (code == 0 && !(text = join_conf_edit(old, plan->join->elmer, plan->join->name)))
        code = err_set(err, -ENOMEM, "out of memory");
    if (code == 0 && (!old || strcmp(old, text) != 0))
        code = file_write(dir, name, text, 0644, err);
    free(old);
    free(text);
    return code;
}

static int write_config(const struct plan *plan, struct err *err)
{
    char *real = realpath(plan->join->config, NULL);
    const char *path = real ? real : plan->join->config, *slash = strrchr(path, '/');
    char *parent = slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : strdup(".");
    int dir, code;

    (void)mkdir(ELMER_SYSCONFDIR, 0755); /* else opening says why */
    dir = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    code = dir < 0 ? err_set(err, -errno, "cannot open its directory: %s", strerror(errno))
                   : rewrite(plan, dir, slash ? slash + 1 : path, err);
    if (code < 0)
        err_prefix(err, "the certificate is there, but not %s", path);
    if (dir >= 0)
        close(dir);
    free(parent);
    free(real);
    return code;
}

/* ---- the whole ---- */

int rsd_join_main(const struct rsd_join *join)
{
    struct plan *plan = calloc(1, sizeof *plan);
    struct err err = ERR_INIT;
    int code;

    if (!plan)
        return EXIT_FAILED;
    plan->join = join;
    code = prepare(plan, &err);
    if (code < 0) {
        log_error("%s", err.text);
        free(plan);
        return EXIT_CONFIG;
    }
    if (geteuid() != 0)
        code = err_set(&err, -EPERM, "only root can let this host join");
    if (code == 0)
        code = find_user(plan, &err);
    if (code == 0)
        code = make_state_dir(plan, &err);
    if (code == 0)
        code = run_enrolment(plan, &err);
    if (code == 0)
        code = write_config(plan, &err);
    if (code == 0)
        printf("%s has joined the cluster of %s; %s says so.\nNext: systemctl enable rsd, and systemctl restart rsd.\n",
               plan->name, join->elmer, join->config);
    else if (code != -ECANCELED)
        log_error("%s", err.text);
    free(plan);
    return code == 0 && fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}
