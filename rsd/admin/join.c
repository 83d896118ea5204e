/* join.c - rsd --join.
 *
 * The token and rsd.conf are read -> the program of the network half, as its user, makes the key, talks to elmer and
 * writes the certificate: nothing from the network is looked at by root -> the fragment rsd.conf.d/50-join.conf is
 * written, unless the files say all that already; rsd.conf is the administrator's -> with --now systemd starts rsd. A
 * failure before the fragment leaves everything as it was. elmer-tickets, as another user, makes the key of the host's
 * tickets, and gets its certificate from the other program's talk; without it the host joins, too. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/net/address.h"
#include "lib/pki/token.h"
#include "lib/ticket/program.h"
#include "rsd/config.h"
#include "rsd/admin/join.h"
#include "rsd/admin/prompt.h"
#include "rsd/net_start.h"

enum { EXIT_FAILED = 1, EXIT_CONFIG = 2 };

struct plan {
    const struct rsd_join *join;
    char elmer[sizeof(((struct rsd_config *)0)->elmer)]; /* with its port */
    struct rsd_config config;
    struct token token;
    const char *name;
    bool named; /* not as the host itself */
    uid_t uid;
    gid_t gid;
};

/* ---- before anything is done ---- */

static int read_token(struct plan *plan, struct err *err)
{
    char line[TOKEN_TEXT_SIZE + 100];
    int result = prompt_secret("Token: ", line, sizeof(line), err);

    if (result == 0)
        result = token_decode(line, strlen(line), &plan->token, err);
    explicit_bzero(line, sizeof(line));
    return result;
}

/* HOST stands for HOST:7110. */
static int read_address(struct plan *plan, struct err *err)
{
    struct address address;
    const char *elmer = plan->join->elmer;
    int length = snprintf(plan->elmer, sizeof(plan->elmer),
                          strchr(elmer, ':') || *elmer == '/' ? "%s" : "%s:" ADDRESS_PORT, elmer),
        result;

    if (length < 0 || (size_t)length >= sizeof(plan->elmer))
        return err_set(err, -ENAMETOOLONG, "the address is too long");
    result = address_parse(plan->elmer, &address, err);
    return result == 0 && address.path
               ? err_set(err, -EINVAL, "%s is a socket of this host: nobody has to join by that", elmer)
               : result;
}

static int read_config(struct plan *plan, struct err *err)
{
    struct rsd_config standard;
    const struct rsd_join *join = plan->join;
    int result;

    rsd_config_default(&standard);
    rsd_config_default(&plan->config);
    result = rsd_config_read(&plan->config, join->config, !join->config_given, NULL, err);
    if (result < 0)
        return result;
    plan->name = join->name ? join->name : plan->config.name;
    plan->named = strcmp(plan->name, standard.name) != 0 || strcmp(plan->name, plan->config.name) != 0;
    if (!str_valid_hostname(plan->name))
        return err_set(err, -EINVAL, "\"%s\" is not the name of a host", plan->name);
    if (join->force || rsd_config_has_elmer(&plan->config, plan->elmer) ||
        strcmp(plan->config.elmer, standard.elmer) == 0)
        return 0;
    return err_set(err, -EEXIST, "%s says elmer = %s, not %s: if this host is to change to that cluster, say --force",
                   join->config, plan->config.elmer, plan->elmer);
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
    char path[sizeof(plan->config.pki)];
    const char *parent;

    snprintf(path, sizeof(path), "%s", plan->config.pki);
    parent = dirname(path);
    if (mkdir(parent, 0700) < 0)
        return errno == EEXIST ? 0 : err_set(err, -errno, "cannot make %s: %s", parent, strerror(errno));
    return chown(parent, plan->uid, plan->gid) < 0
               ? err_set(err, -errno, "cannot give %s to %s: %s", parent, plan->config.user, strerror(errno))
               : 0;
}

static int prepare(struct plan *plan, struct err *err)
{
    int result = read_token(plan, err);

    if (result == 0)
        result = read_address(plan, err);
    if (result == 0)
        result = read_config(plan, err);
    return result;
}

/* ---- the user's part ---- */

/* Its pid; answer: where the talk's result goes to, or -1. What cannot be is said, and the host joins without. */
static pid_t begin_ticket_key(const struct plan *plan, char key[NET_TICKET_KEY_SIZE], int *answer)
{
    char pin[2 * TOKEN_PIN_BYTES + 1];
    const char *const args[] = {"elmer-tickets", "key", plan->config.ticket_dir, plan->name, pin, NULL};
    const struct passwd *entry = getpwnam("elmer-ticket");
    struct err err = ERR_INIT;
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    pid_t pid = -ENOENT;

    hex_write(plan->token.pin, TOKEN_PIN_BYTES, pin);
    if (!entry || entry->pw_uid == 0)
        err_set(&err, -ENOENT, "there is no user elmer-ticket: run systemd-sysusers");
    else if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        pid = err_set(&err, -errno, "%s", strerror(errno));
    else
        pid = ticket_program_start(plan->config.ticket_program, args, entry->pw_uid, entry->pw_gid, in[0], out[1], -1,
                                   &err);
    close(in[0]);
    close(out[1]);
    *answer = in[1];
    if (pid < 0)
        log_warning("no ticket key: %s; the host joins without", err.text);
    else if (read(out[0], key, NET_TICKET_KEY_SIZE) == NET_TICKET_KEY_SIZE)
        key[NET_TICKET_KEY_SIZE - 1] = 0;
    else
        key[0] = 0;
    close(out[0]);
    return pid;
}

