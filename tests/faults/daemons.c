/* daemons.c - starting, watching and looking after the daemons of a world. */
#include "config.h"

#include "tests/faults/world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libelmer/elmer.h"
#include "tests/faults/world_internal.h"

enum { RESTARTS_MAX = 100, COMMAND_MS = 20000 };

/* ---- configuration ---- */

void world_write(const char *path, const char *format, ...)
{
    FILE *file = fopen(path, "we");
    va_list args;
    if (file) {
        va_start(args, format);
        vfprintf(file, format, args);
        va_end(args);
        fclose(file);
    }
}

/* On elmer's socket host_user is the host that elmer runs on, and elmer's own user whichever he says. */
const char *const world_host_users[HOSTS] = {"bin", "daemon"};

void world_configure(const struct world *world)
{
    world_write(WORLD "/elmer.conf",
                "[elmer]\nname = a\nhosts = a b\nstore = " WORLD_STORE "\nsocket = " WORLD
                "/elmer/elmer.sock\nhost_socket = " WORLD "/elmer/host.sock\nhost_user = bin\n"
                "jobs_dir = " WORLD "/rsd/jobs\nallocator = v1\nkill_grace = 200ms\nheartbeat = 1s\n"
                "host_timeout = 30s\nresend = 200ms\n%s\n[host a]\ncpus = 0-1\n[host b]\ncpus = 0-1\n",
                world->settings);
    for (int i = 0; i < HOSTS; i++) {
        char path[40];
        snprintf(path, sizeof(path), WORLD "/%c.conf", 'a' + i);
        world_write(path,
                    "[rsd]\nname = %c\nelmer = %s\npki = " WORLD "/pki-%c\nmode = none\ntmpdir_size = none\n"
                    "user = %s\nrundir = " WORLD "/rsd\n"
                    "network = " WORLD "/bin/elmer-rsd-net\n"
                    "spawn = " WORLD "/bin/elmer-spawn\nsupervisor = " WORLD
                    "/bin/elmer-supervisor\naccount = none\ncgroup_root = %s\n"
                    "ticket_dir = " WORLD "/rsd/keys\n%s",
                    'a' + i, world->elmer_address ? world->elmer_address : WORLD "/elmer/host.sock", 'a' + i,
                    world_host_users[i], world->groups[i],
                    world->tickets ? "tickets = require\nticket_program = " WORLD "/bin/elmer-tickets\n"
                                   : "tickets = accept\nticket_program = /none\n"); /* without any */
    }
}

/* ---- the daemons ---- */

static void log_to(const char *daemon)
{
    char path[60];
    snprintf(path, sizeof(path), WORLD "/log/%s", daemon);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    MUST(fd);
    MUST(dup2(fd, STDOUT_FILENO));
    MUST(dup2(fd, STDERR_FILENO));
    close(fd);
}

static void watch(void)
{
    setenv("LD_PRELOAD", WORLD "/bin/shim.so", 1);
    setenv(CONTROL_VARIABLE, WORLD "/control", 1);
}

void world_start_elmer(struct world *world)
{
    world->elmer_starts++;
    fflush(NULL);
    world->elmer = fork();
    MUST(world->elmer);
    if (world->elmer > 0)
        return;
    log_to("elmer");
    MUST(setresgid(WORLD_ELMER_USER, WORLD_ELMER_USER, WORLD_ELMER_USER));
    MUST(setresuid(WORLD_ELMER_USER, WORLD_ELMER_USER, WORLD_ELMER_USER));
    watch();
    execl(WORLD "/bin/elmer", "elmer", "-c", WORLD "/elmer.conf", (char *)NULL);
    world_must_fail("execute elmer");
}

