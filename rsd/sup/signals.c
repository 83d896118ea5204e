/* signals.c - what only the user of a job may do to its processes: the supervisor has his uid as its effective one, and
 * rsd has no capability for it. To signal thousands takes milliseconds, and what opens files in /proc must not rank
 * above jobs (rsd/root/sessions.c): so children do.
 *
 * A user asks for signals as often as he likes (`ekill --signal`), and each takes the CPU from the jobs above. So they
 * wait in a queue, which has each of them once, and leave it one by one, five a second. rsd has such a queue, too
 * (rsd/root/death.c), so that the asking costs nothing here; in this one wait those for which no child is free. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/root/group.h"
#include "rsd/root/sched.h"
#include "rsd/root/sessions.h"
#include "rsd/sup/sup.h"

enum { FEW = 10 /* 10 us and more for each */, ERRAND_S = 20, FD_LEAF = 3 };

static const struct pace_limit signal_limit = {5, 200};

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

static void send_by_child(struct sup *sup, int number)
{
    const pid_t pid = fork();
    if (pid == 0) {
        be_a_child(sup, sup->rt ? sup->signal_rank : (struct order_rank){SCHED_OTHER, 0});
        signal_all(FD_LEAF, number);
        _exit(0);
    }
    if (pid < 0) {
        signal_all(sup->job_fd, number);
        return;
    }
    sup->errand = pid;
    sup->errand_signal = number;
}

/* One child at a time; but TERM, after which the job is killed, does not wait for that of another signal, which may get
 * no CPU. */
static bool errand_is_free(const struct sup *sup)
{
    return sup->errand == 0 || (signal_queue_first(&sup->signals) == SIGTERM && sup->errand_signal != SIGTERM);
}

int64_t signals_wait_ms(const struct sup *sup, int64_t now)
{
    if (signal_queue_first(&sup->signals) == 0 || !errand_is_free(sup))
        return INT64_MAX; /* a child that ends is heard of */
    return pace_wait_ms(&sup->signal_pace, &signal_limit, now);
}

void signals_step(struct sup *sup, int64_t now)
{
    const int number = signal_queue_first(&sup->signals);
    if (signals_wait_ms(sup, now) > 0)
        return;
    signal_queue_take(&sup->signals);
    pace_take(&sup->signal_pace, &signal_limit, now);
    if (group_has_more_than(sup->job_fd, FEW))
        send_by_child(sup, number);
    else
        signal_all(sup->job_fd, number);
}

void signals_send(struct sup *sup, const struct wire_send_signal *message)
{
    if (!sup->begun)
        return;
    sup->signal_rank = (struct order_rank){(int)message->policy, (int)message->priority};
    signal_queue_add(&sup->signals, (int)message->number);
    signals_step(sup, mono_ms(mono_now()));
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

void signals_reaped(struct sup *sup, pid_t pid, int status)
{
    if (sup->errand == pid) {
        sup->errand = 0;
        if (WIFSIGNALED(status)) /* it had no CPU in its time */
            signal_queue_add(&sup->signals, sup->errand_signal);
    }
    if (sup->weigher == pid)
        sup->weigher = 0;
}
