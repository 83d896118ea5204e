/* outside.c - faults from outside: a disk that is full or cannot be written, a damaged store, no descriptors, no memory
 * for a request, a wall clock that jumps, a peer that does not read, a name that does not resolve yet. New work is
 * refused with a reason, old work is not harmed, and service returns by itself. Each test is a world of its own.
 *
 *   outside [FOLDER [WORDS]]     logs go to the folder; only the tests whose names have these words */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libelmer/elmer.h"
#include "lib/wire/channel.h"
#include "tests/faults/outside.h"

enum { WORLD_SECONDS = 90, QUIET_LOOKS = 100 /* in a row, 2 ms apart */ };
enum { SLOWER = 10, SLACK_MS = 2000 }; /* answers beside a client that does not read: as long as in peace, and more */
char out[OUT];

/* ---- what the user does ---- */

int outside_submit_with(struct world *world, const char *variable, const char *script)
{
    const char *argv[] = {"esubmit", "-o", "/dev/null", "-v", variable, "1", "/bin/sh", "-c", script, NULL};
    return world_command(world, false, out, sizeof(out), argv);
}

int outside_submit(struct world *world, const char *script)
{
    return outside_submit_with(world, "NOTHING=", script);
}

uint64_t outside_submitted(void)
{
    for (const char *line = out; line; line = strchr(line, '\n'))
        if (line += *line == '\n', *line >= '0' && *line <= '9')
            return strtoull(line, NULL, 10);
    return 0;
}

bool outside_query(uint64_t id, struct seen *seen)
{
    struct elmer_options options = {.socket = WORLD "/elmer/elmer.sock", .patience_ms = 3000};
    struct elmer *elmer;
    struct elmer_jobs *jobs = NULL;
    *seen = (struct seen){.exit_status = -1};
    if (elmer_open(&options, &elmer, NULL) != ELMER_OK)
        return false;
    bool known = elmer_query(elmer, false, false, &id, 1, 3000, &jobs, NULL) == ELMER_OK && jobs->count == 1;
    if (known) {
        const struct elmer_job *job = &jobs->items[0];
        snprintf(seen->state, sizeof(seen->state), "%s", job->state);
        snprintf(seen->reason, sizeof(seen->reason), "%s", job->reason_code);
        seen->exit_status = job->exit_status;
        seen->started_ms = job->started_ms;
        seen->ended_ms = job->ended_ms;
        for (size_t i = 0; i < job->nusage; i++)
            seen->usage += job->usage[i].cpu_seconds;
    }
    if (jobs)
        elmer_jobs_free(jobs);
    elmer_close(elmer);
    return known;
}

bool outside_await_state(struct world *world, uint64_t id, const char *state)
{
    int64_t deadline = world_now_ms() + WAIT_MS;
    struct seen seen = {.exit_status = -1};
    while (world_now_ms() < deadline && world_tend(world)) {
        if (outside_query(id, &seen) && strcmp(seen.state, state) == 0)
            return true;
        world_pause();
    }
    printf("# job %" PRIu64 " is %s (%s), not %s\n", id, seen.state, seen.reason, state);
    return false;
}

int outside_begin(struct world *world)
{
    CHECK(world_start(world), "%s", world->err.text);
    CHECK(outside_submit(world, "exec sleep 600") == 0 && outside_submitted() == 1, "%s", out);
    CHECK(outside_submit(world, "until [ -e end ]; do sleep 0.05; done; echo over >over; exit 7") == 0 &&
              outside_submitted() == 2,
          "%s", out);
    CHECK(outside_await_state(world, 1, "running") && outside_await_state(world, 2, "running"), "not running");
    return 0;
}

bool outside_await_file(struct world *world, const char *path)
{
    int64_t deadline = world_now_ms() + WAIT_MS;
    while (access(path, F_OK) < 0 && world_now_ms() < deadline && world_tend(world))
        world_pause();
    return access(path, F_OK) == 0;
}

void outside_touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
}

