/* test_root_half.c - what the root half does for its verbs, on this machine's kernel: real groups, real users (nobody).
 * The ranks of jobs are in test_ranks.c, a root half that dies in test_restarts.c. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/root/bed.h"

static void test_whole_life(void **state)
{
    const char *const argv[] = {"sh", "-c",
                                "echo hello; id -un; umask; echo $HOME; cat $ELMER_HOSTFILE; test $PVM_TMP = "
                                "$ELMER_TMPDIR && mkdir -p $ELMER_TMPDIR/a/b; ln -s / $ELMER_TMPDIR/a/l; exit 7",
                                NULL};
    const struct level alone = {1, 0, true};
    char text[1000];
    int64_t begin;
    double seconds;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    begin = rig_now_ms();
    rig_open(&rig, 1, 1);
    print_message("open to opened: %d ms\n", (int)(rig_now_ms() - begin));
    begin = rig_now_ms();
    rig_start(&rig, 1, 0, "command", argv);
    rig_started(&rig);
    print_message("start to started: %d ms\n", (int)(rig_now_ms() - begin));
    expect_exit(0, 7, 0);
    read_output(text, sizeof(text));
    assert_string_equal(text, "hello\nnobody\n0022\n/nonexistent\none\ntwo\n");
    acknowledge(1, 0);
    begin = rig_now_ms();
    rig_end(&rig, 1, 1000);
    seconds = rig_empty(&rig, 1, 5000);
    print_message("end to empty: %d ms, %.4f s of CPU time\n", (int)(rig_now_ms() - begin), seconds);
    assert_true(seconds > 0 && seconds < 5);
}

static void expect_start_failed(uint32_t process, const char *word)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_start_failed, 5000, &message);
    assert_int_equal(message.u.start_failed.process, process);
    if (!strstr(message.u.start_failed.text, word))
        fail_msg("\"%s\" does not say %s", message.u.start_failed.text, word);
    wire_message_fini(&message);
}

static void start_with(uint32_t process, const char *command, const char *dir, const char *output)
{
    const char *argv[] = {command, NULL};
    rig_start_at(&rig, process, argv, dir, output, output, false);
}

static void test_failing_starts(void **state)
{
    const struct level alone = {1, 0, true};
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    start_with(0, "no-such-command", "/", "");
    expect_start_failed(0, "no-such-command is in no directory of PATH");
    start_with(1, "/no/such/command", "/", "");
    expect_start_failed(1, "there is no /no/such/command");
    start_with(2, "true", "/no/such/directory", "");
    expect_start_failed(2, "directory /no/such/directory cannot be entered by nobody: No such file");
    start_with(3, "true", "/", "/root-may-only");
    expect_start_failed(3, "output file /root-may-only cannot be written by nobody in /: Permission denied");
    start_with(4, "/etc/passwd", "/", "");
    expect_start_failed(4, "may not be executed");
    start_with(2, "true", "/", ""); /* a number is started once */
    expect_start_failed(2, "directory /no/such/directory");
    rig_end(&rig, 1, 1000);
    rig_empty(&rig, 1, 2000);
}

static void open_refused(uint64_t job, uint64_t uid, const char *user, uint64_t cpu, const char *word)
{
    struct wire_message message = {.type = WIRE_open}, answer;
    message.u.open.job = job;
    message.u.open.attempt = 1;
    message.u.open.uid = uid;
    message.u.open.user = user;
    message.u.open.cpus.items = &cpu;
    message.u.open.cpus.count = 1;
    rig_send(&rig, &message);
    rig_expect(&rig, WIRE_open_failed, 5000, &answer);
    if (!strstr(answer.u.open_failed.text, word))
        fail_msg("\"%s\" does not say %s", answer.u.open_failed.text, word);
    wire_message_fini(&answer);
}

