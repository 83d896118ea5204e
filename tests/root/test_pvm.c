/* test_pvm.c - what a user may make of the daemons and the agent of his virtual machine: all of them are processes of
 * his own, so nothing that they do may cost the jobs above more than a bounded time. A real root half and supervisors,
 * as in test_root_half.c; this binary is the pvmd and the agent. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "tests/root/bed.h"

enum { HELPER_SECONDS = 30, RT_SECONDS = 5, PVMD = 1000, AGENT = 1001, WORDS = 300, HOSTS = 900 };

/* ---- the programs that the jobs run: this binary, as DIR/helper ---- */

static _Noreturn void spin(void)
{
    for (;;) {
    }
}

/* One line as a pvmd, then as much as the pipe takes. */
static _Noreturn void flood(void)
{
    static char text[65536];
    puts("/tmp/socket");
    fflush(stdout);
    for (;;)
        (void)!write(STDOUT_FILENO, text, sizeof(text));
}

static _Noreturn void drip(void)
{
    for (;;)
        (void)!write(STDOUT_FILENO, "x", 1);
}

static int last_words(void)
{
    for (int i = 0; i < WORDS; i++)
        (void)!write(STDOUT_FILENO, "x", 1);
    return write(STDOUT_FILENO, "\n", 1) == 1 ? 7 : 1;
}

/* As an agent: says that forever, whole or byte by byte. */
static _Noreturn void say(const struct wire_message *message, size_t piece)
{
    uint8_t *frame;
    size_t size, at = 0;
    signal(SIGPIPE, SIG_IGN);
    if (wire_encode_frame(message, WIRE_MINOR_LASTING, &frame, &size, NULL) < 0)
        _exit(1);
    for (;;) {
        size_t next = piece < size - at ? piece : size - at;
        if (write(3, frame + at, next) < 0)
            poll(NULL, 0, 10);
        else
            at = (at + next) % size;
    }
}

static _Noreturn void long_frame_in_bytes(void)
{
    uint8_t header[4] = {0, 0, 0x30, 0};
    (void)!write(3, header, sizeof(header));
    for (;;)
        if (write(3, " ", 1) < 0)
            poll(NULL, 0, 10);
}

/* The first bytes are read one by one, so that the supervisor does not look for a while. */
static int last_message(void)
{
    char reason[1025] = "";
    const struct wire_message message = {.type = WIRE_agent_failed, .u.agent_failed.reason = reason};
    uint8_t *frame;
    size_t size, at = 0;
    memset(reason, 'x', sizeof(reason) - 1);
    if (wire_encode_frame(&message, WIRE_MINOR_LASTING, &frame, &size, NULL) < 0)
        return 1;
    for (int unread = 0; at < 5 && write(3, frame + at, 1) == 1; at++) {
        while (ioctl(3, SIOCOUTQ, &unread) == 0 && unread > 0)
            poll(NULL, 0, 1);
    }
    at += write(3, frame + at, size - at) == (ssize_t)(size - at) ? size - at : 0;
    free(frame);
    return at == size ? 7 : 1;
}

static _Noreturn void stop_and_go(void)
{
    pid_t parent = getpid();
    if (fork() == 0) {
        for (;;) {
            kill(parent, SIGSTOP);
            kill(parent, SIGCONT);
        }
    }
    for (;;)
        pause();
}

