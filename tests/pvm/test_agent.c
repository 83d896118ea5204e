/* The agent of a job's virtual machine, with real PVM daemons: see fixture.h. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/pvm/fixture.h"

#define ARGV(...) ((const char *const[]){"chatter", __VA_ARGS__, NULL})
enum { END_MS = 1500, TIDS_MAX = 64 };

static bool have_network;
static struct fixture fixture;

static int teardown(void **state)
{
    (void)state;
    fixture_end(&fixture);
    return 0;
}

static int chatter(char **printed, const char *const *argv)
{
    return fixture_run(&fixture, "tests/pvm/chatter", printed, argv);
}

static void start_ready(int hosts)
{
    fixture_start(&fixture, hosts);
    assert_int_equal(fixture_serve(&fixture, NULL, NULL, NULL), WIRE_agent_ready);
}

/* The agent and all daemons end by themselves, the agent with this status, soon. */
static void assert_ends(int status)
{
    int64_t begin = mono_ms(mono_now());
    assert_int_equal(fixture_wait(&fixture.agent), status);
    for (int i = 0; i < FIXTURE_HOSTS; i++)
        if (fixture.daemon[i])
            assert_int_not_equal(fixture_wait(&fixture.daemon[i]), -1);
    assert_true(mono_ms(mono_now()) - begin < END_MS);
}

/* Every line is whole, and each of `children` tasks has all of its lines, in order, once. Returns how many hosts they
 * are from. */
static int assert_lines(char *text, int children, int lines)
{
    struct {
        unsigned tid;
        int next;
    } seen[TIDS_MAX] = {0};
    int tasks = 0, hosts = 0;
    size_t length = strlen(text);
    assert_true(length > 0 && text[length - 1] == '\n');
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        unsigned tid;
        int number, total, head = 0, task = 0;
        assert_int_equal(sscanf(line, "line %x %d %d %n", &tid, &number, &total, &head), 3);
        assert_int_equal(total, lines);
        size_t fill = strspn(line + head, "x");
        assert_int_equal(fill, (number * 37) % 2000);
        assert_string_equal(line + (size_t)head + fill, fill ? " end" : "end");
        while (task < tasks && seen[task].tid != tid)
            task++;
        if (task == tasks) {
            assert_true(++tasks <= children);
            seen[task].tid = tid;
        }
        assert_int_equal(number, seen[task].next++);
    }
    assert_int_equal(tasks, children);
    for (int i = 0, j; i < tasks; i++) {
        assert_int_equal(seen[i].next, lines);
        for (j = 0; j < i && seen[j].tid >> 18 != seen[i].tid >> 18; j++)
            ;
        hosts += j == i;
    }
    return hosts;
}

static void assert_silent(void)
{
    char *errors = fixture_errors(&fixture);
    assert_string_equal(errors, "");
    free(errors);
}

static void test_output_of_tasks_is_collected_in_whole_lines(void **state)
{
    (void)state;
    start_ready(1);
    assert_int_equal(chatter(NULL, ARGV("parent", "6", "400")), 0);
    fixture_finish(&fixture);
    assert_ends(0);
    char *text = fixture_output(&fixture);
    assert_int_equal(assert_lines(text, 6, 400), 1);
    free(text);
    assert_silent();
}

static void test_catchout_goes_on_working(void **state)
{
    char *printed;
    (void)state;
    start_ready(1);
    assert_int_equal(chatter(&printed, ARGV("parent", "2", "5", "catch")), 0);
    int ends = 0;
    for (char *at = printed; (at = strstr(at, " end\n")); at++)
        ends++;
    assert_int_equal(ends, 2 * 5 - 0);
    free(printed);
    fixture_finish(&fixture);
    assert_ends(0);
    char *text = fixture_output(&fixture);
    assert_string_equal(text, "");
    free(text);
}

static void test_several_hosts_become_one_machine(void **state)
{
    (void)state;
    if (!have_network) {
        print_message("skipped: no network namespace to give hosts addresses in\n");
        skip();
    }
    start_ready(FIXTURE_HOSTS);
    assert_int_equal(chatter(NULL, ARGV("parent", "6", "200")), 0);
    fixture_finish(&fixture);
    assert_ends(0);
    char *text = fixture_output(&fixture);
    assert_int_equal(assert_lines(text, 6, 200), FIXTURE_HOSTS);
    free(text);
    assert_silent();
}

