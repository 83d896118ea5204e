/* world.c - see world.h. */
#include "config.h"

#include "tests/faults/world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "libelmer/elmer.h"
#include "rsd/root/group.h"
#include "tests/faults/world_internal.h"

static char own_group[4000];
static const char *const programs[][2] = {{"elmer/elmer", "elmer"},
                                          {"rsd/rsd", "rsd"},
                                          {"elmer-rsd-net", "elmer-rsd-net"},
                                          {"elmer-spawn", "elmer-spawn"},
                                          {"elmer-tickets", "elmer-tickets"},
                                          {"tests/faults/elmer-supervisor", "elmer-supervisor"},
                                          {"tests/faults/.libs/shim.so", "shim.so"},
                                          {"client/esubmit", "esubmit"},
                                          {"client/equery", "equery"},
                                          {"client/ekill", "ekill"},
                                          {"client/ecancel", "ecancel"}};
enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };
static char found[PROGRAMS][4096];

int64_t world_now_ms(void)
{
    return mono_ms(mono_now());
}

void world_pause(void)
{
    poll(NULL, 0, 2);
}

/* ---- may it be ---- */

static bool find_programs(void)
{
    const char *build = getenv("BUILDDIR"), *elmer = getenv("FAULTS_ELMER"), *rsd = getenv("FAULTS_RSD");
    for (int i = 0; i < PROGRAMS; i++) {
        snprintf(found[i], sizeof(found[i]), "%s/%s", build ? build : ".", programs[i][0]);
        if (i == 0 && elmer)
            snprintf(found[i], sizeof(found[i]), "%s", elmer);
        if (i == 1 && rsd)
            snprintf(found[i], sizeof(found[i]), "%s", rsd);
        if (access(found[i], X_OK) < 0) {
            fprintf(stderr, "no %s: %s; build first, and set BUILDDIR\n", found[i], strerror(errno));
            return false;
        }
    }
    return true;
}

int world_possible(void)
{
    struct err err = ERR_INIT;
    char probe[4200];
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: only root can make the namespaces\n");
        return 77;
    }
    if (group_locate("/proc", NULL, own_group, sizeof(own_group), &err) < 0) {
        fprintf(stderr, "skipped: %s\n", err.text);
        return 77;
    }
    snprintf(probe, sizeof(probe), "%s/elmer-probe-%d", own_group, (int)getpid());
    if (mkdir(probe, 0755) < 0) {
        fprintf(stderr, "skipped: cannot make groups in %s: %s\n", own_group, strerror(errno));
        return 77;
    }
    rmdir(probe);
    return find_programs() ? 0 : 1;
}

/* ---- making it ---- */

_Noreturn void world_must_fail(const char *what)
{
    printf("# cannot %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(99);
}

static void make_dir(const char *path, mode_t mode, uid_t uid)
{
    MUST(mkdir(path, mode));
    MUST(chmod(path, mode));
    MUST(chown(path, uid, uid));
}

static void copy(const char *from, const char *to)
{
    static char buffer[1 << 18];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    ssize_t got;
    MUST(in);
    MUST(out);
    while ((got = read(in, buffer, sizeof(buffer))) > 0)
        MUST(write(out, buffer, (size_t)got));
    MUST(close(in));
    MUST(close(out));
}

static void loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    MUST(fd);
    MUST(ioctl(fd, SIOCSIFFLAGS, &request));
    MUST(close(fd));
}

static void make_files(void)
{
    char to[100];
    make_dir(WORLD "/bin", 0755, 0);
    make_dir(WORLD "/store", 0700, WORLD_ELMER_USER);
    make_dir(WORLD "/elmer", 0755, WORLD_ELMER_USER);
    make_dir(WORLD "/rsd", 0755, 0);
    make_dir(WORLD "/host-a", 0755, 0);
    make_dir(WORLD "/host-b", 0755, 0);
    make_dir(WORLD "/work", 0755, WORLD_USER);
    make_dir(WORLD "/log", 0755, 0);
    for (int i = 0; i < PROGRAMS; i++) {
        snprintf(to, sizeof(to), WORLD "/bin/%s", programs[i][1]);
        copy(found[i], to);
    }
}

static struct control *make_control(void)
{
    int fd = open(WORLD "/control", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    MUST(fd);
    MUST(fchmod(fd, 0666));
    MUST(ftruncate(fd, sizeof(struct control)));
    struct control *control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED)
        world_must_fail("map the control page");
    close(fd);
    control->sync_ignored = SYNC_IGNORE_NONE;
    control->kind = KIND_NONE;
    snprintf(control->store, sizeof(control->store), WORLD "/store");
    return control;
}

static void enter(struct world *world)
{
    MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    MUST(mount("proc", "/proc", "proc", 0, NULL));
    MUST(mount("faults", WORLD, "tmpfs", 0, "mode=0755,size=256m"));
    MUST(sethostname("a", 1));
    loopback_up();
    make_files();
    world->control = make_control();
}

static void remove_group(const char *path)
{
    char name[4400];
    struct dirent *entry;
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
            remove_group(name);
        }
    if (dir)
        closedir(dir);
    rmdir(path);
}

struct birth {
    int (*body)(struct world *world, void *data);
    void *data;
    struct world world;
};

static _Noreturn void first_process(struct birth *birth)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    enter(&birth->world);
    int status = birth->body(&birth->world, birth->data);
    fflush(NULL);
    _exit(status);
}

/* The parent of the world's process 1, which takes the world with it when it ends. */
static _Noreturn void world_parent(struct birth *birth, const char *log)
{
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), status = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    MUST(fd);
    MUST(dup2(fd, STDOUT_FILENO));
    MUST(dup2(fd, STDERR_FILENO));
    MUST(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC));
    pid_t pid = fork();
    MUST(pid);
    if (pid == 0)
        first_process(birth);
    MUST(waitpid(pid, &status, 0));
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int wait_for(pid_t pid, unsigned seconds)
{
    int64_t deadline = world_now_ms() + 1000 * (int64_t)seconds;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (world_now_ms() > deadline) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return 124;
        }
        poll(NULL, 0, 5);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int world_run(int (*body)(struct world *world, void *data), void *data, const char *log, unsigned seconds)
{
    static struct birth birth;
    static unsigned number;
    char group[4100];
    snprintf(group, sizeof(group), "%s/elmer-faults-%d-%u", own_group, (int)getpid(), number++);
    birth = (struct birth){
        .body = body, .data = data, .world = {.settings = "levels = 1\n", .answer_ms = -1, .err = ERR_INIT}};
    if (mkdir(group, 0755) < 0)
        return 99;
    for (int i = 0; i < HOSTS; i++)
        snprintf(birth.world.groups[i], sizeof(birth.world.groups[i]), "%s/%c", group, 'a' + i);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        world_parent(&birth, log);
    int status = pid < 0 ? 99 : wait_for(pid, seconds);
    for (int i = 0; i < 1000 && access(group, F_OK) == 0; i++) { /* killed processes take a moment to leave */
        remove_group(group);
        world_pause();
    }
    return status;
}
