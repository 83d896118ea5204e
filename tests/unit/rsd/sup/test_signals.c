/* test_signals.c - what a user has a job sent: each signal once, none lost, and seldom; in virtual time. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/thread_time.h"
#include "rsd/root/group.h"
#include "rsd/sup/sup.h"

struct mono __wrap_mono_now(void);
int64_t __wrap_thread_time_ns(void);
pid_t __wrap_fork(void);
int __wrap_group_signal(const struct cgroup *group, int number);
bool __wrap_group_has_more_than(int leaf_fd, size_t few);

enum { MAX_SENT = 4096, ERRAND = 4242 };

static struct sup sup;
static int64_t now, used_ns, fork_ns;
static size_t processes;
static int sent[MAX_SENT];
static size_t sent_count;
static unsigned forks;
static bool fork_fails;

struct mono __wrap_mono_now(void)
{
    return (struct mono){now * 1000000};
}

int64_t __wrap_thread_time_ns(void)
{
    return used_ns;
}

pid_t __wrap_fork(void)
{
    used_ns += fork_ns;
    forks++;
    return fork_fails ? -1 : ERRAND + (pid_t)forks;
}

int __wrap_group_signal(const struct cgroup *group, int number)
{
    (void)group;
    assert_true(sent_count < MAX_SENT);
    sent[sent_count++] = number;
    return 0;
}

bool __wrap_group_has_more_than(int leaf_fd, size_t few)
{
    (void)leaf_fd;
    return processes > few;
}

static int up(void **state)
{
    (void)state;
    sup = (struct sup){.begun = true, .job_fd = -1};
    now = 1000;
    processes = 2;
    sent_count = 0;
    forks = 0;
    fork_ns = 0;
    return 0;
}

static void ask(int number)
{
    const struct wire_send_signal message = {.number = (uint64_t)number, .policy = SCHED_OTHER};
    signals_send(&sup, &message);
}

/* As the loop does it. */
static void run_for(int64_t ms)
{
    const int64_t end = now + ms;
    for (;;) {
        int64_t wait = signals_wait_ms(&sup, now);
        if (wait > end - now)
            break;
        now += wait;
        signals_step(&sup, now);
    }
    now = end;
}

static void test_at_once(void **state)
{
    (void)state;
    ask(SIGUSR1);
    ask(SIGTERM);
    assert_int_equal(sent_count, 3);
    assert_int_equal(sent[0], SIGUSR1);
    assert_int_equal(sent[1], SIGTERM);
    assert_int_equal(sent[2], SIGCONT); /* a stopped process takes TERM only then */
    assert_true(signals_wait_ms(&sup, now) == INT64_MAX);
}

static void test_flood(void **state)
{
    (void)state;
    for (int i = 0; i < 10000; i++) { /* for five seconds */
        ask(SIGUSR1 + i % 2 * (SIGUSR2 - SIGUSR1));
        now += i % 2;
    }
    assert_in_range(sent_count, 28, 32);
    run_for(1000);
    assert_true(signals_wait_ms(&sup, now) == INT64_MAX);
    assert_int_equal(sent[sent_count - 1] + sent[sent_count - 2], SIGUSR1 + SIGUSR2); /* the last of each comes */
}

static void flood(void)
{
    while (signals_wait_ms(&sup, now) == INT64_MAX)
        ask(SIGUSR1);
    sent_count = 0;
}

static void test_later_word(void **state)
{
    (void)state;
    flood();
    ask(SIGSTOP);
    ask(SIGCONT);
    run_for(2000);
    assert_int_equal(sent_count, 2);
    assert_int_equal(sent[0], SIGUSR1);
    assert_int_equal(sent[1], SIGCONT);
    flood();
    ask(SIGCONT);
    ask(SIGSTOP);
    ask(SIGTERM); /* before those who wait, and awake */
    run_for(2000);
    assert_int_equal(sent_count, 3);
    assert_int_equal(sent[0], SIGTERM);
    assert_int_equal(sent[1], SIGCONT);
    assert_int_equal(sent[2], SIGUSR1);
}

