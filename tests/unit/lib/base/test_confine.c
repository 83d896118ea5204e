/* test_confine.c - what a confined process cannot do, and what it still can. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/confine.h"

/* In a process of its own, because it is for good. Its status: the number of the first line that does not hold. */
static int status_of(void (*judge)(void))
{
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        judge();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define HOLDS(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            _exit(__LINE__);                                                                                           \
    } while (0)
#define REFUSED(call) HOLDS((call) < 0 && errno == EPERM)

static void *thread(void *data)
{
    char *words[] = {NULL};
    errno = 0;
    *(int *)data = execve("/bin/true", words, words) < 0 ? errno : 0;
    return data;
}

static void no_more_than_it_has(enum confine what)
{
    char *words[] = {NULL};
    pthread_t id;
    pid_t pid;
    int said = 0;
    HOLDS(confine(what) == 0);
    REFUSED(execve("/bin/true", words, words));
    REFUSED(syscall(SYS_execveat, AT_FDCWD, "/bin/true", words, words, 0));
    REFUSED(unshare(CLONE_NEWUSER));
    REFUSED(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    REFUSED(syscall(SYS_bpf, 0, 0, 0));
    REFUSED(syscall(SYS_io_uring_setup, 1, 0));
    REFUSED(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
    REFUSED(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, 0));
    REFUSED(syscall(SYS_process_vm_readv, getppid(), 0, 0, 0, 0, 0));
    REFUSED(syscall(SYS_pidfd_getfd, -1, 0, 0));
    REFUSED(syscall(SYS_process_madvise, -1, NULL, 0, 0, 0));
    REFUSED(syscall(SYS_mount_setattr, -1, "", 0, NULL, 0));
    REFUSED(syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0));
    REFUSED(syscall(SYS_fanotify_init, ~0U, 0));
    REFUSED(socket(AF_PACKET, SOCK_RAW, 0));
    HOLDS(syscall(SYS_clone3, 0, 0) < 0 && errno == ENOSYS);
    HOLDS(pthread_create(&id, NULL, thread, &said) == 0 && pthread_join(id, NULL) == 0 && said == EPERM);
    pid = fork();
    if (pid == 0)
        _exit(execve("/bin/true", words, words) < 0 && errno == EPERM ? 7 : 0);
    HOLDS(pid > 0 && waitpid(pid, &said, 0) == pid && WEXITSTATUS(said) == 7);
    HOLDS(socket(AF_UNIX, SOCK_STREAM, 0) >= 0 && open("/dev/null", O_RDONLY) >= 0);
}

static void local(void)
{
    no_more_than_it_has(CONFINE_LOCAL);
    REFUSED(socket(AF_INET, SOCK_STREAM, 0));
    REFUSED(socket(AF_NETLINK, SOCK_RAW, 0));
}

static void network(void)
{
    no_more_than_it_has(CONFINE_NETWORK);
    HOLDS(socket(AF_INET, SOCK_STREAM, 0) >= 0 && socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
}

static void test_local(void **state)
{
    (void)state;
    assert_int_equal(status_of(local), 0);
}

static void test_network(void **state)
{
    (void)state;
    assert_int_equal(status_of(network), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_local), cmocka_unit_test(test_network)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