/* Each is the supervisor's to reap. */
static _Noreturn void orphans(void)
{
    for (;;) {
        pid_t pid = fork();
        if (pid == 0) {
            fork();
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
}

static int print_environment(void)
{
    printf("%s|%s|%s\n", getenv("LD_LIBRARY_PATH") ? "loader" : "bare", getenv("PVM_PATH") ? getenv("PVM_PATH") : "",
           getenv("PVM_EXPORT") ? getenv("PVM_EXPORT") : "");
    return 0;
}

static int helper(const char *what)
{
    const struct wire_message ready = {.type = WIRE_agent_ready};
    const struct wire_message spawn = {
        .type = WIRE_agent_spawn,
        .u.agent_spawn = {.request = 123,
                          .host = "ws123.example.org",
                          .command = "pvmd -s -d0x0 -nws123.example.org 1 0a4d0001:c198 4080 123 0a4d007b:0000"}};
    bed_bound_self(RT_SECONDS, HELPER_SECONDS);
    if (strcmp(what, "flood") == 0)
        flood();
    if (strcmp(what, "drip") == 0)
        drip();
    if (strcmp(what, "words") == 0)
        return last_words();
    if (strcmp(what, "ready") == 0)
        say(&ready, 4096);
    if (strcmp(what, "spawn") == 0)
        say(&spawn, 4096);
    if (strcmp(what, "spawn-bytes") == 0)
        say(&spawn, 1);
    if (strcmp(what, "bytes") == 0)
        long_frame_in_bytes();
    if (strcmp(what, "message") == 0)
        return last_message();
    if (strcmp(what, "stops") == 0)
        stop_and_go();
    if (strcmp(what, "orphans") == 0)
        orphans();
    if (strcmp(what, "environment") == 0)
        return print_environment();
    if (strcmp(what, "spin") == 0)
        spin();
    return 1;
}

/* ---- what it costs ---- */

static double cpu_ms(pid_t pid)
{
    struct timespec used = {0};
    clockid_t clock;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &used), 0);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

/* ---- tests ---- */

/* The first spins on the only CPU; the second, in real time below it, may get nothing that is not given to it. */
static const struct level levels[] = {{1, 0, false}, {2, 1, false}, {3, 1, false}, {4, 2, true}};

static void begin_below_a_spinner(void)
{
    const char *const argv[] = {helper_path, "spin", NULL};
    rig_order(&rig, 1, levels, 4);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
}

/* Job with a pvmd that does nothing but use its boost. */
static pid_t start_greedy(uint64_t job)
{
    const char *const argv[] = {helper_path, "spin", NULL};
    rig.pvm = true;
    rig_open(&rig, job, 1);
    rig_start(&rig, job, PVMD, "pvmd", argv);
    return rig_started(&rig);
}

static void finish(uint64_t job)
{
    struct wire_message message = {.type = WIRE_pvm_finish, .u.pvm_finish = {.job = job, .attempt = 1}};
    rig_send(&rig, &message);
}

enum { BOOST_MS = 50, HOST_MS_PER_SECOND = 10, OVERDRAWN_MS = 15 };

static void test_boost_of_a_job(void **state)
{
    double used, begin;
    pid_t pid;
    (void)state;
    begin_below_a_spinner();
    pid = start_greedy(2);
    poll(NULL, 0, 1000);
    used = cpu_ms(pid);
    print_message("a pvmd that spins, in its first second: %.0f ms\n", used);
    assert_in_range((unsigned)used, 5, BOOST_MS + OVERDRAWN_MS);
    begin = used;
    finish(2);
    poll(NULL, 0, 1000);
    used = cpu_ms(pid);
    print_message("when its machine ends: %.0f ms more\n", used - begin);
    assert_in_range((unsigned)(used - begin), 0, OVERDRAWN_MS);
    rig_end(&rig, 2, 0);
    rig_empty(&rig, 2, 2000);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 2000);
}

static void test_boosts_of_many_jobs(void **state)
{
    double used = 0;
    int64_t begin = rig_now_ms();
    (void)state;
    begin_below_a_spinner();
    for (uint64_t job = 2; job <= 3; job++) {
        pid_t pid = start_greedy(job);
        poll(NULL, 0, 300);
        used += cpu_ms(pid);
        rig_end(&rig, job, 0);
        rig_empty(&rig, job, 2000);
    }
    print_message("two of them one after the other: %.0f ms in %d ms\n", used, (int)(rig_now_ms() - begin));
    assert_true(used <= BOOST_MS + 2 * OVERDRAWN_MS + (double)(rig_now_ms() - begin) * HOST_MS_PER_SECOND / 1000);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 2000);
}

