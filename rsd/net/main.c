/* main.c - elmer-rsd-net, the program of rsd's network half. rsd has made it a user without rights before; what it is
 * to do is on descriptor 5. Or systemd has (rsd-net.service); then it is in a file of root's
 * (door.c). */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/confine.h"
#include "lib/base/log.h"
#include "lib/base/service.h"
#include "rsd/net/door.h"
#include "rsd/net/enroll.h"
#include "rsd/net/net.h"
#include "rsd/net/plan.h"

static bool read_plan(struct net_plan *plan)
{
    ssize_t got = pread(NET_FD_PLAN, plan, sizeof(*plan), 0);
    close(NET_FD_PLAN);
    return got == (ssize_t)sizeof(*plan) && plan->size == sizeof(*plan) &&
           strncmp(plan->version, PACKAGE_VERSION, sizeof(plan->version)) == 0;
}

static int serve(const struct net_plan *plan)
{
    fcntl(NET_FD_ROOT, F_SETFD, FD_CLOEXEC);
    fcntl(NET_FD_LISTEN, F_SETFD, FD_CLOEXEC);
    log_open("rsd-net", LOG_LEVEL_INFO);
    log_fields();
    return rsd_net_main(NET_FD_ROOT, NET_FD_LISTEN, NULL, &plan->config) < 0 ? 1 : 0;
}

/* Or it would be found out when the certificate has to be renewed, months from now. */
static void look_at_pki(const struct rsd_config *config)
{
    if (config->elmer[0] != '/' && access(config->pki, W_OK) < 0 && errno == EROFS)
        log_warning(
            "the network half may not write in %s, so this host's certificate cannot be renewed: systemctl edit "
            "rsd-net, [Service], ReadWritePaths=%s",
            config->pki, config->pki);
}

static int serve_unit(void)
{
    static struct door door;
    int users = service_listener("users"), fd, result;
    log_open("rsd-net", LOG_LEVEL_INFO);
    log_fields();
    if (!door_init(&door) || users < 0) {
        log_error("the network half has not been given its sockets: systemctl restart rsd");
        return 2;
    }
    fd = door_await(&door);
    if (fd < 0)
        return SERVICE_AGAIN;
    look_at_pki(&door.plan.config);
    result = rsd_net_main(fd, users, &door, &door.plan.config);
    return result < 0 ? 1 : result;
}

static int enrol(const struct net_plan *plan)
{
    static struct enrol_ticket ticket;
    struct err err = ERR_INIT;
    signal(SIGPIPE, SIG_IGN);
    ticket.key = plan->ticket_key;
    if (enroll(plan->elmer, plan->name, &plan->token, plan->config.pki, &ticket, &err) >= 0) {
        if (*ticket.key)
            dprintf(NET_FD_ROOT, "%s\n%s", ticket.certificate, ticket.ca);
        return 0;
    }
    log_error("%s has not joined by %s: %s", plan->name, plan->elmer, err.text);
    return 1;
}

/* What takes it over by the network or by a user's command stays within it. */
static void confine_it(void)
{
    int result = confine(CONFINE_NETWORK);
    if (result < 0)
        log_warning("the network half has no filter of system calls: %s", strerror(-result));
}

int main(void)
{
    static struct net_plan plan;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    log_open("rsd", LOG_LEVEL_INFO);
    if (geteuid() != 0 && getenv("LISTEN_FDS")) {
        confine_it();
        return serve_unit();
    }
    if (geteuid() == 0 || !read_plan(&plan)) {
        fprintf(stderr, "elmer-rsd-net: rsd or systemd starts it, and both must be of one build; restart rsd\n");
        return 1;
    }
    confine_it();
    return plan.task == NET_ENROL ? enrol(&plan) : serve(&plan);
}
