/* test_root_half.c - the root half on this machine's kernel: real groups, real classes, real users (nobody). Every
 * spinning program bounds itself. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/root/rig.h"

enum { HELPER_SECONDS = 90, RT_SECONDS = 4, FORKING_THREADS = 200 };

/* ---- the programs that the jobs run: this binary, as DIR/helper ---- */

static void bound_self(void)
{
    struct rlimit rt = {RT_SECONDS * 1000000, RT_SECONDS * 1000000};
    setrlimit(RLIMIT_RTTIME, &rt);
    alarm(HELPER_SECONDS);
}

static _Noreturn void spin(void)
{
    bound_self();
    signal(SIGTERM, SIG_IGN);
    for (;;) {
    }
}

static void *fork_on(void *unused)
{
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        if (pid > 0)
            waitpid(pid, NULL, 0);
        usleep(20000);
    }
    return unused;
}

static _Noreturn void forking_threads(void)
{
    pthread_t thread;
    bound_self();
    for (int i = 1; i < FORKING_THREADS; i++)
        pthread_create(&thread, NULL, fork_on, NULL);
    fork_on(NULL);
    exit(1);
}

/* Forks and exits, again and again: no process lives longer than it takes to have a child. */
static _Noreturn void chain(void)
{
    bound_self();
    for (int i = 0; i < 1000000; i++) {
        if (fork() != 0)
            _exit(0);
        if (i % 64 == 0)
            alarm(HELPER_SECONDS);
    }
    _exit(0);
}

/* As a pvmd: one line, then children. */
static _Noreturn void daemon_like(void)
{
    bound_self();
    printf("/tmp/socket of it\nmore\n");
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            sleep(HELPER_SECONDS);
            _exit(0);
        }
    }
    sleep(HELPER_SECONDS);
    _exit(0);
}

static int helper(const char *what)
{
    if (strcmp(what, "spin") == 0)
        spin();
    if (strcmp(what, "threads") == 0)
        forking_threads();
    if (strcmp(what, "chain") == 0)
        chain();
    if (strcmp(what, "say") == 0)
        return puts("x") < 0;
    if (strcmp(what, "daemon") == 0)
        daemon_like();
    return 1;
}

/* ---- tests ---- */

static struct rig rig;
static char helper_path[100];

static int up(void **state)
{
    (void)state;
    rig_up(&rig);
    snprintf(helper_path, sizeof helper_path, "%s/helper", rig.dir);
    return 0;
}

static int down(void **state)
{
    (void)state;
    rig_down(&rig);
    return 0;
}

static void expect_exit(uint32_t process, int status, int signal)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_exited, 5000, &message);
    assert_int_equal(message.u.exited.process, process);
    assert_int_equal(message.u.exited.exit_status, status);
    assert_int_equal(message.u.exited.signal, signal);
    wire_message_fini(&message);
}

static void take(uint64_t job, uint32_t process)
{
    struct wire_message message = {.type = WIRE_taken};
    message.u.taken.job = job;
    message.u.taken.attempt = 1;
    message.u.taken.process = process;
    rig_send(&rig, &message);
}

static void read_output(char *text, size_t size)
{
    char path[100];
    ssize_t got;
    int fd;
    snprintf(path, sizeof path, "%s/work/out", rig.dir);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    got = read(fd, text, size - 1);
    assert_true(got >= 0);
    text[got] = 0;
    close(fd);
}

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
    read_output(text, sizeof text);
    assert_string_equal(text, "hello\nnobody\n0022\n/nonexistent\none\ntwo\n");
    take(1, 0);
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

static void test_open_waits_for_its_order(void **state)
{
    const struct level alone = {1, 0, true};
    struct wire_message message = {.type = WIRE_order}, answer;
    (void)state;
    rig_ask_open(&rig, 1, 9, 0);
    rig_expect_none(&rig, WIRE_opened, 100);
    rig_order(&rig, 9, &alone, 1);
    rig_expect(&rig, WIRE_opened, 1000, &answer);
    wire_message_fini(&answer);
    message.u.order.generation = 3; /* older: dropped, answered with the newest */
    rig_send(&rig, &message);
    rig_expect(&rig, WIRE_ordered, 1000, &answer);
    assert_int_equal(answer.u.ordered.generation, 9);
    wire_message_fini(&answer);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 2000);
}

