/* join.c - the network half and elmer-tickets where they are units of their own (rsd-net.service, rsd-tickets.service):
 * each may end, be restarted or be replaced by another build while rsd and its jobs go on.
 *
 * systemd holds their listening sockets and gives them to nobody else, so who takes our connection is the one that it
 * has started; they look at who we are, and read what they are to do in files that rsd/main.c has written while it was
 * root (lib/base/service.h). We connect, which starts them if need be, without waiting; they answer with their process,
 * which gets our own class if it is in their unit's group.
 *
 * The network half: what it does not hear while it is away it asks for when it is back (resync), as after a restart of
 * rsd. It is looked for again every JOIN_AGAIN_MS; one that does not answer in JOIN_MS is left, and looked for again.
 * elmer-tickets: is joined again at once when it has gone, so that local users get tickets, but not more often either.
 * A verdict that is needed meanwhile waits for it TICKETS_BACK_MS in all; if it is not there by then rsd begins again,
 * as it does for one that is its child. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/service.h"
#include "lib/base/str.h"
#include "rsd/root/internal.h"

enum { JOIN_MS = 5000, JOIN_AGAIN_MS = 200, THREADS_MAX = 64 };

static void path_of(const struct root *root, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", root->config->rundir, name);
}

/* It may have made threads already, which look up names. Where /proc hides it that is all that we know of it. */
static void rank_threads(pid_t pid, struct order_rank rank)
{
    char path[40];
    DIR *dir;
    uint64_t tid;
    sched_rank(pid, rank, false); /* where it is refused, probe.c says why */
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    for (int i = 0; dir && i < THREADS_MAX; i++) {
        const struct dirent *entry = readdir(dir);
        if (!entry)
            break;
        if (str_to_u64(entry->d_name, &tid))
            sched_rank((pid_t)tid, rank, false);
    }
    if (dir)
        closedir(dir);
}

/* Its own word, so it must be one of the unit's processes; looked at again, because a number may be another's by then.
 */
void rsd_join_rank(pid_t pid, const char *unit)
{
    char group[4096];
    if (pid <= 0 || service_sibling(unit, group, sizeof(group)) < 0 || service_is_in(pid, group) < 0)
        return;
    rank_threads(pid, (struct order_rank){SCHED_FIFO, ORDER_DAEMON});
    if (service_is_in(pid, group) < 0)
        rank_threads(pid, (struct order_rank){SCHED_OTHER, 0});
}

/* ---- since when ---- */

#define BEGUN_FILE "begun"

/* The directory is elmer-jobs's, and we are root: file_read() and file_write() take no link, pipe or device for it. */
int rsd_begun(const struct rsd_config *config, uint64_t *begun)
{
    char path[200], text[24], *found = NULL;
    struct err none = ERR_INIT;
    int dir, result = 0;
    snprintf(path, sizeof(path), "%s/sup", config->rundir);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || file_read(dir, BEGUN_FILE, sizeof(text), &found, &none) < 0 || !str_to_u64(found, begun)) {
        if (getrandom(begun, sizeof(*begun), 0) != (ssize_t)sizeof(*begun))
            *begun = (uint64_t)mono_now().ns;
        snprintf(text, sizeof(text), "%" PRIu64, *begun);
        result = dir < 0 ? -errno : file_write(dir, BEGUN_FILE, text, 0600, &none);
    }
    free(found);
    if (dir >= 0)
        close(dir);
    return result;
}

void rsd_begun_end(const struct rsd_config *config)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/sup/" BEGUN_FILE, config->rundir);
    unlink(path);
}

/* ---- the network half ---- */

bool join_net_there(const struct root *root)
{
    return root->net.fd >= 0 && !root->net_joining;
}

void join_net_lost(struct root *root, const char *why)
{
    static struct log_limit limit;
    char text[sizeof(root->uplink)];
    if (root->net.fd >= 0)
        channel_fini(&root->net);
    root->net.fd = -1;
    root->net_joining = false;
    root->net_join_ms = mono_ms(mono_now()) + JOIN_AGAIN_MS;
    snprintf(text, sizeof(text), "the network half (rsd-net.service) %s", why);
    if (strcmp(root->uplink, text) == 0)
        return; /* said already */
    memcpy(root->uplink, text, sizeof(text));
    if (log_allowed(&limit, 10, 60000))
        log_notice("the network half (rsd-net.service) %s; it is joined again when it is back, jobs live on", why);
    place_say(root, false);
}

