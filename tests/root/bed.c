#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/root/bed.h"

struct rig rig;
char helper_path[100];

int bed_up(void **state)
{
    (void)state;
    rig_up(&rig);
    snprintf(helper_path, sizeof(helper_path), "%s/helper", rig.dir);
    return 0;
}

int bed_down(void **state)
{
    (void)state;
    rig_down(&rig);
    return 0;
}

void bed_bound_self(unsigned rt_seconds, unsigned seconds)
{
    struct rlimit rt = {rt_seconds * 1000000L, rt_seconds * 1000000L};
    setrlimit(RLIMIT_RTTIME, &rt);
    alarm(seconds);
}

void expect_exit(uint32_t process, int status, int signal)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_exited, 5000, &message);
    assert_int_equal(message.u.exited.process, process);
    assert_int_equal(message.u.exited.exit_status, status);
    assert_int_equal(message.u.exited.signal, signal);
    wire_message_fini(&message);
}

void acknowledge(uint64_t job, uint32_t process)
{
    struct wire_message message = {.type = WIRE_taken};
    message.u.taken.job = job;
    message.u.taken.attempt = 1;
    message.u.taken.process = process;
    rig_send(&rig, &message);
}

void resync(struct wire_message *state)
{
    struct wire_message message = {.type = WIRE_resync};
    rig_send(&rig, &message);
    rig_expect(&rig, WIRE_root_state, 5000, state);
}

void expect_holdings(size_t count)
{
    struct wire_message message;
    resync(&message);
    assert_int_equal(message.u.root_state.holdings.count, count);
    wire_message_fini(&message);
}

void read_output(char *text, size_t size)
{
    char path[100];
    ssize_t got;
    int fd;
    snprintf(path, sizeof(path), "%s/work/out", rig.dir);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    got = read(fd, text, size - 1);
    assert_true(got >= 0);
    text[got] = 0;
    close(fd);
}

static double used_by_children_ms(void)
{
    struct rusage own, children;
    assert_true(getrusage(RUSAGE_SELF, &own) == 0 && getrusage(RUSAGE_CHILDREN, &children) == 0);
    return (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + children.ru_utime.tv_sec + children.ru_stime.tv_sec) *
               1000 +
           (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec + children.ru_utime.tv_usec +
                    children.ru_stime.tv_usec) /
               1000;
}

double bed_process_ms(void)
{
    enum { TRIED = 100 };
    double used = -used_by_children_ms();
    for (int i = 0; i < TRIED; i++) {
        const pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    return (used + used_by_children_ms()) / TRIED;
}