/* ---- what the supervisor and the root half do for them ---- */

static const struct level alone = {1, 0, true};
enum { MEASURED_MS = 2000, ONE_PERCENT = MEASURED_MS / 100 };

static pid_t begin_job(uint32_t process, const char *role, const char *const *argv)
{
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_start(&rig, 1, process, role, argv);
    return rig_started(&rig);
}

static pid_t begin_alone(uint32_t process, const char *role, const char *what)
{
    const char *const argv[] = {"/bin/false", what, NULL}; /* of helpers not the path that is asked for is started */
    const char *const own[] = {helper_path, what, NULL};
    return begin_job(process, role, strcmp(role, "command") == 0 ? own : argv);
}

/* The agent of a machine of HOSTS, as its command line says. */
static void begin_machine(const char *what)
{
    const char *argv[HOSTS + 2] = {"/bin/false"};
    for (size_t i = 1; i <= HOSTS; i++)
        argv[i] = what;
    begin_job(AGENT, "agent", argv);
}

static void end_alone(void)
{
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* At most 1 % of a CPU, of all that ranks above jobs. */
static void expect_cheap(const char *what)
{
    pid_t supervisor;
    double used, stolen;
    assert_int_equal(rig_pids(&rig, 1, "sup", &supervisor, 1), 1);
    used = -rig_thread_ms(supervisor) - rig_thread_ms(rig.root_half);
    stolen = -rig_stolen_ms();
    poll(NULL, 0, MEASURED_MS);
    used += rig_thread_ms(supervisor) + rig_thread_ms(rig.root_half);
    stolen += rig_stolen_ms();
    print_message("%s: supervisor and root half used %.1f ms of %d; %.0f ms were stolen\n", what, used, MEASURED_MS,
                  stolen);
    assert_true(used - stolen <= ONE_PERCENT);
}

static void expect_line(const char *text)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_line, 2000, &message);
    assert_string_equal(message.u.line.line, text);
    wire_message_fini(&message);
}

static void test_flood_of_output(void **state)
{
    (void)state;
    begin_alone(PVMD, "pvmd", "flood");
    expect_line("/tmp/socket");
    expect_cheap("a flood of output");
    end_alone();
}

static void test_bytes_of_output(void **state)
{
    (void)state;
    begin_alone(PVMD, "pvmd", "drip");
    expect_cheap("output byte by byte");
    end_alone();
}

/* Paced or not, what it had written before its end is told before its end. */
static void test_last_words(void **state)
{
    char text[WORDS + 1];
    struct wire_message message;
    (void)state;
    memset(text, 'x', WORDS);
    text[WORDS] = 0;
    begin_alone(PVMD, "pvmd", "words");
    expect_line(text);
    rig_expect(&rig, WIRE_exited, 2000, &message);
    assert_int_equal(message.u.exited.exit_status, 7);
    wire_message_fini(&message);
    end_alone();
}

static void expect_failed(void)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_pvm_failed, 2000, &message);
    assert_non_null(strstr(message.u.pvm_failed.reason, "sent what it may not"));
    wire_message_fini(&message);
}

static void test_ready_without_end(void **state)
{
    struct wire_message message;
    (void)state;
    begin_alone(AGENT, "agent", "ready");
    rig_expect(&rig, WIRE_pvm_ready, 2000, &message);
    wire_message_fini(&message);
    expect_failed();
    expect_cheap("an agent that says ready without end");
    rig_expect_none(&rig, WIRE_pvm_ready, 100);
    end_alone();
}