static void test_a_foreign_host_is_refused(void **state)
{
    static const char *const foreign[] = {"no-such-host.invalid", "ws9 ip=10.213.99.9", "ws2 ip=10.213.99.9"};
    (void)state;
    if (!have_network) {
        print_message("skipped: no network namespace to give hosts addresses in\n");
        skip();
    }
    start_ready(2);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++) {
        char *printed;
        assert_int_equal(chatter(&printed, ARGV("add", foreign[i])), 0);
        assert_string_equal(printed, "added 0 code -6\n"); /* PvmNoHost */
        free(printed);
    }
    fixture_finish(&fixture);
    assert_ends(0);
}

static void test_a_refused_host_fails_the_start(void **state)
{
    static const char *const answers[] = {"PvmCantStart", "the disk of ws3 is full", ""};
    (void)state;
    if (!have_network) {
        print_message("skipped: no network namespace to give hosts addresses in\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        char *reason = NULL;
        fixture_start(&fixture, FIXTURE_HOSTS);
        assert_int_equal(fixture_serve(&fixture, "ws3", answers[i], &reason), WIRE_agent_failed);
        assert_non_null(reason);
        assert_non_null(strstr(reason, "host ws3 cannot join"));
        assert_non_null(strstr(reason, answers[i]));
        free(reason);
        assert_int_equal(fixture_wait(&fixture.agent), 1);
        fixture_end(&fixture);
    }
    fixture_start(&fixture, 1); /* for teardown */
}

static void test_a_task_cannot_pose_as_a_daemon(void **state)
{
    (void)state;
    start_ready(have_network ? 2 : 1);
    assert_int_equal(chatter(NULL, ARGV("forge", "40001")), 0);
    assert_int_equal(chatter(NULL, ARGV("parent", "1", "3")), 0);
    struct wire_message message;
    assert_int_equal(channel_receive(&fixture.link, &message, mono_ms(mono_now()) + 50, NULL), 0);
    fixture_finish(&fixture);
    assert_ends(0);
    char *text = fixture_output(&fixture);
    assert_int_equal(assert_lines(text, 1, 3), 1);
    free(text);
}

static int sleeper_pid(void)
{
    int pid = 0;
    for (int tries = 0; tries < 2000 && !pid; tries++) {
        char *text = fixture_output(&fixture);
        sscanf(text, "sleeper %d\n", &pid);
        free(text);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return pid;
}

/* Its daemon reaps it, or we, if that was first to end. */
static void assert_gone(pid_t pid)
{
    for (int tries = 0; tries < 2000 && kill(pid, 0) == 0; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        waitpid(pid, NULL, WNOHANG);
    }
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

static void test_finish_does_not_wait_for_a_silent_task(void **state)
{
    (void)state;
    start_ready(1);
    assert_int_equal(chatter(NULL, ARGV("leave")), 0);
    int pid = sleeper_pid();
    assert_true(pid > 0);
    fixture_finish(&fixture);
    assert_ends(0);
    assert_gone(pid);
}

static void test_a_lost_supervisor_is_the_end(void **state)
{
    (void)state;
    start_ready(1);
    channel_fini(&fixture.link);
    fixture.linked = false;
    assert_ends(0);
}

static void test_term_ends_the_agent_alone(void **state)
{
    (void)state;
    start_ready(1);
    kill(fixture.agent, SIGTERM);
    assert_int_equal(fixture_wait(&fixture.agent), 0);
    assert_int_equal(kill(fixture.daemon[0], 0), 0);
}

static void test_a_dead_daemon_is_the_end(void **state)
{
    (void)state;
    start_ready(1);
    assert_int_equal(chatter(NULL, ARGV("leave")), 0);
    int pid = sleeper_pid();
    kill(fixture.daemon[0], SIGKILL);
    assert_ends(3);
    kill(pid, SIGKILL); /* nobody else does */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_output_of_tasks_is_collected_in_whole_lines, teardown),
        cmocka_unit_test_teardown(test_catchout_goes_on_working, teardown),
        cmocka_unit_test_teardown(test_several_hosts_become_one_machine, teardown),
        cmocka_unit_test_teardown(test_a_foreign_host_is_refused, teardown),
        cmocka_unit_test_teardown(test_a_refused_host_fails_the_start, teardown),
        cmocka_unit_test_teardown(test_a_task_cannot_pose_as_a_daemon, teardown),
        cmocka_unit_test_teardown(test_finish_does_not_wait_for_a_silent_task, teardown),
        cmocka_unit_test_teardown(test_a_lost_supervisor_is_the_end, teardown),
        cmocka_unit_test_teardown(test_term_ends_the_agent_alone, teardown),
        cmocka_unit_test_teardown(test_a_dead_daemon_is_the_end, teardown),
    };
    have_network = fixture_enter_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
