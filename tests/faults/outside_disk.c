/* outside_disk.c - a disk that is full or cannot be written, and a damaged store. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/faults/outside.h"

/* ---- the disk ---- */

static unsigned fill(const char *path)
{
    static char block[4096];
    unsigned written = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    while (fd >= 0 && write(fd, block, sizeof(block)) > 0)
        written++;
    if (fd >= 0)
        close(fd);
    return written;
}

static int refused_for(struct world *world, const char *words)
{
    static char big[60000] = "BIG=";
    int status = 0;
    memset(big + 4, 'x', sizeof(big) - 5);
    for (int i = 0; i < 20 && status == 0; i++) /* the log may have room for a few */
        status = outside_submit_with(world, big, "true");
    CHECK(status == UNAVAILABLE, "status %d: %s", status, out);
    CHECK(strstr(out, words) && strstr(out, "not accepted"), "%s", out);
    return 0;
}

int outside_disk_full(struct world *world, void *data)
{
    (void)data;
    if (mount("small", WORLD "/store", "tmpfs", 0, "size=1m,mode=0700,uid=1,gid=1") < 0 || outside_begin(world))
        return 1;
    CHECK(fill(WORLD "/store/filler") > 0, "no room at the start");
    if (refused_for(world, "no space left; free some"))
        return 1;
    outside_touch(WORLD "/work/end"); /* ends while nothing can be written */
    CHECK(outside_await_file(world, WORLD "/work/over"), "the second job was harmed");
    struct seen seen;
    CHECK(outside_query(1, &seen) && strcmp(seen.state, "running") == 0, "%s", seen.state);
    CHECK(outside_query(2, &seen) && strcmp(seen.state, "done") != 0, "an end was shown that was not on disk");
    CHECK(unlink(WORLD "/store/filler") == 0, "filler");
    return outside_goes_on(world);
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

/* Accepted within 5 s, and no more than that was asked. */
static int accepts_again(struct world *world, int64_t *worst_ms)
{
    int64_t begin_ms = world_now_ms(), ms;
    int status;
    while ((status = outside_submit(world, "true")) == UNAVAILABLE && world_now_ms() < begin_ms + 5000)
        world_pause();
    CHECK(status == 0, "status %d: %s; the log has %" PRId64 " kB, the store %" PRId64, status, out,
          size_of(WORLD_STORE "-wal") >> 10, size_of(WORLD_STORE) >> 10);
    ms = world_now_ms() - begin_ms;
    *worst_ms = ms > *worst_ms ? ms : *worst_ms;
    return 0;
}

/* A disk of 1 MiB serves for good: the log of the store does not take it up, and when there is room again, be it only
 * 128 KiB, that is enough. */
int outside_small_disk(struct world *world, void *data)
{
    enum { ROUNDS = 6, JOBS = 25, DISK = 1 << 20, BATCH = 64 << 10, GIVEN = 128 << 10 };
    int64_t log = 0, worst_ms = 0;
    (void)data;
    world->settings = "levels = 4\n";
    if (mount("small", WORLD "/store", "tmpfs", 0, "size=1m,mode=0700,uid=1,gid=1") < 0 || outside_begin(world))
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < JOBS; i++) {
            CHECK(outside_submit(world, "true") == 0, "round %d, job %d: %s", round, i, out);
            log = size_of(WORLD_STORE "-wal") > log ? size_of(WORLD_STORE "-wal") : log;
        }
        CHECK(outside_await_state(world, outside_submitted(), "done"), "round %d", round);
        int64_t left = fill(WORLD "/store/filler") * 4096L;
        CHECK(left > 0, "no room in round %d", round);
        if (refused_for(world, "no space left; free some"))
            return 1;
        if (round % 2)
            CHECK(unlink(WORLD "/store/filler") == 0, "filler");
        else
            CHECK(truncate(WORLD "/store/filler", left - GIVEN) == 0, "filler");
        if (accepts_again(world, &worst_ms))
            return 1;
        unlink(WORLD "/store/filler");
        log = size_of(WORLD_STORE "-wal") > log ? size_of(WORLD_STORE "-wal") : log;
    }
    printf("# the log had %" PRId64 " kB at most beside %" PRId64 " kB of jobs; writable again after %" PRId64
           " ms at most\n",
           log >> 10, size_of(WORLD_STORE) >> 10, worst_ms);
    CHECK(log <= DISK / 4 + BATCH, "the log takes up the disk");
    return outside_goes_on(world);
}