int outside_goes_on(struct world *world)
{
    int64_t deadline = world_now_ms() + 10000, begin_ms = world_now_ms();
    struct seen seen;
    int status;
    outside_touch(WORLD "/work/end");
    while ((status = outside_submit(world, "exit 5")) == UNAVAILABLE && world_now_ms() < deadline)
        world_pause();
    CHECK(status == 0, "status %d: %s", status, out);
    uint64_t fresh = outside_submitted();
    CHECK(outside_await_state(world, fresh, "done") && outside_query(fresh, &seen) && seen.exit_status == 5,
          "status %d, %s", seen.exit_status, seen.reason);
    CHECK(outside_await_state(world, 2, "done") && outside_query(2, &seen) && seen.exit_status == 7, "status %d, %s",
          seen.exit_status, seen.reason);
    CHECK(outside_query(1, &seen) && strcmp(seen.state, "running") == 0, "%s", seen.state);
    CHECK(world->elmer_starts == 1 && world->rsd_starts == HOSTS, "somebody was started again");
    printf("# back after %" PRId64 " ms\n", world_now_ms() - begin_ms);
    return 0;
}

/* ---- descriptors and memory ---- */

/* As its own user: even root may not set the limits of others in a container. */
static void limit_descriptors(pid_t pid, uid_t uid, rlim_t soft)
{
    struct rlimit limit;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ||
            prlimit(pid, RLIMIT_NOFILE, NULL, &limit) < 0)
            _exit(1);
        limit.rlim_cur = soft;
        _exit(prlimit(pid, RLIMIT_NOFILE, &limit, NULL) < 0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) < 0 || status != 0)
        printf("# cannot limit the descriptors\n");
}

static unsigned lowest_free(pid_t pid)
{
    char path[40];
    struct stat st;
    unsigned lowest = 0;
    do
        snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, lowest);
    while (lstat(path, &st) == 0 && ++lowest);
    return lowest;
}

/* So low that it gets no new one; what it has it keeps. The connection that asked last is perhaps still being closed:
 * wait until nothing changes any more. */
static void take_descriptors(pid_t pid, uid_t uid)
{
    unsigned lowest = lowest_free(pid), again;
    int64_t deadline = world_now_ms() + WAIT_MS;
    for (int same = 0; same < QUIET_LOOKS && world_now_ms() < deadline; lowest = again) {
        world_pause();
        again = lowest_free(pid);
        same = again == lowest ? same + 1 : 0;
    }
    limit_descriptors(pid, uid, lowest);
}

