/* test_told.c - what the jobs half tells a supervisor, and that it wakes up once for what belongs together. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/root/internal.h"

enum { JOB = 7, OUT_MAX = 1 << 16 };

static const struct rsd_config config;
static struct root root;
static struct root_job *job;
static struct channel supervisor, net; /* the other ends */

static void connect_both(struct channel *here, unsigned here_hears, struct channel *there, unsigned there_hears)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(channel_init(here, pair[0], here_hears, OUT_MAX), 0);
    assert_int_equal(channel_init(there, pair[1], there_hears, OUT_MAX), 0);
}

static int up(void **state)
{
    (void)state;
    root = (struct root){.mode = ORDER_MODE_RT, .config = &config, .groups_fd = -1};
    walks_init(&root);
    connect_both(&root.net, WIRE_FROM_HOST, &net, WIRE_FROM_ROOT);
    root.net.minor = net.minor = WIRE_MINOR;
    job = job_add(&root, JOB, 1);
    assert_non_null(job);
    connect_both(&job->supervisor, WIRE_FROM_SUPERVISOR, &supervisor, WIRE_FROM_ROOT);
    job->connected = true;
    channel_later(&job->supervisor, WIRE_MINOR);
    channel_later(&supervisor, WIRE_MINOR);
    job->ncpus = 1;
    job->ranked = job->lowest = true;
    return 0;
}

static int down(void **state)
{
    (void)state;
    while (root.job_count > 0)
        job_drop(&root, root.jobs[0]);
    free(root.jobs);
    channel_fini(&root.net);
    channel_fini(&supervisor);
    channel_fini(&net);
    return 0;
}

/* The types of what has come, by their first letters; what a `look` says of being alone behind it. */
static const char *heard(void)
{
    static char text[64];
    struct wire_message message;
    size_t used = 0;
    (void)channel_fill(&supervisor, NULL);
    while (used < sizeof(text) - 3 && channel_next(&supervisor, &message, NULL) > 0) {
        text[used++] = wire_type_name(message.type)[0];
        if (message.type == WIRE_look)
            text[used++] = message.u.look.alone ? '+' : '-';
        wire_message_fini(&message);
    }
    text[used] = 0;
    return text;
}

static void from_supervisor(const struct wire_message *message)
{
    assert_int_equal(channel_send(&supervisor, message, NULL), 0);
    supervisor_read(&root, job);
}

static void test_held(void **state)
{
    struct wire_message quit = {.type = WIRE_quit};
    (void)state;
    tell_held(job, true);
    tell_supervisor(job, &quit);
    tell_supervisor(job, &quit);
    assert_string_equal(heard(), "");
    assert_true(channel_wants_write(&job->supervisor));
    tell_held(job, false);
    assert_string_equal(heard(), "qq");
    tell_supervisor(job, &quit);
    assert_string_equal(heard(), "q");
}

/* A job that is being opened has no process that could wait; one that was adopted may have. */
static void test_pong(void **state)
{
    struct wire_message pong = {.type = WIRE_pong, .id = WIRE_MINOR};
    (void)state;
    from_supervisor(&pong);
    assert_string_equal(heard(), "");
    job_move(job, JOB_OPEN);
    from_supervisor(&pong);
    assert_string_equal(heard(), "l+");
}

static void start(uint64_t process, const char *role)
{
    const char *command[] = {"/bin/true"};
    uint64_t cpus[] = {0};
    struct wire_message message = {.type = WIRE_start};
    message.u.start.job = JOB;
    message.u.start.attempt = 1;
    message.u.start.process = process;
    message.u.start.role = role;
    message.u.start.dir = message.u.start.output = message.u.start.errors = "/";
    message.u.start.argv = (struct wire_strs){command, 1};
    message.u.start.cpus = (struct wire_uints){cpus, 1};
    verbs_run(&root, &message);
}

static void open_job(void)
{
    CPU_SET(0, &root.cpus);
    CPU_SET(0, &job->cpus);
    job_move(job, JOB_OPEN);
}

/* Whether it is alone goes with the start, before its process runs, and again if an order has come meanwhile. */
static void test_alone(void **state)
{
    struct wire_message waits = {.type = WIRE_waits};
    (void)state;
    open_job();
    waits.u.waits.job = JOB;
    waits.u.waits.attempt = 1;
    waits.u.waits.polls = "";
    start(0, "command");
    assert_false(channel_wants_write(&job->supervisor));
    assert_string_equal(heard(), "sl+");
    job->lowest = false;
    from_supervisor(&waits);
    assert_true(job->waits);
    assert_string_equal(heard(), "l-");
    from_supervisor(&waits);
    assert_string_equal(heard(), ""); /* its order tells it from now on */
    start(0, "command");
    assert_string_equal(heard(), "s");
}

static int64_t charged(void)
{
    int64_t sum = 0;
    for (enum payer payer = 0; payer < PAYER_COUNT; payer++)
        sum += root.charged_ns[payer];
    return sum;
}

/* Whether it is looked for soon, and in *ranked whether it was given its rank at once, by reading its group. */
static bool heard_started(uint64_t process, bool *ranked)
{
    const int64_t never = INT64_MAX, before = charged();
    struct wire_message message = {.type = WIRE_started};
    message.u.started.job = JOB;
    message.u.started.attempt = 1;
    message.u.started.process = process;
    message.u.started.pid = (uint64_t)getpid();
    job->sweep_ms = never;
    from_supervisor(&message);
    *ranked = charged() > before;
    return job->sweep_ms < never;
}

static bool started(uint64_t process)
{
    bool ranked, soon = heard_started(process, &ranked);
    assert_false(ranked);
    return soon;
}

/* Who started with the rank that the job still has is looked for by nobody, however often that happens. */
static void test_started(void **state)
{
    (void)state;
    open_job();
    ranks_tell(&root, job);
    start(0, "command");
    assert_false(started(0));
    start(1, "command");
    job->lowest = false; /* an order while it is being born */
    ranks_tell(&root, job);
    assert_true(started(1));
    start(2, "command");
    ranks_tell(&root, job); /* says the same, so nothing has changed */
    assert_false(started(2));
}

/* One that was born above all jobs, while a boost was under way that has ended since, is put where it belongs before
 * anything else; to say that it has started again costs nothing. */
static void test_started_helper(void **state)
{
    bool ranked;
    (void)state;
    open_job();
    job->level = 3;
    job->boost.on = true;
    ranks_tell(&root, job);
    start(0, "pvmd");
    start(1, "agent");
    assert_false(heard_started(0, &ranked));
    assert_false(ranked); /* it has the rank that is due */
    job->boost.on = false;
    ranks_tell(&root, job);
    assert_true(heard_started(1, &ranked));
    assert_true(ranked);
    assert_true(heard_started(1, &ranked));
    assert_false(ranked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_held, up, down),
        cmocka_unit_test_setup_teardown(test_pong, up, down),
        cmocka_unit_test_setup_teardown(test_alone, up, down),
        cmocka_unit_test_setup_teardown(test_started, up, down),
        cmocka_unit_test_setup_teardown(test_started_helper, up, down),
    };
    return cmocka_run_group_tests_name("told", tests, NULL, NULL);
}
