/* signals.c - what only the user of a job may do to its processes: the supervisor has his uid as its effective one, and
 * rsd has no capability for it. To signal thousands takes milliseconds, and what opens files in /proc must not rank
 * above jobs (rsd/root/sessions.c): so children do. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/group.h"
#include "rsd/root/sched.h"
#include "rsd/root/sessions.h"
#include "rsd/sup/sup.h"

enum { FEW = 200 /* 10 us and more for each */, ERRAND_S = 20, FD_LEAF = 3 };

static bool has_many(const struct sup *sup)
{
    struct group_reader reader;
    struct group_pids pids = {0};
    bool more = group_reader_open(&reader, sup->job_fd, false) == 0;
    while (more && pids.count <= FEW)
        more = group_reader_next(&reader, &pids) > 0;
    more = pids.count > FEW;
    group_reader_close(&reader);
    group_pids_fini(&pids);
    return more;
}

static void signal_all(int job_fd, int number)
{
    const struct cgroup group = {.job_fd = job_fd, .sup_fd = -1, .events_fd = -1};
    group_signal(&group, number);
    if (number == SIGTERM)
        group_signal(&group, SIGCONT); /* a stopped process takes TERM only then */
}

/* Nobody must take it for the supervisor: nothing of its is open but the leaf, as 3. */
static void be_a_child(const struct sup *sup, struct order_rank rank)
{
    sched_rank(0, rank, false);
    alarm(ERRAND_S);
    if (dup2(sup->job_fd, FD_LEAF) < 0)
        _exit(1);
    (void)syscall(SYS_close_range, FD_LEAF + 1U, ~0U, 0U);
}

void signals_send(struct sup *sup, const struct wire_send_signal *message)
{
    const int number = (int)message->number;
    const struct order_rank rank = {(int)message->policy, (int)message->priority};
    pid_t pid;
    if (!sup->begun || number <= 0 || (sup->errand > 0 && number != SIGTERM)) /* one at a time, whoever asks */
        return;
    if (!has_many(sup)) {
        signal_all(sup->job_fd, number);
        return;
    }
    pid = fork();
    if (pid == 0) {
        be_a_child(sup, sup->rt ? rank : (struct order_rank){SCHED_OTHER, 0});
        signal_all(FD_LEAF, number);
        _exit(0);
    }
    if (pid < 0)
        signal_all(sup->job_fd, number);
    else
        sup->errand = pid;
}

void signals_weigh(struct sup *sup, int nice)
{
    pid_t pid;
    if (!sup->begun || sup->weigher > 0)
        return;
    pid = fork();
    if (pid == 0) {
        be_a_child(sup, (struct order_rank){SCHED_OTHER, 0});
        (void)setfsuid(sup->user.uid); /* the files are his */
        _exit(sessions_weigh(FD_LEAF, nice) < 0);
    }
    sup->weigher = pid < 0 ? 0 : pid;
}

void signals_reaped(struct sup *sup, pid_t pid)
{
    if (sup->errand == pid)
        sup->errand = 0;
    if (sup->weigher == pid)
        sup->weigher = 0;
}
