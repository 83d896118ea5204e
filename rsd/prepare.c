/* prepare.c - see prepare.h. */
#include <config.h>

#include "rsd/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/service.h"
#include "rsd/net_start.h"
#include "rsd/root/root.h"

enum { BACKLOG = 128 };

/* ---- the configuration ---- */

static void say_problem(const char *text, void *data)
{
    (void)data;
    log_error("configuration: %s", text);
}

static void on_given(const struct ini_value *value, void *data)
{
    fprintf(data, "%s = %s\n", value->key->name, value->value);
}

int prepare_config(struct rsd_config *config, const char *path, char **given, struct err *err)
{
    struct ini_watch watch = {.problem = say_problem, .given = on_given};
    size_t size;
    FILE *all;
    int result;
    watch.data = all = open_memstream(given, &size);
    if (!all || fputs("[rsd]\n", all) < 0)
        return err_set(err, -ENOMEM, "there is no memory for the configuration");
    rsd_config_default(config);
    result = rsd_config_read(config, path ? path : ELMER_SYSCONFDIR "/rsd.conf", !path, &watch, err);
    if (fclose(all) != 0 && result == 0)
        result = err_set(err, -ENOMEM, "there is no memory for the configuration");
    return result;
}

/* For elmer-rsd-admin, which compares it with new files. */
void prepare_remember(const struct rsd_config *config, const char *given)
{
    struct err err = ERR_INIT;
    int dir = open(config->rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || file_write(dir, RSD_RUNNING_CONF, given, 0600, &err) < 0)
        log_warning("a reload will not know what has changed: %s", dir < 0 ? strerror(errno) : err.text);
    if (dir >= 0)
        close(dir);
}

/* ---- directories, sockets, users ---- */

/* Also one that an rsd before has given away. */
static int make_dir(const char *parent, const char *name, mode_t mode, uid_t owner, struct err *err)
{
    char path[200];
    struct stat st;
    snprintf(path, sizeof(path), "%s%s", parent, name);
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return err_set(err, -errno, "cannot make %s: %s", path, strerror(errno));
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || (st.st_uid != 0 && st.st_uid != owner))
        return err_set(err, -EPERM, "%s is not a directory of root: remove it and start again", path);
    if (chmod(path, mode) < 0)
        return err_set(err, -errno, "cannot set the mode of %s: %s", path, strerror(errno));
    return 0;
}

/* Where an rsd that was root has left them. */
static void move_files(const struct rsd_config *config)
{
    static const char *const names[] = {"order", "reserve"};
    char from[200], to[200];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(from, sizeof(from), "%s/%s", config->rundir, names[i]);
        snprintf(to, sizeof(to), "%s/sup/%s", config->rundir, names[i]);
        (void)rename(from, to); /* mostly there is none */
    }
}

static int make_dirs(const struct rsd_config *config, struct err *err)
{
    int result = make_dir(config->rundir, "", 0755, 0, err);
    if (result == 0)
        result = make_dir(config->rundir, "/sup", 0700, config->jobs_uid, err);
    if (result == 0)
        result = make_dir(config->rundir, "/jobs", 0711, 0, err);
    if (result == 0)
        move_files(config);
    return result;
}

/* Bound here, because only root writes to the directory; served by others. */
int prepare_socket(const struct rsd_config *config, const char *name, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", config->rundir, name);
    if (fd < 0)
        return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
        close(fd);
        return err_set(err, -EADDRINUSE, "another rsd listens at %s: stop it first", address.sun_path);
    }
    close(fd);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(address.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(address.sun_path, 0666) < 0 ||
        listen(fd, BACKLOG) < 0) {
        int result = err_set(err, -errno, "cannot listen at %s: %s", address.sun_path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return result;
    }
    return fd;
}

/* Found while we are root: afterwards nothing depends on the name service. */
static int find_user(const struct rsd_config *config, uid_t *uid, gid_t *gid, struct err *err)
{
    const struct passwd *entry = getpwnam(config->user);
    if (!entry)
        return err_set(err, -ENOENT,
                       "there is no user %s for the network half: run systemd-sysusers, or set user in rsd.conf",
                       config->user);
    if (entry->pw_uid == 0)
        return err_set(err, -EPERM, "user = %s is root: the network half must not be", config->user);
    *uid = entry->pw_uid;
    *gid = entry->pw_gid;
    return 0;
}