static void test_refused_opens(void **state)
{
    (void)state;
    open_refused(1, 0, "root", rig.cpu, "may not run jobs on testhost");
    open_refused(2, 999, "nobody", rig.cpu, "minimum_uid is 1000");
    open_refused(3, 65000, "nobody", rig.cpu, "user nobody has uid 65534 on this host but uid 65000");
    open_refused(4, 65534, "no-such-user", rig.cpu, "not known on this host");
    open_refused(5, 65534, "nobody", 1023, "not processors of testhost");
    rig_end(&rig, 3, 0);
    rig_until(!rig_exists(&rig, 3) && !rig_exists(&rig, 4));
    assert_false(rig_exists(&rig, 1) || rig_exists(&rig, 2) || rig_exists(&rig, 5));
}

/* The supervisor may make the directory when the job has long been told to end. */
static void test_ended_while_it_opens(void **state)
{
    enum { TIMES = 40 };
    unsigned late = 0;
    (void)state;
    for (uint64_t job = 1; job <= TIMES; job++) {
        rig_ask_open(&rig, job, 0, 0);
        poll(NULL, 0, (int)(job % 4));
        int64_t begin = rig_now_ms();
        rig_end(&rig, job, 0);
        rig_empty(&rig, job, 5000);
        late += rig_now_ms() - begin > 800;
    }
    assert_in_range(late, 0, TIMES / 4); /* supervisors end by themselves and are not killed, see QUIT_MS */
}

/* An elmer that has forgotten its kill in a crash learns from the status what became of the job. The leaf is empty a
 * moment before the process can be waited for. */
static void test_status_before_empty(void **state)
{
    enum { TIMES = 40 };
    const char *const argv[] = {"sleep", "120", NULL};
    struct wire_message message;
    (void)state;
    for (uint64_t job = 1; job <= TIMES; job++) {
        bool gently = job % 2;
        rig_open(&rig, job, 0);
        rig_run(&rig, job, argv);
        rig_end(&rig, job, gently ? 1000 : 0);
        rig_expect(&rig, WIRE_exited, 2000, &message);
        assert_int_equal(message.u.exited.job, job);
        assert_int_equal(message.u.exited.signal, gently ? SIGTERM : SIGKILL);
        wire_message_fini(&message);
        rig_empty(&rig, job, 5000);
    }
}

static void test_said_twice(void **state)
{
    const char *const argv[] = {"sleep", "120", NULL};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    pid_t pid;
    (void)state;
    rig_order(&rig, 5, &alone, 1);
    rig_open(&rig, 1, 5);
    rig_open(&rig, 1, 5);
    rig_start(&rig, 1, 0, "command", argv);
    pid = rig_started(&rig);
    rig_start(&rig, 1, 0, "command", argv);
    assert_int_equal(rig_started(&rig), pid);
    rig_end(&rig, 77, 0);
    rig_expect(&rig, WIRE_empty, 1000, &message);
    assert_int_equal(message.u.empty.job, 77);
    assert_true(message.u.empty.cpu_seconds < 0);
    wire_message_fini(&message);
    rig_end(&rig, 1, 1000);
    rig_end(&rig, 1, 1000);
    rig_empty(&rig, 1, 5000);
    rig_end(&rig, 1, 1000);
    rig_empty(&rig, 1, 5000);
    rig_start(&rig, 1, 1, "command", argv);
    expect_start_failed(1, "not open");
    message = (struct wire_message){.type = WIRE_forget};
    message.u.forget.job = 1;
    message.u.forget.attempt = 1;
    rig_send(&rig, &message);
    rig_end(&rig, 1, 1000);
    rig_expect(&rig, WIRE_empty, 1000, &message);
    assert_true(message.u.empty.cpu_seconds < 0);
    wire_message_fini(&message);
}

static void test_garbage_stops_it(void **state)
{
    const char *const argv[] = {"sleep", "120", NULL};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    pid_t pid;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_start(&rig, 1, 0, "command", argv);
    pid = rig_started(&rig);
    assert_int_equal(write(rig.channel.fd, "\0\0\0\5nonsense", 12), 12);
    assert_int_equal(rig_root_wait(&rig), 1);
    assert_int_equal(kill(pid, 0), 0);
    rig_root_start(&rig);
    resync(&message);
    assert_int_equal(message.u.root_state.holdings.count, 1);
    wire_message_fini(&message);
    message = (struct wire_message){.type = WIRE_relay_closed}; /* the peer may send it, but it is no verb */
    rig_send(&rig, &message);
    assert_int_equal(rig_root_wait(&rig), 1);
    assert_int_equal(kill(pid, 0), 0);
}