static int join_net(struct root *root, struct err *err)
{
    char path[200];
    int fd, result;
    path_of(root, RSD_NET_SOCKET, path, sizeof(path));
    fd = ticket_program_reach(path, SOCK_STREAM, err);
    if (fd < 0)
        return fd;
    result = channel_init(&root->net, fd, WIRE_FROM_HOST, NET_OUT_MAX);
    if (result < 0) {
        close(fd);
        root->net.fd = -1;
        return err_set(err, result, "cannot be joined: %s", strerror(-result));
    }
    root->net.minor = WIRE_MINOR; /* both halves are of one build, or it does not answer */
    root->net_joining = true;
    root->net_join_ms = mono_ms(mono_now()) + JOIN_MS;
    return 0;
}

void join_net_due(struct root *root, int64_t now)
{
    struct err err = ERR_INIT;
    if (!root->net_is_unit || root->stop || join_net_there(root) || now < root->net_join_ms)
        return;
    if (root->net_joining)
        join_net_lost(root, "does not answer");
    else if (join_net(root, &err) < 0)
        join_net_lost(root, err.text);
}

int64_t join_net_next(const struct root *root)
{
    return root->net_is_unit && !join_net_there(root) ? root->net_join_ms : INT64_MAX;
}

bool join_net_answered(struct root *root)
{
    int32_t pid;
    ssize_t got;
    if (!root->net_joining)
        return true;
    got = recv(root->net.fd, &pid, sizeof(pid), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got != (ssize_t)sizeof(pid)) {
        join_net_lost(root, "is starting");
        return false;
    }
    rsd_join_rank(pid, RSD_UNIT_NET);
    root->net_joining = false;
    root->uplink[0] = 0;
    place_say(root, false);
    return true;
}

/* ---- elmer-tickets ---- */

static int join_tickets(const struct root *root, struct err *err)
{
    struct rsd_tickets *tickets = root->tickets;
    char path[200];
    int fd;
    if (tickets->fd >= 0)
        close(tickets->fd);
    path_of(root, RSD_JUDGE_SOCKET, path, sizeof(path));
    fd = tickets->fd = ticket_program_reach(path, SOCK_STREAM, err);
    tickets->join_ms = mono_ms(mono_now()) + JOIN_AGAIN_MS;
    tickets->joining = fd >= 0;
    return fd < 0 ? fd : 0;
}

static int tickets_ready(const struct root *root, int wait_ms, struct err *err)
{
    bool certified;
    int pid = ticket_program_ready(root->tickets->fd, wait_ms, &certified, err);
    if (pid < 0)
        return pid;
    rsd_join_rank(pid, RSD_UNIT_TICKETS);
    root->tickets->joining = false;
    return 0;
}

/* Something is there to be read, or it has gone. */
void join_tickets_news(struct root *root)
{
    struct err err = ERR_INIT;
    static struct log_limit limit;
    if (root->tickets->joining && tickets_ready(root, 1, &err) == 0)
        return;
    if (log_allowed(&limit, 10, 60000))
        log_notice("elmer-tickets has gone (rsd-tickets.service)%s%s; it is joined again, jobs live on",
                   err.text[0] ? ": " : "", err.text);
    close(root->tickets->fd);
    root->tickets->fd = -1;
    root->tickets->joining = false;
    join_tickets_due(root, mono_ms(mono_now()));
}

void join_tickets_due(struct root *root, int64_t now)
{
    struct err err = ERR_INIT;
    if (now < join_tickets_next(root) || root->tickets->gone || join_tickets(root, &err) == 0)
        return;
    log_error("elmer-tickets cannot be joined again: %s; rsd begins again, jobs live on", err.text);
    root->tickets->gone = true;
}

int64_t join_tickets_next(const struct root *root)
{
    return root->tickets && root->tickets->unit && root->tickets->fd < 0 ? root->tickets->join_ms : INT64_MAX;
}

bool join_tickets_await(const struct root *root, bool again, int64_t deadline_ms)
{
    int64_t left, early;
    if (!root->tickets->unit || (!again && !root->tickets->joining))
        return !again;
    while ((left = deadline_ms - mono_ms(mono_now())) > 0) {
        struct err err = ERR_INIT;
        if (!again && tickets_ready(root, (int)left, &err) == 0)
            return true;
        again = false;
        early = root->tickets->join_ms - mono_ms(mono_now());
        if (early > 0)
            poll(NULL, 0, (int)(early < left ? early : left));
        if (join_tickets(root, &err) < 0)
            return false;
    }
    return false;
}