int outside_disk_full_at_start(struct world *world, void *data)
{
    (void)data;
    if (mount("small", WORLD "/store", "tmpfs", 0, "size=64k,mode=0700,uid=1,gid=1") < 0)
        return 1;
    fill(WORLD "/store/filler");
    world_configure(world);
    world_start_elmer(world);
    CHECK(world_await_log(world, "elmer", "elmer cannot begin: ", WAIT_MS), "%s", world->err.text);
    CHECK(world_logged("elmer", "no space left"), "no reason");
    unlink(WORLD "/store/filler");
    if (mount("small", WORLD "/store", "tmpfs", MS_REMOUNT, "size=4m") < 0)
        return 1;
    CHECK(world_await_log(world, "elmer", "ready: ", WAIT_MS), "%s", world->err.text); /* by itself */
    world_stop_elmer(world, SIGTERM);
    world->elmer_starts = 0;
    return outside_begin(world) ? 1 : outside_goes_on(world);
}

int outside_read_only(struct world *world, void *data)
{
    (void)data;
    if (outside_begin(world))
        return 1;
    world->control->store_error = EROFS;
    if (refused_for(world, "Read-only file system"))
        return 1;
    outside_touch(WORLD "/work/end");
    CHECK(outside_await_file(world, WORLD "/work/over"), "the second job was harmed");
    world->control->store_error = 0;
    return outside_goes_on(world);
}