static void test_forking_threads_change_class(void **state)
{
    const char *const threads[] = {helper_path, "threads", NULL};
    const struct level alone[] = {{1, 0, true}}, shared[] = {{1, 0, false}, {2, 1, true}};
    size_t count = 0, wrong;
    int64_t begin;
    (void)state;
    rig_order(&rig, 1, alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, threads);
    rig_until(rig_wrong(&rig, 1, SCHED_OTHER, 0, &count) > 0 || count >= FORKING_THREADS);
    assert_int_equal(rig_wrong(&rig, 1, SCHED_OTHER, 0, &count), 0);
    begin = rig_now_ms();
    rig_order(&rig, 2, shared, 2);
    wrong = rig_wrong(&rig, 1, -1, 49, &count);
    print_message("%zu threads that keep forking are in the real-time class after %d ms\n", count,
                  (int)(rig_now_ms() - begin));
    assert_int_equal(wrong, 0);
    assert_true(count >= FORKING_THREADS);
    assert_int_equal(rig_wrong(&rig, 1, SCHED_RR, 49, &count), 0); /* more threads than processors */
    rig_end(&rig, 1, 200);
    rig_empty(&rig, 1, 4000);
}

static void test_chain_of_forks_changes_class(void **state)
{
    const char *const argv[] = {helper_path, "chain", NULL};
    const struct level alone[] = {{1, 0, true}}, shared[] = {{1, 0, false}, {2, 1, true}};
    size_t count = 0, wrong = 0, seen = 0;
    pid_t first, now = 0;
    (void)state;
    rig_order(&rig, 1, alone, 1);
    rig_open(&rig, 1, 1);
    rig_start(&rig, 1, 0, "command", argv);
    first = rig_started(&rig);
    rig_until(rig_pids(&rig, 1, "job", &now, 1) == 1 && now != first); /* it has begun to fork */
    rig_order(&rig, 2, shared, 2);
    for (int i = 0; i < 200; i++) {
        wrong += rig_wrong(&rig, 1, -1, 49, &count);
        seen += count;
        poll(NULL, 0, 1);
    }
    print_message("a chain of forks was seen %zu times, %zu times out of its class\n", seen, wrong);
    assert_int_equal(wrong, 0);
    assert_true(seen > 0);
    rig_end(&rig, 1, 100);
    rig_empty(&rig, 1, 4000);
}

static void test_move_up(void **state)
{
    const char *const argv[] = {"sleep", "120", NULL};
    const struct level three[] = {{1, 0, false}, {2, 1, false}, {3, 2, true}}, two[] = {{2, 0, false}, {3, 1, true}};
    size_t count;
    (void)state;
    rig_order(&rig, 1, three, 3);
    for (uint64_t job = 1; job <= 3; job++) {
        rig_open(&rig, job, 1);
        rig_run(&rig, job, argv);
    }
    assert_int_equal(rig_wrong(&rig, 1, SCHED_FIFO, 49, &count), 0);
    assert_int_equal(rig_wrong(&rig, 2, SCHED_FIFO, 46, &count), 0);
    assert_int_equal(rig_wrong(&rig, 3, SCHED_OTHER, 0, &count), 0);
    assert_int_equal(count, 1);
    rig_end(&rig, 1, 500);
    rig_empty(&rig, 1, 3000);
    rig_order(&rig, 2, two, 2);
    assert_int_equal(rig_wrong(&rig, 2, SCHED_FIFO, 49, &count), 0);
    assert_int_equal(rig_wrong(&rig, 3, SCHED_OTHER, 0, &count), 0);
    rig_end(&rig, 2, 500);
    rig_empty(&rig, 2, 3000);
    rig_end(&rig, 3, 500);
    rig_empty(&rig, 3, 3000);
}