/* A child does it, and what is asked meanwhile is not lost. */
static void test_many(void **state)
{
    (void)state;
    processes = 50;
    ask(SIGUSR1);
    assert_int_equal(forks, 1);
    ask(SIGUSR2);
    ask(SIGUSR1);
    run_for(5000); /* it gets no CPU */
    assert_int_equal(forks, 1);
    assert_true(signals_wait_ms(&sup, now) == INT64_MAX);
    ask(SIGTERM);
    assert_int_equal(forks, 2);
    ask(SIGTERM); /* who floods it has two children at most */
    run_for(5000);
    assert_int_equal(forks, 2);
    signals_reaped(&sup, ERRAND + 1, 0);
    run_for(1000);
    assert_int_equal(forks, 2);
    signals_reaped(&sup, ERRAND + 2, 0);
    run_for(1000);
    assert_int_equal(forks, 3);
    for (int i = 3; i < 6; i++) {
        signals_reaped(&sup, ERRAND + i, 0);
        run_for(1000);
    }
    assert_int_equal(forks, 5); /* TERM once more, USR2, USR1 */
    assert_int_equal(sent_count, 0);
}

/* Where a child is dear there are fewer of them: 4 ms for the first, and 0.25 % of a CPU. */
static void test_dear(void **state)
{
    (void)state;
    processes = 50;
    fork_ns = 3000000;
    for (int i = 0; i < 12000; i++) { /* for twelve seconds */
        ask(SIGUSR1);
        if (forks > 0)
            signals_reaped(&sup, ERRAND + (pid_t)forks, 0);
        now++;
        signals_step(&sup, now);
    }
    assert_in_range(forks, 10, 11);
    run_for(5000);
    assert_true(signals_wait_ms(&sup, now) == INT64_MAX); /* the last one comes */
}

/* A session that has lost its nice value gets it back, also where the child before is still at it, or was refused. */
static void test_sessions(void **state)
{
    (void)state;
    signals_weigh(&sup, 19);
    assert_int_equal(forks, 1);
    signals_weigh(&sup, 0);
    run_for(5000); /* it gets no CPU */
    assert_int_equal(forks, 1);
    signals_reaped(&sup, ERRAND + 1, 0);
    run_for(0);
    assert_int_equal(forks, 2);
    assert_int_equal(sup.weigh_nice, 0);
    signals_reaped(&sup, ERRAND + 2, 1 << 8); /* the kernel has refused */
    run_for(900);
    assert_int_equal(forks, 2);
    run_for(100);
    assert_int_equal(forks, 3);
    signals_reaped(&sup, ERRAND + 3, SIGALRM);
    run_for(2000);
    assert_int_equal(forks, 4);
    signals_reaped(&sup, ERRAND + 4, 0);
    assert_true(signals_wait_ms(&sup, now) == INT64_MAX);
    fork_fails = true;
    signals_weigh(&sup, 0);
    run_for(900);
    assert_int_equal(forks, 5);
    fork_fails = false;
    run_for(100);
    assert_int_equal(forks, 6);
    signals_reaped(&sup, ERRAND + 6, 0);
    assert_true(signals_wait_ms(&sup, now) == INT64_MAX);
}

static void test_no_signals(void **state)
{
    (void)state;
    ask(0);
    ask(65);
    sup.begun = false;
    ask(SIGUSR1);
    assert_int_equal(sent_count, 0);
    sup.begun = true;
    for (int number = 64; number > 0; number--)
        ask(number);
    run_for(15000);
    assert_true(signals_wait_ms(&sup, now) == INT64_MAX);
    assert_in_range(sent_count, 60, 65); /* all but those that undo each other */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, up)
        TEST(test_at_once), TEST(test_flood),    TEST(test_later_word), TEST(test_many),
        TEST(test_dear),    TEST(test_sessions), TEST(test_no_signals),
    };
    return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}