/* Its command line names one host. */
static void test_spawns_without_end(void **state)
{
    struct wire_message message;
    (void)state;
    begin_alone(AGENT, "agent", "spawn");
    rig_expect(&rig, WIRE_pvm_spawn, 2000, &message);
    wire_message_fini(&message);
    expect_failed();
    rig_expect_none(&rig, WIRE_pvm_spawn, 100);
    end_alone();
}

static void test_bytes_of_a_message(void **state)
{
    (void)state;
    begin_alone(AGENT, "agent", "bytes");
    expect_cheap("a message byte by byte");
    end_alone();
}

/* After 10 s an agent gives them up (SPAWN_MAX_MS). */
static void test_requests_of_a_large_machine(void **state)
{
    const int64_t begin = rig_now_ms();
    struct wire_message message;
    (void)state;
    begin_machine("spawn");
    for (int i = 0; i < HOSTS; i++) {
        rig_expect(&rig, WIRE_pvm_spawn, 2000, &message);
        wire_message_fini(&message);
    }
    print_message("requests for %d hosts: heard within %d ms\n", HOSTS, (int)(rig_now_ms() - begin));
    assert_in_range(rig_now_ms() - begin, 0, 10000);
    end_alone();
}

static void test_requests_in_bytes(void **state)
{
    (void)state;
    begin_machine("spawn-bytes");
    expect_cheap("requests byte by byte");
    end_alone();
}

/* Paced or not, too. */
static void test_last_message(void **state)
{
    struct wire_message message;
    (void)state;
    begin_alone(AGENT, "agent", "message");
    rig_expect(&rig, WIRE_pvm_failed, 200, &message);
    assert_int_equal(strspn(message.u.pvm_failed.reason, "x"), 1024);
    wire_message_fini(&message);
    rig_expect(&rig, WIRE_exited, 2000, &message);
    assert_int_equal(message.u.exited.exit_status, 7);
    wire_message_fini(&message);
    end_alone();
}

static void test_stops_without_end(void **state)
{
    (void)state;
    begin_alone(0, "command", "stops");
    expect_cheap("a command that is stopped and continued without end");
    end_alone();
}

static void test_orphans_without_end(void **state)
{
    (void)state;
    begin_alone(0, "command", "orphans");
    expect_cheap("orphans without end");
    end_alone();
}

static void test_nothing_of_the_users_is_loaded(void **state)
{
    char expected[200], text[200] = "", path[100];
    FILE *file;
    (void)state;
    begin_alone(PVMD, "pvmd", "environment");
    snprintf(expected, sizeof(expected), "bare|$HOME/pvm3/bin/$PVM_ARCH:$PVM_ROOT/bin/$PVM_ARCH:%s|", rig.dir);
    expect_line(expected);
    rig_start(&rig, 1, 0, "command", (const char *const[]){helper_path, "environment", NULL});
    rig_started(&rig);
    struct wire_message message;
    for (uint32_t process = PVMD; process != 0; wire_message_fini(&message)) {
        rig_expect(&rig, WIRE_exited, 2000, &message);
        process = (uint32_t)message.u.exited.process;
    }
    snprintf(path, sizeof(path), "%s/work/out", rig.dir);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    assert_string_equal(text, "loader||LD_LIBRARY_PATH\n"); /* its tasks see it */
    end_alone();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)
        TEST(test_boost_of_a_job),
        TEST(test_boosts_of_many_jobs),
        TEST(test_flood_of_output),
        TEST(test_bytes_of_output),
        TEST(test_last_words),
        TEST(test_ready_without_end),
        TEST(test_spawns_without_end),
        TEST(test_bytes_of_a_message),
        TEST(test_requests_of_a_large_machine),
        TEST(test_requests_in_bytes),
        TEST(test_last_message),
        TEST(test_stops_without_end),
        TEST(test_orphans_without_end),
        TEST(test_nothing_of_the_users_is_loaded),
    };
    int possible;
    if (argc >= 2)
        return helper(argv[1]);
    alarm(180); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("virtual machines", tests, NULL, NULL);
}
