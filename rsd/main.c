/* main.c - rsd: options, and its start. Where systemd runs it is elmer-jobs with its first action, and what takes root
 * is done by elmer-rsd-begin, which it joins; the network half and elmer-tickets are units, too. Else it is root until
 * it has started, makes all of that itself, and they are its children. */
#include <config.h>

#include <errno.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/ticket/program.h"
#include "rsd/errand.h"
#include "rsd/prepare.h"
#include "rsd/word.h"
#include "rsd/net_start.h"
#include "rsd/options.h"
#include "rsd/root/limits.h"
#include "rsd/root/root.h"
#include "rsd/root/sched.h"

/* What rsd has laid down by now only a new process has: this one ends in time for the next try. */
static int begin_again(void)
{
    sd_notifyf(0, "READY=1\nSTATUS=rsd cannot begin, see its log; it is started again in %d s", PREPARE_AGAIN_S);
    sleep(PREPARE_AGAIN_S);
    return 1;
}

/* Where they are not required, a host without a place for its key goes on as before. why: without them. */
static int go_on_without(const struct rsd_config *config, const struct rsd_tickets *tickets, bool certified,
                         const struct err *why, struct err *err)
{
    if (!config->tickets_required)
        log_notice("tickets = accept: jobs are run that no user has signed");
    if (tickets->fd < 0 && config->tickets_required)
        return err_set(err, tickets->fd, "tickets = require, but %s", why->text);
    if (tickets->fd < 0)
        log_warning("no tickets here: %s", why->text);
    else if (config->tickets_required && !certified && config->elmer[0] != '/')
        log_warning("the ticket key of this host is not certified: jobs that other hosts have submitted are refused "
                    "here, and its own there, until rsd --join; tickets = accept in rsd.conf lets them run");
    return 0;
}

/* ---- with units beside it ---- */

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

/* It is joined now and, when it has gone, again (rsd/root/join.c). */
static int join_tickets(const struct begin_plan *plan, struct rsd_tickets *tickets, struct err *err)
{
    struct err why = ERR_INIT;
    bool certified = false;
    if (!plan->tickets)
        tickets->fd = err_set(&why, -ENOENT, "%s", plan->reason);
    else
        tickets->fd = join_judge(&plan->config, &certified, &why);
    if (tickets->fd == -EIO) { /* it has ended to begin anew with what root has written */
        err_clear(&why);
        tickets->fd = join_judge(&plan->config, &certified, &why);
    }
    tickets->unit = tickets->fd >= 0;
    return go_on_without(&plan->config, tickets, certified, &why, err);
}

/* Before anything else, with SYS_NICE if there is that. */
static int put_root_down(struct err *err)
{
    const struct passwd *entry = getpwnam("elmer-jobs");
    int result;
    if (!entry)
        return err_set(err, -ENOENT, "there is no user elmer-jobs: run systemd-sysusers");
    result = rsd_become(entry->pw_uid, entry->pw_gid);
    return result < 0 ? err_set(err, result, "cannot become elmer-jobs: %s", strerror(-result)) : 0;
}

static int run_beside_units(void)
{
    static struct begin_plan plan;
    struct rsd_tickets tickets = {.fd = -1, .grants = -1};
    struct err err = ERR_INIT;
    int result = put_root_down(&err), line = -1;
    struct limits unused;
    limits_of_daemon(&unused); /* before it is passed descriptors */
    log_fields();
    if (result == 0)
        result = line = ticket_program_reach(ELMER_RSD_RUNDIR "/" RSD_SPAWN_SOCKET, SOCK_SEQPACKET, &err);
    if (line >= 0)
        result = word_hear(line, &plan, WORD_PATIENCE_MS, &err);
    if (result > 0)
        return result == PREPARE_EXIT_CONFIG ? result : begin_again();
    if (result == -ETIMEDOUT) {
        log_error("rsd cannot begin: %s", err.text);
        return RSD_EXIT_STUCK;
    }
    plan.facts.line = line;
    sched_rank(0, (struct order_rank){SCHED_FIFO, ORDER_DAEMON}, false); /* where it is refused, probe.c says why */
    if (result == 0)
        result = join_tickets(&plan, &tickets, &err);
    if (result < 0) {
        log_error("rsd cannot begin: %s", err.text);
        return begin_again();
    }
    result = rsd_root_main(-1, 0, &plan.config, tickets.fd < 0 ? NULL : &tickets, &plan.facts);
    return result == -ECANCELED ? begin_again() : result;
}

/* ---- alone ---- */