/* Jobs must start also between an upgrade and systemd-sysusers. */
void prepare_users(struct rsd_config *config)
{
    const struct passwd *entry = getpwnam("elmer-ticket");
    if (entry) {
        config->ticket_uid = entry->pw_uid;
        config->ticket_gid = entry->pw_gid;
    }
    entry = getpwnam(config->user);
    config->network_uid = entry ? entry->pw_uid : 0;
    entry = getpwnam("elmer-rsd"); /* which a unit is, whatever `user` says */
    config->rsd_uid = entry ? entry->pw_uid : 0;
    entry = getpwnam("elmer");
    config->elmer_uid = entry ? entry->pw_uid : 0;
    entry = getpwnam("elmer-jobs");
    if (entry && entry->pw_uid != 0) {
        config->jobs_uid = entry->pw_uid;
        config->jobs_gid = entry->pw_gid;
    } else {
        log_warning("there is no user elmer-jobs: rsd runs as uid %u, which others may have as well; run "
                    "systemd-sysusers and restart rsd",
                    (unsigned)config->jobs_uid);
    }
    entry = getpwnam("elmer-sup");
    if (entry && entry->pw_uid != 0)
        config->supervisor_uid = entry->pw_uid;
    else
        log_warning("there is no user elmer-sup: supervisors of jobs run as uid %u, which others may have as "
                    "well; run systemd-sysusers and restart rsd",
                    (unsigned)config->supervisor_uid);
}

static int find_programs(const struct rsd_config *config, struct err *err)
{
    const char *const programs[] = {config->network, config->spawn};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (access(programs[i], X_OK) < 0)
            return err_set(err, -errno, "cannot execute %s: %s", programs[i], strerror(errno));
    }
    return 0;
}

/* ---- all of it ---- */

static int prepare(const struct rsd_config *config, uid_t *uid, gid_t *gid, struct err *err)
{
    int result = find_user(config, uid, gid, err);
    if (result == 0)
        result = find_programs(config, err);
    return result == 0 ? make_dirs(config, err) : result;
}

int prepare_in_time(const struct rsd_config *config, uid_t *uid, gid_t *gid, const struct prepare_then *then,
                    struct err *err)
{
    struct err before = ERR_INIT;
    int result;
    for (;;) {
        result = prepare(config, uid, gid, err);
        if (result == 0)
            result = then->next(then->data, err);
        if (result >= 0 || result == -EPERM)
            break;
        if (strcmp(err->text, before.text) != 0)
            log_warning("rsd cannot begin: %s; it tries again every %d s", err->text, PREPARE_AGAIN_S);
        then->waits(then->data, err->text);
        before = *err;
        err_clear(err);
    }
    if (result >= 0 && before.text[0]) {
        log_notice("rsd can begin now");
        then->waits(then->data, NULL);
    }
    return result;
}

/* ---- plans ---- */

struct ticket_serve prepare_serve(const struct rsd_config *config)
{
    return (struct ticket_serve){.path = config->ticket_program,
                                 .dir = config->ticket_dir,
                                 .host = config->name,
                                 .hosts = config->vouch,
                                 .users = config->vouch_users,
                                 .deny_users = config->deny_users,
                                 .deny_groups = config->deny_groups,
                                 .required = config->tickets_required,
                                 .uid = config->ticket_uid,
                                 .gid = config->ticket_gid,
                                 .grants = -1};
}

static int write_plan(const struct rsd_config *config, const char *name, const void *plan, size_t size, struct err *err)
{
    int result = service_plan_write(config->rundir, name, plan, size);
    return result < 0 ? err_set(err, result, "cannot write %s/%s: %s", config->rundir, name, strerror(-result)) : 0;
}

int prepare_plans(const struct rsd_config *config, struct err *err)
{
    const struct ticket_serve serve = prepare_serve(config);
    static struct net_plan net;
    struct ticket_plan tickets;
    int result;
    if (rsd_begun(config, &net.begun) < 0)
        log_warning("the network half and elmer-tickets begin anew with each start of rsd: %s/sup cannot be written",
                    config->rundir);
    net_plan_serve(&net, config);
    ticket_plan_fill(&tickets, &serve, net.begun);
    result = write_plan(config, NET_PLAN_FILE, &net, sizeof(net), err);
    return result < 0 ? result : write_plan(config, TICKET_PLAN_FILE, &tickets, sizeof(tickets), err);
}
