/* signals.c - what only the user of a job may do to its processes: the supervisor has his uid as its effective one, and
 * rsd has no capability for it. To signal thousands takes milliseconds, and what opens files in /proc must not rank
 * above jobs (rsd/root/sessions.c): so children do.
 *
 * A user asks for signals as often as he likes (`ekill --signal`), and each takes the CPU from the jobs above. So they
 * wait in a queue, which has each of them once, and leave it one by one, five a second, or fewer where a child costs
 * much (a fork takes 0.3 ms on one machine and 3 on another). rsd has such a queue, too (rsd/root/death.c), so that the
 * asking costs nothing here; in this one wait those for which no child is free.
 *
 * The nice value of the sessions is told with each sweep while it is not 0, and 0 is told once. So what was told last
 * is kept until a child has done it: the one before may still be at it, below all that has the CPU, and the kernel may
 * refuse. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/thread_time.h"
#include "rsd/root/group.h"
#include "rsd/root/sched.h"
#include "rsd/root/sessions.h"
#include "rsd/sup/sup.h"

enum { FEW = 10 /* 10 us and more for each */, ERRAND_S = 20, WEIGH_AGAIN_MS = 1000, FD_LEAF = 3 };

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

static int64_t send_wait_ms(const struct sup *sup, int64_t now)
{
    if (signal_queue_first(&sup->signals) == 0 || !errand_is_free(sup))
        return INT64_MAX; /* a child that ends is heard of */
    return pace_wait_ms(&sup->signal_pace, &signal_limit, now);
}

static void send_step(struct sup *sup, int64_t now)
{
    const int number = signal_queue_first(&sup->signals);
    const int64_t before_ns = thread_time_ns();
    if (send_wait_ms(sup, now) > 0)
        return;
    signal_queue_take(&sup->signals);
    pace_take(&sup->signal_pace, &signal_limit, now);
    if (group_has_more_than(sup->job_fd, FEW))
        send_by_child(sup, number);
    else
        signal_all(sup->job_fd, number);
    pace_charge(&sup->signal_pace, &signal_limit, thread_time_ns() - before_ns);
}

static int64_t weigh_wait_ms(const struct sup *sup, int64_t now)
{
    if (!sup->weigh_due || sup->weigher > 0)
        return INT64_MAX; /* a child that ends is heard of */
    return sup->weigh_ms > now ? sup->weigh_ms - now : 0;
}

static void weigh_step(struct sup *sup, int64_t now)
{
    pid_t pid;
    if (weigh_wait_ms(sup, now) > 0)
        return;
    pid = fork();
    if (pid == 0) {
        be_a_child(sup, (struct order_rank){SCHED_OTHER, 0});
        (void)setfsuid(sup->user.uid); /* the files are his */
        _exit(sessions_weigh(FD_LEAF, sup->weigh_nice) < 0);
    }
    sup->weigh_due = pid < 0;
    sup->weigher = pid < 0 ? 0 : pid;
    sup->weigh_ms = now + WEIGH_AGAIN_MS;
}

int64_t signals_wait_ms(const struct sup *sup, int64_t now)
{
    const int64_t send = send_wait_ms(sup, now), weigh = weigh_wait_ms(sup, now);
    return send < weigh ? send : weigh;
}

void signals_step(struct sup *sup, int64_t now)
{
    send_step(sup, now);
    weigh_step(sup, now);
}

void signals_send(struct sup *sup, const struct wire_send_signal *message)
{
    if (!sup->begun)
        return;
    sup->signal_rank = (struct order_rank){(int)message->policy, (int)message->priority};
    signal_queue_add(&sup->signals, (int)message->number);
    send_step(sup, mono_ms(mono_now()));
}

void signals_weigh(struct sup *sup, int nice)
{
    const int64_t now = mono_ms(mono_now());
    if (!sup->begun)
        return; /* sessions begin at 0 */
    sup->weigh_nice = nice;
    sup->weigh_due = true;
    sup->weigh_ms = now;
    weigh_step(sup, now);
}

void signals_reaped(struct sup *sup, pid_t pid, int status)
{
    if (sup->errand == pid) {
        sup->errand = 0;
        if (WIFSIGNALED(status)) /* it had no CPU in its time */
            signal_queue_add(&sup->signals, sup->errand_signal);
    }
    if (sup->weigher == pid) {
        sup->weigher = 0;
        sup->weigh_due |= status != 0; /* a time later; who was told meanwhile begins at once */
    }
}