static int start_tickets(const struct rsd_config *config, struct rsd_tickets *tickets, struct err *err)
{
    int pair[2] = {-1, -1}, listener = -1;
    struct ticket_serve serve = prepare_serve(config);
    struct err why = ERR_INIT;
    bool certified = false;
    if (config->ticket_uid == 0)
        tickets->fd = err_set(&why, -ENOENT, "there is no user elmer-ticket: run systemd-sysusers");
    else
        tickets->fd = listener = prepare_socket(config, "ticket.sock", &why);
    if (listener >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        serve.grants = pair[1];
        tickets->grants = pair[0];
        tickets->fd = ticket_program_serve(&serve, listener, &tickets->pid, &certified, &why);
        close(pair[1]);
        close(listener);
    }
    return go_on_without(config, tickets, certified, &why, err);
}

static int bind_users(void *data, struct err *err)
{
    return prepare_socket(data, "rsd.sock", err);
}

/* The service counts as started meanwhile, because that may take long. */
static void say_waits(void *data, const char *why)
{
    (void)data;
    word_show(why);
    if (why)
        sleep(PREPARE_AGAIN_S);
}

static int start_halves(const struct rsd_config *config, uid_t uid, gid_t gid, int listener,
                        struct rsd_tickets *tickets, struct err *err)
{
    static struct net_plan plan;
    int pair[2];
    pid_t net;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    net_plan_serve(&plan, config);
    net = net_start(&plan, uid, gid, pair[1], listener, err);
    close(pair[1]);
    close(listener);
    return net < 0 ? net : rsd_root_main(pair[0], net, config, tickets, NULL);
}

static int run_alone(struct rsd_config *config, const char *given, struct err *err)
{
    struct rsd_tickets tickets = {.fd = -1, .grants = -1}; /* nothing known of its program yet */
    const struct prepare_then then = {.next = bind_users, .waits = say_waits, .data = config};
    int listener, result;
    uid_t uid = 0;
    gid_t gid = 0;
    prepare_users(config);
    log_fields();
    listener = prepare_in_time(config, &uid, &gid, &then, err);
    if (listener < 0)
        return listener;
    prepare_remember(config, given);
    sched_rank(0, (struct order_rank){SCHED_FIFO, ORDER_DAEMON}, false); /* where it is refused, probe.c says why */
    result = start_tickets(config, &tickets, err);
    if (result < 0) {
        log_error("rsd cannot begin: %s", err->text);
        return begin_again();
    }
    result = start_halves(config, uid, gid, listener, tickets.fd < 0 ? NULL : &tickets, err);
    return result == -ECANCELED ? begin_again() : result;
}

/* ---- main ---- */

enum { GO_ON = -1 };

static int hand_over(int argc, char **argv)
{
    int result = errand_hand_over(ELMER_LIBEXECDIR "/elmer-rsd-admin", argc, argv);
    log_error("cannot start %s: %s", ELMER_LIBEXECDIR "/elmer-rsd-admin", strerror(-result));
    return 1;
}

/* Returns GO_ON or the exit status. *config stays what it is unless it is given. */
static int parse(int argc, char **argv, const char **config)
{
    for (int option; (option = options_next(argc, argv, "+", rsd_command.options)) != -1;) {
        if (option == 'c')
            *config = optarg;
        else if (option >= RSD_OPTION_ADMIN)
            return hand_over(argc, argv);
        else
            return options_common(&rsd_command, option, argv, PREPARE_EXIT_CONFIG);
    }
    return optind == argc ? GO_ON : options_surplus(&rsd_command, argv[optind], PREPARE_EXIT_CONFIG);
}

/* A reload before the jobs half hears of it: it waits for something. */
static void on_hangup(int number)
{
    (void)number;
    _exit(RSD_EXIT_AGAIN);
}

/* As rsd.service says. */
static bool has_units(void)
{
    const char *text = getenv(RSD_UNITS_VARIABLE);
    return text && strcmp(text, "yes") == 0;
}

static int main_beside_units(const char *given)
{
    if (given) {
        log_error(
            "-c %s: with rsd-spawn.service that reads the files: give elmer-rsd-begin the option by systemctl edit "
            "rsd-spawn",
            given);
        return PREPARE_EXIT_CONFIG;
    }
    return run_beside_units();
}

static int main_alone(const char *given)
{
    static struct rsd_config config;
    struct err err = ERR_INIT;
    char *text = NULL;
    int result;
    if (prepare_config(&config, given, &text, &err) < 0) {
        free(text);
        return PREPARE_EXIT_CONFIG;
    }
    if (geteuid() != 0) {
        log_error("rsd must be started by root, because it starts processes of all users: systemctl start rsd");
        free(text);
        return 1;
    }
    result = run_alone(&config, text, &err);
    free(text);
    if (result < 0)
        log_error("rsd cannot begin: %s", err.text);
    return result >= 0 ? result : result == -EPERM ? PREPARE_EXIT_CONFIG : 1;
}

int main(int argc, char **argv)
{
    const char *given = NULL;
    int status;
    log_open("rsd", LOG_LEVEL_INFO);
    status = parse(argc, argv, &given);
    if (status != GO_ON)
        return status;
    signal(SIGHUP, on_hangup);
    umask(022);
    return has_units() ? main_beside_units(given) : main_alone(given);
}