/* Orders that come between fork and exec change the class of a process that has its own on the way. */
static void test_starts_among_orders(void **state)
{
    enum { STARTS = 40, LINE = 2 };
    const char *const argv[] = {helper_path, "say", NULL};
    const struct level top[] = {{1, 0, false}, {2, 1, true}}, alone[] = {{1, 0, true}};
    char text[1000];
    (void)state;
    rig_order(&rig, 1, top, 2);
    rig_open(&rig, 1, 1);
    for (uint32_t i = 0; i < STARTS; i++) {
        rig_start(&rig, 1, i, i % 2 ? "agent" : "command", argv);
        rig_order(&rig, 2 + i, i % 2 ? top : alone, i % 2 ? 2 : 1);
    }
    rig_until((read_output(text, sizeof text), strlen(text) >= STARTS * LINE));
    assert_int_equal(strlen(text), STARTS * LINE); /* each of them has started, once */
    rig_end(&rig, 1, 500);
    rig_empty(&rig, 1, 3000);
}

static void test_kill_below_a_spinner(void **state)
{
    const char *const argv[] = {helper_path, "spin", NULL};
    const struct level shared[] = {{1, 0, false}, {2, 1, false}, {3, 2, true}};
    int64_t begin;
    int took;
    (void)state;
    rig_order(&rig, 1, shared, 3);
    rig_open(&rig, 1, 1);
    rig_open(&rig, 2, 1);
    rig_run(&rig, 2, argv);
    rig_until(rig_signals(&rig, 2, "SigIgn", SIGTERM) == 1); /* it spins, and TERM does not end it */
    rig_run(&rig, 1, argv);
    rig_until(rig_signals(&rig, 1, "SigIgn", SIGTERM) == 1);
    begin = rig_now_ms();
    rig_end(&rig, 2, 1000);
    rig_empty(&rig, 2, 2000);
    took = (int)(rig_now_ms() - begin);
    print_message("a job that ignores TERM, below a spinning one: empty after %d ms\n", took);
    assert_in_range(took, 900, 2000);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 1000);
}

/* Started below a spinning job it gets to exec nevertheless, and not above its rank. */
static void test_start_below_a_spinner(void **state)
{
    const char *const argv[] = {helper_path, "spin", NULL};
    const struct level shared[] = {{1, 0, false}, {2, 1, false}, {3, 2, true}};
    size_t count;
    int64_t begin;
    (void)state;
    rig_order(&rig, 1, shared, 3);
    rig_open(&rig, 1, 1);
    rig_open(&rig, 2, 1);
    rig_open(&rig, 3, 1);
    rig_run(&rig, 1, argv);
    begin = rig_now_ms();
    rig_run(&rig, 2, argv);
    rig_run(&rig, 3, argv);
    print_message("two starts below a spinning job: %d ms\n", (int)(rig_now_ms() - begin));
    assert_true(rig_now_ms() - begin < 500);
    assert_int_equal(rig_wrong(&rig, 2, SCHED_FIFO, 46, &count), 0);
    assert_int_equal(rig_wrong(&rig, 3, SCHED_OTHER, 0, &count), 0);
    for (uint64_t job = 1; job <= 3; job++) {
        rig_end(&rig, job, 0);
        rig_empty(&rig, job, 1000);
    }
}

static void resync(struct wire_message *state)
{
    struct wire_message message = {.type = WIRE_resync};
    rig_send(&rig, &message);
    rig_expect(&rig, WIRE_root_state, 5000, state);
}

