/* main.c - rsd: options, run directories, the socket for users, and the start of its two halves. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/ticket/program.h"
#include "rsd/config.h"
#include "rsd/net_start.h"
#include "rsd/options.h"
#include "rsd/root/order.h"
#include "rsd/root/root.h"
#include "rsd/root/sched.h"

enum { EXIT_CONFIG = 2, BACKLOG = 128, RETRY_S = 5 };

/* ---- what needs root before there are two ---- */

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
static int bind_users_socket(const struct rsd_config *config, const char *name, struct err *err)
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
static void find_own_users(struct rsd_config *config)
{
    const struct passwd *entry = getpwnam("elmer-ticket");
    if (entry) {
        config->ticket_uid = entry->pw_uid;
        config->ticket_gid = entry->pw_gid;
    }
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

/* ---- main ---- */

static int write_plan(const struct rsd_config *config, const char *name, const void *plan, size_t size, struct err *err)
{
    int result = service_plan_write(config->rundir, name, plan, size);
    return result < 0 ? err_set(err, result, "cannot write %s/%s: %s", config->rundir, name, strerror(-result)) : 0;
}

/* The connection, or -errno. */
static int join_judge(const struct rsd_config *config, bool *certified, struct err *err)
{
    char path[200];
    int fd, result;
    snprintf(path, sizeof(path), "%s/" RSD_JUDGE_SOCKET, config->rundir);
    fd = ticket_program_reach(path, SOCK_STREAM, err);
    if (fd < 0)
        return fd;
    result = ticket_program_ready(fd, TICKET_READY_MS, certified, err);
    if (result < 0) {
        close(fd);
        return result;
    }
    rsd_join_rank(result, RSD_UNIT_TICKETS);
    return fd;
}

/* A unit of its own: it is joined now and, when it has gone, again (rsd/root/join.c). elmer-spawn is given a connection
 * that root has made, and makes the next by itself. */
static int join_tickets(const struct rsd_config *config, struct rsd_tickets *tickets, const struct ticket_serve *serve,
                        uint64_t begun, bool *certified, struct err *err)
{
    struct ticket_plan plan;
    char grants[200];
    int fd, result;
    ticket_plan_fill(&plan, serve, begun);
    result = write_plan(config, TICKET_PLAN_FILE, &plan, sizeof(plan), err);
    if (result < 0)
        return result;
    snprintf(grants, sizeof(grants), "%s/" RSD_GRANTS_SOCKET, config->rundir);
    tickets->grants = ticket_program_reach(grants, SOCK_SEQPACKET, err);
    if (tickets->grants < 0)
        return tickets->grants;
    fd = join_judge(config, certified, err);
    if (fd == -EIO) { /* it has ended to begin anew with this plan */
        err_clear(err);
        fd = join_judge(config, certified, err);
    }
    if (fd < 0) {
        close(tickets->grants);
        tickets->grants = -1;
    }
    tickets->unit = fd >= 0;
    return fd;
}

/* Where they are not required, a host without a place for its key goes on as before. */
static int begin_tickets(const struct rsd_config *config, const uint64_t *units, struct rsd_tickets *tickets,
                         struct err *err)
{
    int pair[2] = {-1, -1};
    struct ticket_serve serve = {.path = config->ticket_program,
                                 .dir = config->ticket_dir,
                                 .host = config->name,
                                 .hosts = config->vouch,
                                 .users = config->vouch_users,
                                 .deny_users = config->deny_users,
                                 .deny_groups = config->deny_groups,
                                 .required = config->tickets_required,
                                 .uid = config->ticket_uid,
                                 .gid = config->ticket_gid};
    struct err why = ERR_INIT;
    bool certified = false;
    int listener = -1;
    if (config->ticket_uid == 0)
        tickets->fd = err_set(&why, -ENOENT, "there is no user elmer-ticket: run systemd-sysusers");
    else if (units)
        tickets->fd = join_tickets(config, tickets, &serve, *units, &certified, &why);
    else
        tickets->fd = listener = bind_users_socket(config, "ticket.sock", &why);
    if (listener >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        serve.grants = pair[1];
        tickets->grants = pair[0];
        tickets->fd = ticket_program_serve(&serve, listener, &tickets->pid, &certified, &why);
        close(pair[1]);
        close(listener);
    }
    if (!config->tickets_required)
        log_notice("tickets = accept: jobs are run that no user has signed");
    if (tickets->fd < 0 && config->tickets_required)
        return err_set(err, tickets->fd, "tickets = require, but %s", why.text);
    if (tickets->fd < 0)
        log_warning("no tickets here: %s", why.text);
    else if (config->tickets_required && !certified && config->elmer[0] != '/')
        log_warning("the ticket key of this host is not certified: jobs that other hosts have submitted are refused "
                    "here, and its own there, until rsd --join; tickets = accept in rsd.conf lets them run");
    return 0;
}

/* Returns the socket for users; with units systemd has it. */
static int prepare(const struct rsd_config *config, bool units, uid_t *uid, gid_t *gid, struct err *err)
{
    int result = find_user(config, uid, gid, err);
    if (result == 0)
        result = find_programs(config, err);
    if (result == 0)
        result = make_dirs(config, err);
    return result == 0 && !units ? bind_users_socket(config, "rsd.sock", err) : result;
}

/* What may pass is waited for here, and said once, instead of being started again and again. -EPERM: it will not. The
 * service counts as started meanwhile, because that may take long. */
static int prepare_in_time(const struct rsd_config *config, bool units, uid_t *uid, gid_t *gid, struct err *err)
{
    struct err before = ERR_INIT;
    int result;
    while ((result = prepare(config, units, uid, gid, err)) < 0 && result != -EPERM) {
        if (strcmp(err->text, before.text) != 0)
            log_warning("rsd cannot begin: %s; it tries again every %d s", err->text, RETRY_S);
        sd_notifyf(0, "READY=1\nWATCHDOG=1\nSTATUS=rsd cannot begin: %s; it tries again every %d s", err->text,
                   RETRY_S);
        before = *err;
        err_clear(err);
        sleep(RETRY_S);
    }
    if (result >= 0 && before.text[0]) {
        log_notice("rsd can begin now");
        sd_notify(0, "STATUS=");
    }
    return result;
}

/* What rsd has laid down by now only a new process has: this one ends in time for the next try. */
static int begin_again(void)
{
    sd_notifyf(0, "READY=1\nSTATUS=rsd cannot begin, see its log; it is started again in %d s", RETRY_S);
    sleep(RETRY_S);
    return 1;
}

/* For elmer-rsd-admin, which compares it with new files. */
static void remember(const struct rsd_config *config, const char *given)
{
    struct err err = ERR_INIT;
    int dir = open(config->rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || file_write(dir, RSD_RUNNING_CONF, given, 0600, &err) < 0)
        log_warning("a reload will not know what has changed: %s", dir < 0 ? strerror(errno) : err.text);
    if (dir >= 0)
        close(dir);
}

/* Whether the network half and elmer-tickets are units, as rsd.service says; else they are children. The sockets of the
 * units are where the configuration has them by default. */
static bool has_units(const struct rsd_config *config)
{
    static struct rsd_config normal;
    const char *text = getenv(RSD_UNITS_VARIABLE);
    if (!text || strcmp(text, "yes") != 0)
        return false;
    rsd_config_default(&normal);
    if (strcmp(config->rundir, normal.rundir) != 0) {
        log_notice("rundir is not %s: the network half and elmer-tickets are children of rsd, without the sandbox of "
                   "their units",
                   normal.rundir);
        return false;
    }
    if (strcmp(config->user, normal.user) != 0 || strcmp(config->network, normal.network) != 0 ||
        strcmp(config->ticket_program, normal.ticket_program) != 0 ||
        strcmp(config->ticket_dir, normal.ticket_dir) != 0)
        log_warning("user, network, ticket_program and ticket_dir of rsd.conf have no effect: use systemctl edit "
                    "rsd-net and rsd-tickets");
    return true;
}

static int run_child(const struct rsd_config *config, struct net_plan *plan, uid_t uid, gid_t gid, int listener,
                     struct rsd_tickets *tickets, struct err *err)
{
    int pair[2];
    pid_t net;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    net = net_start(plan, uid, gid, pair[1], listener, err);
    close(pair[1]);
    close(listener);
    return net < 0 ? net : rsd_root_main(pair[0], net, config, tickets);
}

static int run(struct rsd_config *config, const char *given, struct err *err)
{
    struct rsd_tickets tickets = {.fd = -1, .grants = -1}; /* nothing known of its program yet */
    static struct net_plan plan;
    bool units;
    int listener, result;
    uid_t uid = 0;
    gid_t gid = 0;
    find_own_users(config);
    log_fields();
    units = has_units(config);
    listener = prepare_in_time(config, units, &uid, &gid, err);
    if (listener < 0)
        return listener;
    remember(config, given);
    if (units && rsd_begun(config, &plan.begun) < 0)
        log_warning("the network half and elmer-tickets begin anew with each start of rsd: %s/sup cannot be written",
                    config->rundir);
    net_plan_serve(&plan, config);
    sched_rank(0, (struct order_rank){SCHED_FIFO, ORDER_DAEMON}, false); /* where it is refused, probe.c says why */
    result = units ? write_plan(config, NET_PLAN_FILE, &plan, sizeof(plan), err) : 0;
    if (result == 0)
        result = begin_tickets(config, units ? &plan.begun : NULL, &tickets, err);
    if (result < 0) {
        log_error("rsd cannot begin: %s", err->text);
        return begin_again();
    }
    if (units)
        result = rsd_root_main(-1, 0, config, tickets.fd < 0 ? NULL : &tickets);
    else
        result = run_child(config, &plan, uid, gid, listener, tickets.fd < 0 ? NULL : &tickets, err);
    return result == -ECANCELED ? begin_again() : result;
}

enum { GO_ON = -1 };

/* What an administrator asks for is done by another program, so that it is not in the one that stays. */
static int hand_over(char **argv)
{
    execv(ELMER_LIBEXECDIR "/elmer-rsd-admin", argv);
    log_error("cannot start %s: %s", ELMER_LIBEXECDIR "/elmer-rsd-admin", strerror(errno));
    return 1;
}

/* Returns GO_ON or the exit status. *config stays what it is unless it is given. */
static int parse(int argc, char **argv, const char **config)
{
    for (int option; (option = options_next(argc, argv, "+", rsd_command.options)) != -1;) {
        if (option == 'c')
            *config = optarg;
        else if (option >= RSD_OPTION_ADMIN)
            return hand_over(argv);
        else
            return options_common(&rsd_command, option, argv, EXIT_CONFIG);
    }
    return optind == argc ? GO_ON : options_surplus(&rsd_command, argv[optind], EXIT_CONFIG);
}

static void say_problem(const char *text, void *data)
{
    (void)data;
    log_error("%s", text);
}

static void on_given(const struct ini_value *value, void *data)
{
    fprintf(data, "%s = %s\n", value->key->name, value->value);
}

/* A reload before the root half hears of it: it waits for something. */
static void on_hangup(int number)
{
    (void)number;
    _exit(RSD_EXIT_AGAIN);
}

int main(int argc, char **argv)
{
    char *text = NULL;
    size_t size;
    struct ini_watch watch = {.problem = say_problem, .given = on_given};
    FILE *all;
    static struct rsd_config config;
    struct err err = ERR_INIT;
    const char *given = NULL;
    int status;
    log_open("rsd", LOG_LEVEL_INFO);
    status = parse(argc, argv, &given);
    if (status != GO_ON)
        return status;
    signal(SIGHUP, on_hangup);
    watch.data = all = open_memstream(&text, &size);
    if (!all || fputs("[rsd]\n", all) < 0)
        return 1;
    rsd_config_default(&config);
    if (rsd_config_read(&config, given ? given : ELMER_SYSCONFDIR "/rsd.conf", !given, &watch, &err) < 0) {
        fclose(all);
        free(text);
        return EXIT_CONFIG;
    }
    if (geteuid() != 0) {
        log_error("rsd must be started by root, because it starts processes of all users: systemctl start rsd");
        return 1;
    }
    umask(022);
    if (fclose(all) != 0)
        return 1;
    int result = run(&config, text, &err);
    free(text);
    if (result < 0) {
        log_error("%s", err.text);
        return result == -EPERM ? EXIT_CONFIG : 1;
    }
    return result;
}