static double cpu_seconds(pid_t pid)
{
    char path[40], text[1000] = "";
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(text, sizeof(text), file))
        sscanf(strrchr(text, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    if (file)
        fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* No descriptor is free, so nobody new is heard; but nothing spins, and the links that are there go on. */
static int elmer_without_descriptors(struct world *world, void *data)
{
    (void)data;
    if (outside_begin(world))
        return 1;
    const char *argv[] = {"equery", NULL};
    take_descriptors(world->elmer, WORLD_ELMER_USER);
    double before = cpu_seconds(world->elmer);
    int64_t begin_ms = world_now_ms();
    int status = world_command(world, true, out, sizeof(out), argv);
    double busy = (cpu_seconds(world->elmer) - before) * 1000 / (double)(world_now_ms() - begin_ms + 1);
    CHECK(status == UNREACHABLE, "status %d: %s", status, out);
    CHECK(busy < 0.3, "elmer used %.0f %% of a processor", busy * 100);
    CHECK(outside_submit(world, "exit 0") == 0, "%s", out); /* over the link of host a, which is there */
    limit_descriptors(world->elmer, WORLD_ELMER_USER, 1000);
    return outside_goes_on(world);
}

enum { RSD_USER = 65531 }; /* there is no elmer-jobs in a world */

static int rsd_without_descriptors(struct world *world, void *data)
{
    struct seen seen;
    (void)data;
    if (outside_begin(world))
        return 1;
    for (int i = 0; i < HOSTS; i++)
        take_descriptors(world->rsd[i], RSD_USER);
    CHECK(outside_submit(world, "exit 0") == 0, "%s", out);
    uint64_t third = outside_submitted();
    int64_t deadline = world_now_ms() + WAIT_MS;
    while (outside_query(third, &seen) && strcmp(seen.reason, "start-failed") != 0 && world_now_ms() < deadline)
        world_pause();
    CHECK(strcmp(seen.reason, "start-failed") == 0, "%s, %s", seen.state, seen.reason);
    for (int i = 0; i < HOSTS; i++)
        limit_descriptors(world->rsd[i], RSD_USER, 1000);
    CHECK(outside_await_state(world, third, "done"), "what could not be started does not end");
    return outside_goes_on(world);
}

/* A request as large as one may be, and no memory for it: refused in words, and nobody's link suffers. */
static int refused_without_memory(struct world *world, bool at_elmer, const char *const *argv, const char *who)
{
    unsigned before = world->control->memory_refused;
    int status = world_command(world, at_elmer, out, sizeof(out), argv);
    CHECK(status == UNAVAILABLE, "status %d: %s", status, out);
    CHECK(strstr(out, "no memory") && strstr(out, "try again") && strstr(out, who), "%s", out);
    CHECK(world->control->memory_refused > before, "nothing large was allocated");
    CHECK(!world_logged("elmer", "out of memory") && !world_logged("rsd-a", "out of memory") &&
              !world_logged("rsd-a", "no link"),
          "a link was given up");
    return 0;
}

static int no_memory(struct world *world, void *data)
{
    enum kind kind = *(enum kind *)data;
    static char big[4][110000];
    const char *argv[] = {"esubmit", "--hosts", "a",  "-o",   "/dev/null", "-v",      big[0], "-v",     big[1],
                          "-v",      big[2],    "-v", big[3], "1",         "/bin/sh", "-c",   "exit 0", NULL};
    world->settings = "levels = 3\n";
    if (outside_begin(world))
        return 1;
    for (int i = 0; i < 4; i++) {
        memset(big[i], 'x', sizeof(big[i]) - 1);
        big[i][0] = (char)('A' + i);
        big[i][1] = '=';
    }
    world->rsd_may_end = kind == KIND_RSD_ROOT; /* it stops, for systemd to start it again; jobs live on */
    world->control->memory_kind = kind;
    world->control->memory_limit = 100000;
    if (kind == KIND_ELMER && (refused_without_memory(world, true, argv, "elmer has") ||
                               refused_without_memory(world, false, argv, "elmer has")))
        return 1;
    if (kind == KIND_RSD_NET && refused_without_memory(world, false, argv, "rsd has"))
        return 1;
    int status = world_command(world, false, out, sizeof(out), argv);
    uint64_t id = status == 0 ? outside_submitted() : 0;
    struct seen seen = {.exit_status = 0};
    if (world->rsd_may_end) /* it is told again and again, until there is memory */
        CHECK(world_await_log(world, "rsd-a", "Cannot allocate memory", WAIT_MS), "%s", world->err.text);
    if (world->rsd_may_end)
        world->control->memory_limit = 0;
    CHECK(status != 0 || (outside_await_state(world, id, "done") && outside_query(id, &seen) &&
                          (world->rsd_may_end || strcmp(seen.reason, "exited") != 0)),
          "%s", out);
    CHECK(world->control->memory_refused > 0, "nothing large was allocated");
    CHECK(world_tend(world), "%s", world->err.text);
    printf("# %u allocations refused; status %d, %s: %.200s\n", world->control->memory_refused, status, seen.reason,
           out);
    world->control->memory_limit = 0;
    if (world->rsd_may_end)
        world->rsd_starts = HOSTS;
    return outside_goes_on(world);
}

/* ---- time, peers, names ---- */

static int clock_steps(struct world *world, void *data)
{
    static const int steps[] = {3600, -3600, 0};
    struct seen seen;
    (void)data;
    if (outside_begin(world))
        return 1;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        CHECK(outside_submit(world, "sleep 0.3; exit 4") == 0, "%s", out);
        uint64_t id = outside_submitted();
        CHECK(outside_await_state(world, id, "running"), "before the step of %d s", steps[i]);
        world->control->clock_step_s = steps[i];
        CHECK(outside_await_state(world, id, "done") && outside_query(id, &seen) && seen.exit_status == 4, "%s",
              seen.reason);
        CHECK(seen.ended_ms >= seen.started_ms, "it ended %" PRId64 " ms before it began",
              seen.started_ms - seen.ended_ms);
    }
    CHECK(!world_logged("elmer", "is down") && !world_logged("elmer", "link ended"), "a host was given up");
    return outside_goes_on(world);
}

/* Asks and asks, and reads nothing. */
static pid_t deaf_client(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct err err = ERR_INIT;
    struct channel channel;
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = WORLD "/elmer/elmer.sock"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        channel_init(&channel, fd, WIRE_FROM_ELMER, 64 << 20) < 0 ||
        channel_hello(&channel, "deaf", world_now_ms() + 5000, &err) < 0)
        _exit(1);
    for (uint64_t id = 1; id < 200000; id++) {
        struct wire_message query = {.type = WIRE_query, .id = id, .u.query = {.running = true, .queued = true}};
        if (channel_send_all(&channel, &query, world_now_ms() + 10000, &err) < 0)
            break;
    }
    pause();
    _exit(0);
}

