/* enter.c - run a command in a node of tests/lab, as root or as a user from a login shell.
 *
 *   enter STATE K CMD..         as root
 *   enter STATE K -u USER CMD.. as USER, in the home directory
 *
 * STATE is the directory of the set of nodes (`lab path state`). stdin, stdout, stderr and the exit status are CMD's;
 * 125 where it cannot be started. LAB_FIFO=PRIORITY in the environment: in SCHED_FIFO, else in SCHED_OTHER.
 *
 * What taskset, nsenter, env, chrt and setpriv would do, one after the other. Tests ask the nodes tens of thousands of
 * times, and where a process is dear (4 ms for each exec on one machine) five of them for each question were most of
 * what there was to do. For the same reason it is linked without shared libraries, and reads the node's passwd and
 * group by itself.
 *
 * The command stays in the caller's control group: to move a process takes a lock for which the kernel waits for a
 * grace period of RCU, and behind real-time jobs on all CPUs that is up to a second, in which nothing on the machine
 * can fork or exit. What is left of it ends with the node's PID namespace.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_STARTED = 125, MAX_GROUPS = 64 };

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("lab: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(NOT_STARTED);
}

/* The first line of a file of the set; "" if there is none. */
static void read_line(char *line, size_t size, const char *state, const char *node, const char *name)
{
    char path[4096];
    FILE *file;
    snprintf(path, sizeof(path), "%s%s%s%s", state, *node ? "/n" : "", node, name);
    line[0] = 0;
    file = fopen(path, "re");
    if (file && !fgets(line, (int)size, file))
        line[0] = 0;
    line[strcspn(line, "\n")] = 0;
    if (file)
        fclose(file);
}

static pid_t leader_of(const char *state, const char *node)
{
    char group[2048], pid[32];
    read_line(group, sizeof(group), state, "", "/group");
    read_line(pid, sizeof(pid), group, node, "/payload/init.scope/cgroup.procs");
    if (atoi(pid) <= 0)
        die("node %s is down: 'lab start %s' boots it", node, node);
    return (pid_t)atoi(pid);
}

static void use_cpus(const char *state, const char *node)
{
    char list[256], *rest = list, *word;
    cpu_set_t cpus;
    read_line(list, sizeof(list), state, node, "/cpus");
    CPU_ZERO(&cpus);
    while ((word = strsep(&rest, ",")))
        CPU_SET(atoi(word), &cpus);
    if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
        die("CPUs of node %s: %s", node, strerror(errno));
}

static void go_there(pid_t leader)
{
    char path[64];
    int root, pidfd = (int)syscall(SYS_pidfd_open, leader, 0);
    snprintf(path, sizeof(path), "/proc/%d/root", (int)leader);
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (pidfd < 0 || root < 0 ||
        setns(pidfd, CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWCGROUP) < 0 ||
        fchdir(root) < 0 || chroot(".") < 0 || chdir("/") < 0)
        die("the namespaces of process %d: %s", (int)leader, strerror(errno));
    close(pidfd);
    close(root);
}

static void take_rank(const char *fifo)
{
    struct sched_param param = {.sched_priority = fifo ? atoi(fifo) : 0};
    if (sched_setscheduler(0, fifo ? SCHED_FIFO : SCHED_OTHER, &param) < 0)
        die("LAB_FIFO=%s: %s", fifo ? fifo : "", strerror(errno));
}

static void fresh_signals(void)
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void fresh_environment(void)
{
    clearenv();
    setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    setenv("HOME", "/root", 1);
    setenv("USER", "root", 1);
    setenv("TERM", "dumb", 1);
    setenv("LANG", "C.UTF-8", 1);
}

/* Not by the C library's getpwnam(), which would load plug-ins. */
static struct passwd *look_up(const char *user)
{
    FILE *file = fopen("/etc/passwd", "re");
    struct passwd *entry = NULL;
    while (file && (entry = fgetpwent(file)) && strcmp(entry->pw_name, user) != 0)
        ;
    if (!entry)
        die("there is no user %s on the node", user);
    return entry; /* the file stays open until exec */
}

static void take_groups(const struct passwd *user)
{
    gid_t groups[MAX_GROUPS] = {user->pw_gid};
    size_t count = 1;
    FILE *file = fopen("/etc/group", "re");
    const struct group *entry;
    while (file && (entry = fgetgrent(file)))
        for (char **member = entry->gr_mem; *member; member++)
            if (strcmp(*member, user->pw_name) == 0 && entry->gr_gid != user->pw_gid && count < MAX_GROUPS)
                groups[count++] = entry->gr_gid;
    if (setgroups(count, groups) < 0)
        die("groups of %s: %s", user->pw_name, strerror(errno));
}

static void inherit_no_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &head, data) < 0)
        die("capabilities: %s", strerror(errno));
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        data[i].inheritable = 0;
    if (syscall(SYS_capset, &head, data) < 0)
        die("capabilities: %s", strerror(errno));
}

static void become(const char *name)
{
    const struct passwd *user = look_up(name);
    take_groups(user);
    inherit_no_capabilities();
    if (setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
        die("cannot become %s: %s", name, strerror(errno));
    unsetenv("LANG"); /* the login shell says what there is */
    setenv("HOME", user->pw_dir, 1);
    setenv("USER", user->pw_name, 1);
    setenv("LOGNAME", user->pw_name, 1);
    setenv("SHELL", *user->pw_shell ? user->pw_shell : "/bin/sh", 1);
    if (user->pw_uid != 0)
        setenv("PATH", "/usr/local/bin:/bin:/usr/bin", 1);
}

static void __attribute__((noreturn)) run(char **command)
{
    execvp(command[0], command);
    fprintf(stderr, "lab: cannot run %s: %s\n", command[0], strerror(errno));
    exit(errno == ENOENT ? 127 : 126);
}

static void __attribute__((noreturn)) run_from_login_shell(char **command, int count)
{
    static char shell[] = "bash", login[] = "-l", script_follows[] = "-c", script[] = "cd && exec \"$@\"",
                name[] = "-bash";
    char **words = calloc((size_t)count + 6, sizeof(*words));
    if (!words)
        die("out of memory");
    words[0] = shell;
    words[1] = login;
    words[2] = script_follows;
    words[3] = script;
    words[4] = name;
    memcpy(words + 5, command, (size_t)count * sizeof(*words));
    run(words);
}

/* As the child ends, or stops. */
static void __attribute__((noreturn)) follow(pid_t child)
{
    int status;
    while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
        raise(SIGSTOP);
        kill(child, SIGCONT);
    }
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : NOT_STARTED);
}

int main(int argc, char **argv)
{
    char *fifo = getenv("LAB_FIFO"), *user = NULL;
    pid_t child;
    int first = 3;
    if (argc > 5 && strcmp(argv[3], "-u") == 0) {
        user = argv[4];
        first = 5;
    }
    if (argc <= first)
        die("usage: enter STATE K [-u USER] CMD..");
    fifo = fifo && *fifo ? strdup(fifo) : NULL;
    use_cpus(argv[1], argv[2]);
    go_there(leader_of(argv[1], argv[2]));
    child = fork(); /* only a child is in the PID namespace */
    if (child < 0)
        die("fork: %s", strerror(errno));
    if (child > 0)
        follow(child);
    take_rank(fifo);
    fresh_signals();
    fresh_environment();
    if (!user)
        run(argv + first);
    become(user);
    run_from_login_shell(argv + first, argc - first);
}