int outside_read_only_at_start(struct world *world, void *data)
{
    (void)data;
    if (outside_begin(world))
        return 1;
    world_stop_elmer(world, SIGTERM);
    if (mount(WORLD "/store", WORLD "/store", NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, WORLD "/store", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
        return 1;
    world_start_elmer(world);
    CHECK(world_await_log(world, "elmer", "elmer cannot begin: ", WAIT_MS), "%s", world->err.text);
    CHECK(world_logged("elmer", "Read-only file system"), "no reason");
    if (umount2(WORLD "/store", MNT_DETACH) < 0)
        return 1;
    CHECK(world_await_log(world, "elmer", "elmer can begin now", WAIT_MS), "%s", world->err.text); /* by itself */
    world->elmer_starts = 1;
    return outside_goes_on(world);
}

/* ---- results that nobody could write down ---- */

static int submit_script(struct world *world, const char *option, const char *nprocs, const char *script)
{
    const char *argv[] = {"esubmit", option, "-o", "/dev/null", nprocs, "/bin/sh", "-c", script, NULL};
    return world_command(world, false, out, sizeof(out), argv);
}

/* On each of its hosts, or with 1 on the one that it is on. */
static bool await_ended(struct world *world, uint64_t id, int hosts)
{
    char text[60];
    int64_t deadline = world_now_ms() + WAIT_MS;
    snprintf(text, sizeof(text), "job=%" PRIu64 ".1: ended here", id);
    while (world_now_ms() < deadline && world_tend(world)) {
        if (world_logged("rsd-a", text) + world_logged("rsd-b", text) == hosts)
            return true;
        world_pause();
    }
    return false;
}

static int has_result(struct world *world, uint64_t id, int exit_status)
{
    struct seen seen;
    CHECK(outside_await_state(world, id, "done") && outside_query(id, &seen), "%s", seen.state);
    CHECK(strcmp(seen.reason, "exited") == 0 && seen.exit_status == exit_status, "job %" PRIu64 ": %s, status %d", id,
          seen.reason, seen.exit_status);
    CHECK(seen.usage > 0, "job %" PRIu64 " has used no CPU", id);
    return 0;
}

static void restart_hosts(struct world *world, int signal)
{
    for (int i = 0; i < HOSTS; i++) {
        world_stop_rsd(world, i, signal);
        world_start_rsd(world, i);
    }
}

/* The jobs end while the disk is full, and then those who know how are ended, in the order of the way. */
int outside_result_kept(struct world *world, void *data)
{
    static const char waits[] = "echo begin >>marks; until [ -e end ]; do sleep 0.05; done; echo end >>marks; exit 3";
    enum way way = *(enum way *)data;
    char marks[40] = "";
    world->settings = "levels = 4\n";
    if (mount("small", WORLD "/store", "tmpfs", 0, "size=2m,mode=0700,uid=1,gid=1") < 0 || outside_begin(world))
        return 1;
    CHECK(submit_script(world, "--requeue", "1", waits) == 0 && outside_submitted() == 3, "%s", out);
    CHECK(submit_script(world, "--each", "4", "until [ -e end ]; do sleep 0.05; done; exit $ELMER_RANK") == 0 &&
              outside_submitted() == 4,
          "%s", out);
    CHECK(outside_await_state(world, 3, "running") && outside_await_state(world, 4, "running"), "not running");
    fill(WORLD "/store/filler");
    if (refused_for(world, "no space left; free some"))
        return 1;
    outside_touch(WORLD "/work/end");
    CHECK(await_ended(world, 2, 1) && await_ended(world, 3, 1) && await_ended(world, 4, HOSTS), "the jobs do not end");
    if (way == WAY_ELMER_FIRST)
        world_stop_elmer(world, SIGKILL);
    restart_hosts(world, way == WAY_ORDERLY ? SIGTERM : SIGKILL);
    if (way == WAY_HOSTS_TWICE) { /* and the second has linked, so that elmer has told it what it thinks */
        CHECK(world_await_log(world, "rsd-a", " ended here of which elmer has not all", WAIT_MS), "nothing was kept");
        restart_hosts(world, SIGKILL);
    }
    world_stop_elmer(world, way == WAY_ORDERLY ? SIGTERM : SIGKILL);
    CHECK(unlink(WORLD "/store/filler") == 0, "filler");
    world_start_elmer(world);
    if (has_result(world, 2, 7) || has_result(world, 3, 3) || has_result(world, 4, 1))
        return 1;
    int fd = open(WORLD "/work/marks", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, marks, sizeof(marks) - 1) > 0, "no marks");
    close(fd);
    CHECK(strcmp(marks, "begin\nend\n") == 0, "it has run more than once: %s", marks);
    world->elmer_starts = 1;
    world->rsd_starts = HOSTS;
    return outside_goes_on(world);
}

/* ---- a damaged store ---- */

struct copy {
    char *data;
    size_t size;
};

static struct copy read_all(const char *path)
{
    struct copy copy = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return copy;
    copy.data = malloc((size_t)st.st_size + 1);
    ssize_t got = copy.data ? read(fd, copy.data, (size_t)st.st_size) : -1;
    copy.size = got > 0 ? (size_t)got : 0;
    close(fd);
    return copy;
}

static void write_all(const char *path, const char *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        printf("# cannot write %s\n", path);
    if (fd >= 0)
        close(fd);
}

static size_t harm(struct copy *copy, enum damage damage)
{
    if (damage == DAMAGE_HEADER)
        memset(copy->data, '!', 64);
    if (damage == DAMAGE_MIDDLE) /* all tables are in here somewhere */
        memset(copy->data + 4096, '!', copy->size - 2 * 4096);
    if (damage == DAMAGE_NEWER)
        copy->data[63] = 99; /* the last byte of user_version */
    return damage == DAMAGE_TRUNCATED ? copy->size / 2 + 100 : damage == DAMAGE_EMPTY ? 0 : copy->size;
}

int outside_damaged(struct world *world, void *data)
{
    enum damage damage = *(enum damage *)data;
    int status;
    if (outside_begin(world))
        return 1;
    world_stop_elmer(world, SIGTERM);
    struct copy good = read_all(WORLD_STORE), bad = read_all(WORLD_STORE);
    CHECK(good.size > 8 * 4096, "the store has %zu bytes", good.size);
    size_t size = harm(&bad, damage);
    write_all(WORLD_STORE, bad.data, size);
    world_start_elmer(world);
    CHECK(waitpid(world->elmer, &status, 0) == world->elmer && WIFEXITED(status) && WEXITSTATUS(status) == 2,
          "status %x: systemd would start it again and again", (unsigned)status);
    CHECK(world_logged("elmer", "backup"), "it does not say what to do");
    struct copy after = read_all(WORLD_STORE);
    CHECK(after.size == size && memcmp(after.data, bad.data, size) == 0, "the store was touched");
    struct seen seen;
    CHECK(!outside_query(1, &seen), "it serves");
    write_all(WORLD_STORE, good.data, good.size);
    world_start_elmer(world);
    world->elmer_starts = 1;
    return outside_goes_on(world);
}

/* Ended with status 2, for a reason with these words; nobody is served. */
static int refuses(struct world *world, const char *words)
{
    struct seen seen;
    int status;
    world_start_elmer(world);
    CHECK(waitpid(world->elmer, &status, 0) == world->elmer && WIFEXITED(status) && WEXITSTATUS(status) == 2,
          "status %x: systemd would start it again and again", (unsigned)status);
    CHECK(world_logged("elmer", words), "it does not say what to do");
    CHECK(!outside_query(1, &seen), "it serves");
    return 0;
}

int outside_directory(struct world *world, void *data)
{
    (void)data;
    if (outside_begin(world))
        return 1;
    world_stop_elmer(world, SIGTERM);
    CHECK(rename(WORLD_STORE, WORLD_STORE ".good") == 0 && mkdir(WORLD_STORE, 0700) == 0, "the directory");
    if (refuses(world, "is not a file"))
        return 1;
    CHECK(rmdir(WORLD_STORE) == 0 && rename(WORLD_STORE ".good", WORLD_STORE) == 0, "the store");
    world_start_elmer(world);
    world->elmer_starts = 1;
    return outside_goes_on(world);
}

/* Killed, elmer leaves its commits in the log. They are not forgotten when a part of them cannot be read any more. */
int outside_damaged_log(struct world *world, void *data)
{
    static const char log[] = WORLD_STORE "-wal";
    enum log_damage damage = *(enum log_damage *)data;
    if (outside_begin(world))
        return 1;
    world_stop_elmer(world, SIGKILL);
    struct copy good = read_all(log), bad = read_all(log);
    size_t used = good.size; /* behind that it has been lengthened */
    while (used > 0 && good.data[used - 1] == 0)
        used--;
    CHECK(used > 8 * 4096, "the log has %zu bytes", used);
    struct copy store = read_all(WORLD_STORE);
    memset(bad.data + used / 2, '!', 100);
    if (damage == LOG_GONE)
        CHECK(unlink(log) == 0, "the log");
    else
        write_all(log, bad.data, damage == LOG_CUT ? used / 2 : bad.size);
    if (refuses(world, "changes are missing"))
        return 1;
    int fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && fchown(fd, WORLD_ELMER_USER, WORLD_ELMER_USER) == 0, "the log");
    close(fd);
    unlink(WORLD_STORE "-shm");
    write_all(WORLD_STORE, store.data, store.size);
    write_all(log, good.data, good.size); /* as from a backup: all of it is there again */
    world_start_elmer(world);
    world->elmer_starts = 1;
    return outside_goes_on(world);
}