static long resident_kb(pid_t pid)
{
    char path[40], line[200];
    long kb = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        sscanf(line, "VmRSS: %ld", &kb);
    if (file)
        fclose(file);
    return kb;
}

/* The longest answer to others within ms; -1: there was none. */
static int64_t worst_answer(struct world *world, int ms)
{
    const char *argv[] = {"equery", NULL};
    int64_t worst = 0;
    for (int64_t end = world_now_ms() + ms; world_now_ms() < end;) {
        int64_t begin_ms = world_now_ms();
        if (world_command(world, true, out, sizeof(out), argv) != 0)
            return -1;
        worst = world_now_ms() - begin_ms > worst ? world_now_ms() - begin_ms : worst;
    }
    return worst;
}

static int deaf_peer(struct world *world, void *data)
{
    (void)data;
    if (outside_begin(world))
        return 1;
    for (int i = 0; i < 20; i++)
        CHECK(outside_submit_with(world, "X=yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", "sleep 100") == 0, "%s", out);
    long before = resident_kb(world->elmer);
    int64_t in_peace = worst_answer(world, 1000);
    CHECK(in_peace >= 0, "%s", out);
    pid_t deaf = deaf_client();
    int64_t worst = worst_answer(world, 3000);
    CHECK(worst >= 0, "%s", out);
    long growth = resident_kb(world->elmer) - before;
    printf("# others were answered in %" PRId64 " ms at most, %" PRId64 " before, elmer grew by %ld kB\n", worst,
           in_peace, growth);
    CHECK(worst <= SLOWER * in_peace + SLACK_MS, "it keeps others waiting");
    CHECK(growth < 128 << 10, "elmer keeps what nobody reads");
    kill(deaf, SIGKILL);
    for (uint64_t id = 22; id >= 3; id--) { /* those that wait first: the end of others lets them start */
        char text[24];
        const char *kill_argv[] = {"ecancel", text, NULL};
        snprintf(text, sizeof(text), "%" PRIu64, id);
        struct seen seen;
        if (outside_query(id, &seen) && strcmp(seen.state, "queued") == 0)
            CHECK(world_command(world, false, out, sizeof(out), kill_argv) == 0, "%s", out);
        kill_argv[0] = "ekill";
        if (outside_query(id, &seen) && strcmp(seen.state, "running") == 0)
            CHECK(world_command(world, false, out, sizeof(out), kill_argv) == 0, "%s", out);
    }
    return outside_goes_on(world);
}

/* ---- main ---- */