static void test_adoption(void **state)
{
    const char *const first[] = {"sh", "-c", "read x <gate; exit 5", NULL}, *const second[] = {"sleep", "120", NULL};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    pid_t pid, gone, left[2];
    (void)state;
    rig_gate(&rig);
    rig_order(&rig, 4, &alone, 1);
    rig_open(&rig, 1, 4);
    rig_start(&rig, 1, 0, "command", first);
    gone = rig_started(&rig);
    rig_start(&rig, 1, 1, "command", second);
    pid = rig_started(&rig);
    assert_int_not_equal(gone, pid);
    rig_root_kill(&rig, SIGKILL);
    rig_gate_open(&rig); /* the first ends while nobody looks */
    rig_until(rig_pids(&rig, 1, "job", left, 2) == 1 && left[0] == pid);
    rig_root_start(&rig);
    resync(&message);
    assert_int_equal(message.u.root_state.holdings.count, 1);
    assert_int_equal(message.u.root_state.holdings.items[0].job, 1);
    assert_string_equal(message.u.root_state.mode, "rt");
    wire_message_fini(&message);
    expect_exit(0, 5, 0);
    take(1, 0);
    rig_start(&rig, 1, 1, "command", second);
    assert_int_equal(rig_started(&rig), pid);
    rig_order(&rig, 5, &alone, 1);
    rig_open(&rig, 1, 5);
    rig_end(&rig, 1, 1000);
    expect_exit(1, -1, SIGTERM);
    rig_empty(&rig, 1, 3000);
}

/* Elmer may be away for long: what the jobs do meanwhile has the rank of the last order. */
static void test_ranks_outlive_it(void **state)
{
    const char *const argv[] = {"sh", "-c", "read x <gate; sleep 120 & sleep 120", NULL};
    const struct level levels[] = {{1, 0, false}, {2, 1, true}};
    struct sched_param lower = {0};
    struct wire_message message;
    size_t threads = 0, wrong = 1;
    pid_t pid;
    (void)state;
    rig_gate(&rig);
    rig_order(&rig, 7, levels, 2);
    rig_open(&rig, 1, 7);
    rig_start(&rig, 1, 0, "command", argv);
    pid = rig_started(&rig);
    rig_root_kill(&rig, SIGKILL);
    assert_int_equal(sched_setscheduler(pid, SCHED_OTHER, &lower), 0); /* as the tasks of a pvmd are born */
    rig_root_start(&rig);
    resync(&message);
    assert_int_equal(message.u.root_state.generation, 0); /* every order of elmer is newer */
    wire_message_fini(&message);
    rig_gate_open(&rig);
    rig_until((wrong = rig_wrong(&rig, 1, -1, 49, &threads)) == 0 && threads == 3);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

static void test_supervisor_killed(void **state)
{
    const char *const argv[] = {"sleep", "120", NULL};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    pid_t supervisor;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    assert_int_equal(rig_pids(&rig, 1, "sup", &supervisor, 1), 1);
    kill(supervisor, SIGKILL);
    rig_expect(&rig, WIRE_lost, 2000, &message);
    assert_non_null(strstr(message.u.lost.text, "supervisor of job 1 was killed"));
    wire_message_fini(&message);
    rig_expect_none(&rig, WIRE_empty, 300);
    assert_false(rig_exists(&rig, 1));
    rig_end(&rig, 1, 1000);
    rig_empty(&rig, 1, 1000);
}

static void test_supervisor_killed_while_nobody_looks(void **state)
{
    const char *const argv[] = {"sleep", "120", NULL};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    pid_t supervisor;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    assert_int_equal(rig_pids(&rig, 1, "sup", &supervisor, 1), 1);
    rig_root_kill(&rig, SIGKILL);
    kill(supervisor, SIGKILL);
    rig_until(rig_pids(&rig, 1, "sup", &supervisor, 1) == 0);
    rig_root_start(&rig);
    resync(&message);
    assert_int_equal(message.u.root_state.holdings.count, 1);
    wire_message_fini(&message);
    rig_end(&rig, 1, 1000);
    rig_empty(&rig, 1, 3000);
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

/* What a network half that was taken over could send: well-formed, and wrong. Nothing happens, and the root half goes
 * on. */
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
    assert_int_equal(sched_getaffinity(rig_started(&rig), sizeof cpus, &cpus), 0);
    assert_int_equal(CPU_COUNT(&cpus), 1);
    rig_end(&rig, 1, UINT32_MAX / 2000);
    rig_empty(&rig, 1, 3000);
}

/* It died while it opened the job, and what it left cannot be removed at once: the job is opened again when it can. */
static void test_leftover_is_in_the_way(void **state)
{
    static const char *const made[] = {"", "/sup", "/job", "/stays"};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    char path[4300];
    (void)state;
    resync(&message); /* it is up */
    wire_message_fini(&message);
    rig_root_kill(&rig, SIGKILL);
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        snprintf(path, sizeof path, "%s/1.1%s", rig.groups, made[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    rig_root_start(&rig);
    resync(&message);
    assert_int_equal(message.u.root_state.holdings.count, 0);
    wire_message_fini(&message);
    rig_order(&rig, 1, &alone, 1);
    rig_ask_open(&rig, 1, 1, 0);
    rig_expect_none(&rig, WIRE_open_failed, 300);
    assert_int_equal(rmdir(path), 0);
    rig_until(!rig_exists(&rig, 1));
    rig_open(&rig, 1, 1); /* elmer asks again for what is not confirmed */
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 3000);
}

/* The root half may die while it holds a group frozen: the next one lets it go. */
static void test_frozen_job_is_thawed(void **state)
{
    const char *const argv[] = {"sh", "-c", "read x <gate; exit 4", NULL};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    char path[4300];
    int fd;
    (void)state;
    rig_gate(&rig);
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    rig_root_kill(&rig, SIGKILL);
    snprintf(path, sizeof path, "%s/1.1/job/cgroup.freeze", rig.groups);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "1", 1), 1);
    close(fd);
    rig_gate_open(&rig);
    rig_root_start(&rig);
    resync(&message);
    wire_message_fini(&message);
    expect_exit(0, 4, 0);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 3000);
}