/* The answer is that an older one holds. */
static void refuse_long_order(void)
{
    static struct wire_order_entry entries[2049];
    struct wire_message message = {.type = WIRE_order};
    for (size_t i = 0; i < 2049; i++)
        entries[i] = (struct wire_order_entry){.job = i + 1, .attempt = 1, .lowest = true, .cpus = {&rig.cpu, 1}};
    message.u.order.generation = INT64_MAX;
    message.u.order.entries.items = entries;
    message.u.order.entries.count = 2049;
    rig_send(&rig, &message);
    rig_expect(&rig, WIRE_ordered, 5000, &message);
    assert_int_equal(message.u.ordered.generation, 1);
    wire_message_fini(&message);
}

/* What a network half that was taken over could send: well-formed, and wrong. Nothing happens, and the root half goes
 * on. */
static void test_strange_verbs(void **state)
{
    const char *const argv[] = {"sleep", "120", NULL};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    cpu_set_t cpus;
    uint64_t everywhere[1024], here = rig.cpu;
    (void)state;
    for (size_t i = 0; i < 1024; i++)
        everywhere[i] = i;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_start(&rig, 2, 0, "command", argv);
    expect_start_failed(0, "not known on this host");
    rig_start(&rig, 1, 0, "root", argv);
    expect_start_failed(0, "no such role");
    rig.cpu = 1023;
    rig_start(&rig, 1, 0, "command", argv);
    expect_start_failed(0, "not processors of its job");
    rig.cpu = here;
    open_refused(0, 65534, "nobody", here, "no number");
    open_refused(9, UINT32_MAX, "nobody", here, "no user");
    open_refused(9, 65534, "", here, "no user");
    open_refused(9, 65534, "../../etc", here, "no user");
    for (enum wire_type type = WIRE_taken; type <= WIRE_forget;
         type = type == WIRE_taken ? WIRE_forget : WIRE_TYPE_COUNT) {
        message = (struct wire_message){.type = type};
        message.u.taken.job = 77;
        rig_send(&rig, &message);
        message.u.taken.job = 1;
        message.u.taken.attempt = 1;
        message.u.taken.process = type == WIRE_taken ? 4000 : 0;
        rig_send(&rig, &message); /* forget of a job that is open: it stays */
    }
    message = (struct wire_message){.type = WIRE_pvm_spawned};
    message.u.pvm_spawned.job = 1;
    message.u.pvm_spawned.attempt = 1;
    message.u.pvm_spawned.line = "nobody has asked";
    rig_send(&rig, &message);
    message = (struct wire_message){.type = WIRE_pvm_finish};
    message.u.pvm_finish.job = 55;
    rig_send(&rig, &message);
    open_refused(9, 65534, "nobody\nrsd: all is well", here, "no user");
    open_refused(1, 65533, "nobody", here, "another user");
    refuse_long_order();
    struct wire_order_entry entry = {.job = 1, .attempt = 1, .level = 15, .lowest = true, .cpus = {everywhere, 1024}};
    message = (struct wire_message){.type = WIRE_order};
    message.u.order.generation = INT64_MAX;
    message.u.order.entries.items = &entry;
    message.u.order.entries.count = 1;
    rig_send(&rig, &message);
    rig_start(&rig, 1, 0, "command", argv);
    assert_int_equal(sched_getaffinity(rig_started(&rig), sizeof(cpus), &cpus), 0);
    assert_int_equal(CPU_COUNT(&cpus), 1);
    rig_end(&rig, 1, UINT32_MAX / 2000);
    rig_empty(&rig, 1, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)
        TEST(test_whole_life),           TEST(test_failing_starts),      TEST(test_refused_opens),
        TEST(test_ended_while_it_opens), TEST(test_status_before_empty), TEST(test_said_twice),
        TEST(test_garbage_stops_it),     TEST(test_strange_verbs),
    };
    int possible;
    alarm(400); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("root half", tests, NULL, NULL);
}