static enum way ways[] = {WAY_HOSTS_FIRST, WAY_ELMER_FIRST, WAY_HOSTS_TWICE, WAY_ORDERLY};
static enum damage damages[] = {DAMAGE_HEADER, DAMAGE_MIDDLE, DAMAGE_TRUNCATED, DAMAGE_EMPTY, DAMAGE_NEWER};
static enum log_damage log_damages[] = {LOG_CUT, LOG_OVERWRITTEN, LOG_GONE};
static enum kind kinds[] = {KIND_ELMER, KIND_RSD_NET, KIND_RSD_ROOT, KIND_SUPERVISOR};

static const struct test {
    const char *name;
    int (*body)(struct world *world, void *data);
    void *data;
} tests[] = {
    {"the disk of the store is full", outside_disk_full, NULL},
    {"the disk of the store is small, filled and freed again and again", outside_small_disk, NULL},
    {"the disk is full when elmer starts", outside_disk_full_at_start, NULL},
    {"the store cannot be written any more", outside_read_only, NULL},
    {"the store cannot be written when elmer starts", outside_read_only_at_start, NULL},
    {"jobs end on a full disk, then rsd and elmer are killed", outside_result_kept, &ways[0]},
    {"jobs end on a full disk, then elmer and rsd are killed", outside_result_kept, &ways[1]},
    {"jobs end on a full disk, then rsd is killed twice, and elmer", outside_result_kept, &ways[2]},
    {"jobs end on a full disk, then both are restarted", outside_result_kept, &ways[3]},
    {"the store has another beginning", outside_damaged, &damages[0]},
    {"the store is damaged in the middle", outside_damaged, &damages[1]},
    {"the store is cut short", outside_damaged, &damages[2]},
    {"the store is empty", outside_damaged, &damages[3]},
    {"the store is of a newer elmer", outside_damaged, &damages[4]},
    {"the store is a directory", outside_directory, NULL},
    {"the log of the store is cut short", outside_damaged_log, &log_damages[0]},
    {"the log of the store is damaged", outside_damaged_log, &log_damages[1]},
    {"the log of the store is gone", outside_damaged_log, &log_damages[2]},
    {"elmer has no descriptors", elmer_without_descriptors, NULL},
    {"rsd has no descriptors", rsd_without_descriptors, NULL},
    {"elmer has no memory for a request", no_memory, &kinds[0]},
    {"the network half has no memory for a request", no_memory, &kinds[1]},
    {"the root half has no memory for a request", no_memory, &kinds[2]},
    {"a supervisor has no memory for a request", no_memory, &kinds[3]},
    {"the wall clock jumps by an hour", clock_steps, NULL},
    {"a client does not read", deaf_peer, NULL},
    {"the name of the queue host does not resolve yet", outside_late_name, NULL},
    {"elmer starts with a long queue and a long history", outside_many_jobs, NULL},
};

static int run(struct world *world, void *data)
{
    const struct test *test = data;
    int status = test->body(world, test->data);
    if (status != 0) {
        printf("# %s\n", world->err.text);
        world_show_logs();
    }
    return status;
}

static void show(const char *log)
{
    char line[600];
    FILE *file = fopen(log, "re");
    while (file && fgets(line, sizeof(line), file))
        fputs(line, stdout);
    if (file)
        fclose(file);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "/tmp";
    const char *words = argc > 2 ? argv[2] : "";
    size_t count = sizeof(tests) / sizeof(tests[0]), number = 0;
    int bad = 0, possible = world_possible();
    if (possible != 0)
        return possible;
    for (size_t i = 0; i < count; i++)
        number += strstr(tests[i].name, words) != NULL;
    printf("1..%zu\n", number);
    number = 0;
    for (size_t i = 1; i <= count; i++) {
        if (!strstr(tests[i - 1].name, words))
            continue;
        char log[4096];
        snprintf(log, sizeof(log), "%s/outside-%zu.log", dir, i);
        int status = world_run(run, (void *)(uintptr_t)&tests[i - 1], log, WORLD_SECONDS);
        show(log);
        printf("%sok %zu - %s\n", status == 0 ? "" : "not ", ++number, tests[i - 1].name);
        fflush(stdout);
        bad += status != 0;
        if (status == 0)
            unlink(log);
    }
    return bad > 0;
}