void world_start_rsd(struct world *world, int host)
{
    char name[] = "rsd-a", config[] = WORLD "/a.conf", dir[] = WORLD "/host-a";
    name[4] = config[sizeof(WORLD)] = (char)('a' + host);
    dir[sizeof(dir) - 2] = (char)('a' + host);
    world->rsd_starts++;
    fflush(NULL);
    world->rsd[host] = fork();
    MUST(world->rsd[host]);
    if (world->rsd[host] > 0)
        return;
    log_to(name);
    MUST(unshare(CLONE_NEWNS)); /* both hosts know their files by the same name, as in a cluster */
    MUST(mount(dir, WORLD "/rsd", NULL, MS_BIND, NULL));
    watch();
    if (host > 0)
        setenv(UNWATCHED_VARIABLE, "1", 1);
    execl(WORLD "/bin/rsd", "rsd", "-c", config, (char *)NULL);
    world_must_fail("execute rsd");
}

static void stop(pid_t *pid, int signal)
{
    if (*pid <= 0)
        return;
    kill(*pid, signal);
    waitpid(*pid, NULL, 0);
    *pid = 0;
}

static _Noreturn void command_run(bool at_elmer, int out, const char *const *argv)
{
    char path[100];
    snprintf(path, sizeof(path), WORLD "/bin/%s", argv[0]);
    MUST(dup2(out, STDOUT_FILENO));
    MUST(dup2(out, STDERR_FILENO));
    MUST(chdir(WORLD "/work"));
    MUST(setgroups(0, NULL));
    MUST(setresgid(WORLD_USER, WORLD_USER, WORLD_USER));
    MUST(setresuid(WORLD_USER, WORLD_USER, WORLD_USER));
    setenv("ELMER_SOCKET", at_elmer ? WORLD "/elmer/elmer.sock" : WORLD "/host-a/rsd.sock", 1);
    execv(path, (char *const *)(uintptr_t)argv);
    world_must_fail(path);
}

int world_command(struct world *world, bool at_elmer, char *out, size_t size, const char *const *argv)
{
    int64_t deadline = world_now_ms() + COMMAND_MS;
    FILE *file = tmpfile();
    if (!file)
        world_must_fail("make a temporary file");
    fflush(NULL);
    world->user = fork();
    MUST(world->user);
    if (world->user == 0)
        command_run(at_elmer, fileno(file), argv);
    while (world->user && world_now_ms() < deadline && world_tend(world))
        world_pause();
    bool late = world->user != 0;
    if (late)
        stop(&world->user, SIGKILL);
    rewind(file);
    out[fread(out, 1, size - 1, file)] = 0;
    fclose(file);
    return late ? 124 : WIFEXITED(world->user_status) ? WEXITSTATUS(world->user_status) : 128;
}

bool world_answers(struct world *world, int ms)
{
    struct elmer_options options = {.socket = WORLD "/elmer/elmer.sock", .patience_ms = 1};
    struct elmer *elmer;
    int64_t deadline = world_now_ms() + ms;
    bool answers = false;
    if (elmer_open(&options, &elmer, NULL) != ELMER_OK)
        return false;
    while (!answers && world_now_ms() < deadline) {
        struct elmer_jobs *jobs = NULL;
        answers = elmer_query(elmer, true, false, NULL, 0, 1000, &jobs, NULL) == ELMER_OK;
        if (answers)
            elmer_jobs_free(jobs);
        else if (!world_tend(world))
            break;
        else
            world_pause();
    }
    elmer_close(elmer);
    return answers;
}

bool world_start(struct world *world)
{
    world_configure(world);
    world_start_elmer(world);
    if (!world_answers(world, 10000))
        return false;
    for (int i = 0; i < HOSTS; i++)
        world_start_rsd(world, i);
    return true;
}

void world_stop_elmer(struct world *world, int signal)
{
    stop(&world->elmer, signal);
}

static void await_silence(int host, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bool listens = true;
    snprintf(address.sun_path, sizeof(address.sun_path), WORLD "/host-%c/%s", 'a' + host, name);
    for (int i = 0; listens && i < 1000; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        listens = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
        close(fd);
        if (listens)
            world_pause();
    }
}