static void test_helpers(void **state)
{
    const char *const argv[] = {helper_path, "daemon", NULL};
    const struct level shared[] = {{1, 0, false}, {2, 1, false}, {3, 2, true}};
    struct wire_message message;
    struct sched_param param;
    size_t threads = 0, wrong = 9;
    pid_t pid;
    (void)state;
    rig_order(&rig, 1, shared, 3);
    rig_open(&rig, 2, 1);
    rig_start(&rig, 2, 1000, "pvmd", argv);
    pid = rig_started(&rig);
    rig_expect(&rig, WIRE_line, 5000, &message);
    assert_string_equal(message.u.line.line, "/tmp/socket of it");
    wire_message_fini(&message);
    assert_int_equal(sched_getscheduler(pid), SCHED_FIFO | SCHED_RESET_ON_FORK);
    assert_int_equal(sched_getparam(pid, &param), 0);
    assert_int_equal(param.sched_priority, 47);
    rig_until((wrong = rig_wrong(&rig, 2, -1, 46, &threads)) == 1 && threads == 4); /* wrong: the pvmd itself */
    assert_int_equal(kill(pid, SIGSTOP), 0);
    expect_exit(1000, -1, SIGSTOP);
    rig_end(&rig, 2, 0);
    rig_empty(&rig, 2, 2000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
        TEST(test_whole_life),
        TEST(test_failing_starts),
        TEST(test_refused_opens),
        TEST(test_ended_while_it_opens),
        TEST(test_leftover_is_in_the_way),
        TEST(test_status_before_empty),
        TEST(test_said_twice),
        TEST(test_open_waits_for_its_order),
        TEST(test_move_up),
        TEST(test_starts_among_orders),
        TEST(test_strange_verbs),
        TEST(test_frozen_job_is_thawed),
        TEST(test_helpers),
        TEST(test_adoption),
        TEST(test_ranks_outlive_it),
        TEST(test_supervisor_killed),
        TEST(test_supervisor_killed_while_nobody_looks),
        TEST(test_garbage_stops_it),
        TEST(test_forking_threads_change_class),
        TEST(test_chain_of_forks_changes_class),
        TEST(test_kill_below_a_spinner),
        TEST(test_start_below_a_spinner),
    };
    int possible;
    if (argc == 2)
        return helper(argv[1]);
    alarm(900); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("root half", tests, NULL, NULL);
}
