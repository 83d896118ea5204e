/* test_starts.c - which jobs pay for their start, when they have to wait for it, and for signals; in virtual time. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "lib/base/clock.h"
#include "rsd/root/internal.h"

struct mono __wrap_mono_now(void);
int64_t __wrap_budget_process_ns(pid_t pid);

enum { SPAWN = 4242, SUPERVISOR, CHILD, NEW = 7 };

static struct root root;
static struct order_item items[1];
static int64_t now_ms, used_ns[3]; /* of SPAWN and those after it */

struct mono __wrap_mono_now(void)
{
    return (struct mono){now_ms * 1000000};
}

int64_t __wrap_budget_process_ns(pid_t pid)
{
    return pid >= SPAWN && pid <= CHILD ? used_ns[pid - SPAWN] : 0;
}

static int up(void **state)
{
    (void)state;
    now_ms = 100000;
    used_ns[0] = used_ns[1] = used_ns[2] = 0;
    root = (struct root){.mode = ORDER_MODE_RT, .spawn_pid = SPAWN};
    CPU_SET(0, &root.cpus);
    CPU_SET(1, &root.cpus);
    items[0] = (struct order_item){.job = NEW, .attempt = 1, .level = 1, .lowest = true};
    root.order = (struct order){.items = items, .count = 1};
    starts_init(&root);
    return 0;
}

static int down(void **state)
{
    (void)state;
    while (root.job_count > 0)
        job_drop(&root, root.jobs[0]);
    free(root.jobs);
    return 0;
}

static struct root_job *add(uint64_t id, unsigned level, int cpu)
{
    struct root_job *job = job_add(&root, id, 1);
    assert_non_null(job);
    job_move(job, JOB_OPEN);
    job->ranked = true;
    job->level = level;
    job->ncpus = 1;
    CPU_ZERO(&job->cpus);
    CPU_SET((size_t)cpu, &job->cpus);
    return job;
}

static bool below(int cpu)
{
    const struct wire_open open = {.job = NEW, .attempt = 1};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)cpu, &cpus);
    return starts_below(&root, &open, &cpus);
}

static void test_who_is_below(void **state)
{
    struct root_job *first = add(1, 0, 0);
    (void)state;
    assert_false(below(0)); /* both are new: many short jobs wait for nobody */
    now_ms += SHORT_MS;
    assert_true(below(0));
    assert_false(below(1)); /* it has a processor to itself */
    items[0].level = 0;
    first->level = 1;
    assert_false(below(0)); /* it is to be the first */
    root.order.count = 0;
    assert_true(below(0)); /* not ordered yet: as the lowest */
    root.mode = ORDER_MODE_IDLE;
    assert_false(below(0));
}

static struct root_job *begin(void)
{
    struct root_job *job = job_add(&root, NEW, 1);
    assert_non_null(job);
    job->below = true;
    job->supervisor_pid = SUPERVISOR;
    return job;
}

static void start_one(struct root_job *job, int64_t ms)
{
    int64_t since = starts_clock(&root, job);
    used_ns[0] += ms * 1000000;
    starts_charge(&root, job, since);
}

static void test_wait(void **state)
{
    struct root_job *job = begin();
    unsigned count = 0;
    int64_t end;
    (void)state;
    for (; starts_paid(&root) && count < 1000; count++)
        start_one(job, 5);
    assert_in_range(count, 38, 41); /* 100 ms at once for each of the two processors */
    end = now_ms + 10000;
    for (count = 0; now_ms < end; now_ms += 10) {
        if (starts_paid(&root)) {
            start_one(job, 5);
            count++;
        }
    }
    assert_in_range(count, 38, 42); /* 1 % of them */
    start_one(job, 100000);
    now_ms += 8000; /* however much that was */
    assert_true(starts_paid(&root));
}

static void test_what_is_paid(void **state)
{
    struct root_job *job = begin();
    int64_t before = root.starts.left_ns;
    (void)state;
    used_ns[1] = 4000000;
    starts_charge_supervisor(&root, job);
    used_ns[1] = 5000000;
    starts_charge_supervisor(&root, job);
    starts_charge_supervisor(&root, job);
    assert_int_equal(before - root.starts.left_ns, 5000000);
    job->cpu_seconds = 0.003;
    starts_charge_failed(&root, job); /* nothing has come to exec */
    assert_int_equal(before - root.starts.left_ns, 8000000);
    used_ns[2] = 1000000;
    starts_charge_birth(&root, job, CHILD);
    job->cpu_seconds = 1000;
    starts_charge_failed(&root, job); /* that was its own */
    assert_int_equal(before - root.starts.left_ns, 9000000);
}

static void test_who_pays_nothing(void **state)
{
    struct root_job *job = begin();
    int64_t before = root.starts.left_ns;
    (void)state;
    job->below = false;
    start_one(job, 5000);
    used_ns[1] = used_ns[2] = 1000000000;
    job->cpu_seconds = 1000;
    starts_charge_supervisor(&root, job);
    starts_charge_failed(&root, job);
    starts_charge_birth(&root, job, CHILD);
    assert_int_equal(root.starts.left_ns, before);
}

/* What a user asks for as often as he likes: at once, or in its turn, and once. */
static void test_signals(void **state)
{
    struct root_job *job = add(2, 1, 0);
    int64_t end = now_ms + 10000, last_ms = 0;
    unsigned sent = 0;
    (void)state;
    walks_init(&root);
    job->connected = true;
    for (int number = 1; number <= 5; number++) {
        death_signal_asked(&root, job, number);
        assert_int_equal(job->signals.count, 0);
    }
    for (; now_ms < end; now_ms++) {
        unsigned before;
        death_signal_asked(&root, job, 10);
        before = job->signals.count;
        assert_in_range(before, 0, 1);
        sent += before == 0;
        last_ms = before == 0 ? now_ms : last_ms;
    }
    assert_in_range(sent, 48, 52);
    assert_true(death_signals_next(job) >= now_ms && death_signals_next(job) <= last_ms + 202);
    now_ms = death_signals_next(job);
    death_signals(&root, job, now_ms);
    assert_int_equal(job->signals.count, 0);
    assert_true(death_signals_next(job) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
        TEST(test_who_is_below),     TEST(test_wait),    TEST(test_what_is_paid),
        TEST(test_who_pays_nothing), TEST(test_signals),
    };
    return cmocka_run_group_tests_name("starts", tests, NULL, NULL);
}