/* As systemd does, which starts a service again when all of its processes have ended: the network half and
 * elmer-tickets follow the root half, but a moment later. */
static void await_others(int host)
{
    await_silence(host, "rsd.sock");
    await_silence(host, "ticket.sock");
}

void world_stop_rsd(struct world *world, int host, int signal)
{
    stop(&world->rsd[host], signal);
    await_others(host);
}

static bool how(struct world *world, const char *who, int status)
{
    err_set(&world->err, -1, "%s ended by itself (%s %d)", who, WIFEXITED(status) ? "status" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return false;
}

bool world_tend(struct world *world)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && world->control->fired;
        if (world->elmer_starts + world->rsd_starts > RESTARTS_MAX)
            return how(world, "somebody", status);
        if (pid == world->user) {
            world->user = 0;
            world->user_status = status;
        }
        if (pid == world->elmer) {
            world->elmer = 0;
            if (!killed)
                return how(world, "elmer", status);
            world_start_elmer(world);
        }
        for (int i = 0; i < HOSTS; i++)
            if (pid == world->rsd[i]) {
                world->rsd[i] = 0;
                bool excused = world->rsd_may_end || (i == 0 && world->control->fired);
                if (!excused || (!killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 1)))
                    return how(world, "rsd", status); /* status 1: its other half was killed */
                await_others(i);
                world_start_rsd(world, i);
            }
    }
    return true;
}

/* ---- what is left ---- */

static bool dir_is_empty(const char *path)
{
    DIR *dir = opendir(path);
    bool empty = true;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        empty = empty && (entry->d_name[0] == '.' || strncmp(entry->d_name, "order", 5) == 0);
    if (dir)
        closedir(dir);
    return empty;
}

static bool has_groups(const char *path)
{
    DIR *dir = opendir(path);
    bool has = false;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        has = has || (entry->d_type == DT_DIR && strchr("0123456789", entry->d_name[0]));
    if (dir)
        closedir(dir);
    return has;
}

static const char *leftover(const struct world *world)
{
    static const char *const dirs[] = {WORLD "/host-a/sup", WORLD "/host-a/jobs", WORLD "/host-b/sup",
                                       WORLD "/host-b/jobs"};
    for (int i = 0; i < HOSTS; i++)
        if (has_groups(world->groups[i]))
            return world->groups[i];
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        if (!dir_is_empty(dirs[i]))
            return dirs[i];
    return NULL;
}

bool world_is_clean(struct world *world, int ms)
{
    int64_t deadline = world_now_ms() + ms;
    const char *left;
    while ((left = leftover(world)) && world_now_ms() < deadline && world_tend(world))
        world_pause();
    if (left)
        err_set(&world->err, -1, "leftovers in %s", left);
    return !left;
}

/* ---- logs ---- */

void world_show_logs(void)
{
    static const char *const names[] = {"elmer", "rsd-a", "rsd-b"};
    char line[4200], path[60];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), WORLD "/log/%s", names[i]);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file))
            printf("#   %s| %s", names[i], line);
        if (file)
            fclose(file);
    }
}

bool world_logged(const char *daemon, const char *text)
{
    char line[4200], path[60];
    bool logged = false;
    snprintf(path, sizeof(path), WORLD "/log/%s", daemon);
    FILE *file = fopen(path, "re");
    while (file && !logged && fgets(line, sizeof(line), file))
        logged = strstr(line, text) != NULL;
    if (file)
        fclose(file);
    return logged;
}

bool world_await_log(struct world *world, const char *daemon, const char *text, int ms)
{
    int64_t deadline = world_now_ms() + ms;
    while (!world_logged(daemon, text)) {
        if (world_now_ms() > deadline || !world_tend(world)) {
            err_set(&world->err, -1, "%s has not logged \"%s\"", daemon, text);
            return false;
        }
        world_pause();
    }
    return true;
}