static int run_enrolment(const struct plan *plan, struct err *err)
{
    static struct net_plan task;
    int status, answer;
    pid_t pid, ticket;

    task.task = NET_ENROL;
    task.config = plan->config;
    task.token = plan->token;
    snprintf(task.elmer, sizeof(task.elmer), "%s", plan->elmer);
    snprintf(task.name, sizeof(task.name), "%s", plan->name);
    if (strcmp(task.elmer, plan->elmer) != 0 || strcmp(task.name, plan->name) != 0)
        return err_set(err, -ENAMETOOLONG, "the address or the name is too long");
    ticket = begin_ticket_key(plan, task.ticket_key, &answer);
    pid = net_start(&task, plan->uid, plan->gid, answer, -1, err);
    close(answer);
    if (ticket > 0 && pid < 0)
        (void)kill(ticket, SIGKILL);
    if (pid < 0)
        return pid;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set(err, -errno, "cannot wait: %s", strerror(errno));
    while (ticket > 0 && waitpid(ticket, NULL, 0) < 0 && errno == EINTR) /* it has said what it has not done */
        ;
    if (!WIFEXITED(status))
        return err_set(err, -EIO, "the process that joins was killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? 0 : -ECANCELED; /* it has said why */
}

/* ---- its fragment of rsd.conf ---- */

static bool said(const struct plan *plan, const struct rsd_config *config)
{
    return rsd_config_has_elmer(config, plan->elmer) && strcmp(config->name, plan->name) == 0;
}

static int write_fragment(const struct plan *plan, const char *path, struct err *err)
{
    (void)mkdir(ELMER_SYSCONFDIR, 0755); /* else opening says why */
    (void)mkdir(path, 0755);
    return join_conf_write(path, plan->elmer, plan->named ? plan->name : NULL, err);
}

/* A fragment of the administrator's may come after ours. */
static int read_again(struct plan *plan, struct err *err)
{
    int result;

    rsd_config_default(&plan->config);
    result = rsd_config_read(&plan->config, plan->join->config, true, NULL, err);
    if (result == 0 && !said(plan, &plan->config))
        result = err_set(err, -EEXIST,
                         "another file in %s.d says elmer = %s and name = %s, which counts more than " JOIN_CONF
                         ": take that out",
                         plan->join->config, plan->config.elmer, plan->config.name);
    return result;
}

static int write_config(struct plan *plan, struct err *err)
{
    char *path = str_format("%s.d", plan->join->config);
    int result = 0;

    if (!path)
        return err_set(err, -ENOMEM, "out of memory");
    if (!said(plan, &plan->config)) {
        result = write_fragment(plan, path, err);
        if (result == 0)
            result = read_again(plan, err);
        if (result < 0)
            err_prefix(err, "the certificate is there, but rsd would not use it");
    }
    free(path);
    return result;
}

/* ---- the service ---- */

/* 0 if systemctl says so; it has said why not. */
static int systemctl(const char *verb, struct err *err)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        execlp("systemctl", "systemctl", verb, "rsd", (char *)NULL);
        log_error("cannot start systemctl: %s", strerror(errno));
        _exit(127);
    }
    if (pid < 0)
        return err_set(err, -errno, "cannot start systemctl: %s", strerror(errno));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set(err, -errno, "cannot wait: %s", strerror(errno));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? 0
               : err_set(err, -EIO, "the host has joined, but systemctl %s rsd has failed: see systemctl status rsd",
                         verb);
}

/* One that runs reads its certificate and its files at its start. */
static int start_service(struct err *err)
{
    int result = systemctl("enable", err);

    return result == 0 ? systemctl("restart", err) : result;
}

/* ---- the whole ---- */

int rsd_join_main(const struct rsd_join *join)
{
    struct plan *plan = calloc(1, sizeof(*plan));
    struct err err = ERR_INIT;
    int result;

    if (!plan)
        return EXIT_FAILED;
    plan->join = join;
    result = prepare(plan, &err);
    if (result < 0) {
        log_error("%s", err.text);
        free(plan);
        return EXIT_CONFIG;
    }
    if (geteuid() != 0)
        result = err_set(&err, -EPERM, "only root can let this host join: run rsd --join as root");
    if (result == 0)
        result = find_user(plan, &err);
    if (result == 0)
        result = make_state_dir(plan, &err);
    if (result == 0)
        result = run_enrolment(plan, &err);
    if (result == 0)
        result = write_config(plan, &err);
    if (result == 0)
        printf("%s has joined the cluster of %s.\n%s", plan->name, plan->elmer,
               join->now ? "" : "Next: systemctl enable rsd, and systemctl restart rsd.\n");
    if (result == 0 && fflush(stdout) != 0)
        result = err_set(&err, -errno, "cannot print: %s", strerror(errno));
    if (result == 0 && join->now)
        result = start_service(&err);
    if (result < 0 && result != -ECANCELED)
        log_error("%s", err.text);
    free(plan);
    return result == 0 ? 0 : EXIT_FAILED;
}
