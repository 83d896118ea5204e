/* reserve.c - rt_reserve.
 *
 * Two parts of the kernel keep some of each processor's time from what is in real time. The throttle takes it away from
 * the real-time classes (sched_rt_runtime_us of each sched_rt_period_us). From 6.12 on a fair server gives it to the
 * others where they starve, for each CPU, and the throttle is there with RT_GROUP_SCHED only. Where it is not it is not
 * touched: 6.12.95 forgets the fair servers' shares when it is written or only read (dl_bw->total_bw becomes 0), and
 * then refuses to make one smaller than it was at that moment. On the v1 hierarchy the throttle has budgets for groups
 * that are not ours to set.
 *
 * Normal path: what is there is read -> noted with what it will be in RUNDIR/sup/reserve -> written and read again. If
 * rsd dies, its next start finds the note, puts back what it says and begins anew, perhaps with another value or none;
 * so does an orderly end. A value that is neither what was there nor what we wrote is an administrator's by now, and
 * stays. If anything is refused, what has been written is put back, and the reason is said.
 *
 * The files belong to root: at the start that is who we are, at the end elmer-spawn writes them.
 */
#include "config.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/reserve.h"

enum { PATH_SIZE = 4096, FAIR_SERVER_MAJOR = 6, FAIR_SERVER_MINOR = 12 };

struct setting {
    char *path;
    int64_t before, wanted;
};
struct settings {
    struct setting *items;
    size_t count;
};

struct reserve_kernel reserve_this_kernel(void)
{
    static struct utsname name;
    if (uname(&name) < 0)
        name.release[0] = 0;
    return (struct reserve_kernel){
        "/proc/sys/kernel", "/sys/kernel/debug/sched", "/proc/self/mounts", name.release, NULL, NULL};
}

/* ---- numbers in files ---- */

static int read_number(const struct reserve_kernel *kernel, const char *path, int64_t *value)
{
    char text[64];
    int fd, result = 0;
    ssize_t got;
    if (kernel->number)
        return kernel->number(kernel->data, path, value, false);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    got = read(fd, text, sizeof(text) - 1);
    if (got < 0)
        result = -errno;
    close(fd);
    if (result < 0)
        return result;
    text[got] = 0;
    return sscanf(text, "%" SCNd64, value) == 1 ? 0 : -EINVAL;
}

static int write_number(const struct reserve_kernel *kernel, const char *path, int64_t value)
{
    char text[32];
    int size = snprintf(text, sizeof(text), "%" PRId64 "\n", value), fd, result;
    int64_t now = value;
    if (kernel->number) {
        result = kernel->number(kernel->data, path, &now, true);
        return result < 0 ? result : now == value ? 0 : -EINVAL;
    }
    result = 0;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (write(fd, text, (size_t)size) != size)
        result = errno ? -errno : -EIO;
    close(fd);
    if (result == 0)
        result = read_number(kernel, path, &now);
    return result < 0 ? result : now == value ? 0 : -EINVAL;
}

/* ---- what is to be set ---- */

static void settings_fini(struct settings *settings)
{
    for (size_t i = 0; i < settings->count; i++)
        free(settings->items[i].path);
    free(settings->items);
    *settings = (struct settings){0};
}

static int settings_add(struct settings *settings, const char *path, int64_t before, int64_t wanted)
{
    struct setting *more = reallocarray(settings->items, settings->count + 1, sizeof(*more));
    char *copy = strdup(path);
    if (more)
        settings->items = more;
    if (!more || !copy) {
        free(copy);
        return -ENOMEM;
    }
    settings->items[settings->count] = (struct setting){.path = copy, .before = before, .wanted = wanted};
    settings->count++;
    return 0;
}

static int refuse(char *why, size_t size, int error, const char *path)
{
    const char *advice = "";
    if (error == -EROFS)
        advice = ", as in a container: set it outside";
    else if (error == -EPERM || error == -EACCES)
        advice = ", by a container, or a kernel that is locked down";
    else if (error == -EINVAL || error == -EBUSY)
        advice = ": groups (RT_GROUP_SCHED) or SCHED_DEADLINE need more, or see rt_reserve in rsd.conf(5)";
    snprintf(why, size, "rt_reserve is not in force: %s: %s%s", path, strerror(-error), advice);
    return error;
}

/* share: the throttle is told what is for real time, the fair server what is for the others. The kernel
 * refuses a runtime above the period at any moment, so what comes first depends; backwards the same order is right. Of
 * a shorter period the period comes first where that is possible: a share that is larger for a moment is never refused.
 */
static int add_part(const struct reserve_kernel *kernel, struct settings *settings, const char *runtime,
                    const char *period, unsigned share, int64_t wanted_period, char *why, size_t size)
{
    int64_t before = 0, whole = 0, wanted;
    bool period_first;
    int result = read_number(kernel, period, &whole);
    if (result < 0)
        return refuse(why, size, result, period);
    result = read_number(kernel, runtime, &before);
    if (result < 0)
        return refuse(why, size, result, runtime);
    if (wanted_period == 0)
        wanted_period = whole;
    wanted = wanted_period / 100 * share;
    period_first = wanted > whole || (wanted_period < whole && before > 0 && before <= wanted_period / 10 * 9);
    if (period_first)
        result = settings_add(settings, period, whole, wanted_period);
    if (result == 0)
        result = settings_add(settings, runtime, before, wanted);
    if (result == 0 && !period_first && wanted_period != whole)
        result = settings_add(settings, period, whole, wanted_period);
    return result < 0 ? refuse(why, size, result, runtime) : 0;
}

static int add_throttle(const struct reserve_kernel *kernel, struct reserve wanted, struct settings *settings,
                        char *why, size_t size)
{
    char runtime[PATH_SIZE], period[PATH_SIZE];
    snprintf(runtime, sizeof(runtime), "%s/sched_rt_runtime_us", kernel->sysctl);
    snprintf(period, sizeof(period), "%s/sched_rt_period_us", kernel->sysctl);
    return add_part(kernel, settings, runtime, period, 100 - wanted.percent, (int64_t)wanted.period_ms * 1000, why,
                    size);
}

static bool is_cpu(const char *name)
{
    return strncmp(name, "cpu", 3) == 0 && name[3] && strspn(name + 3, "0123456789") == strlen(name + 3);
}

static bool has_fair_server(const char *release)
{
    int major = 0, minor = 0;
    return sscanf(release, "%d.%d", &major, &minor) == 2 &&
           (major > FAIR_SERVER_MAJOR || (major == FAIR_SERVER_MAJOR && minor >= FAIR_SERVER_MINOR));
}

static int add_servers(const struct reserve_kernel *kernel, struct reserve wanted, struct settings *settings, char *why,
                       size_t size)
{
    char path[PATH_SIZE], runtime[PATH_SIZE + 300], period[PATH_SIZE + 300];
    struct dirent *entry;
    size_t before = settings->count;
    DIR *dir;
    int result = 0;
    snprintf(path, sizeof(path), "%s/fair_server", kernel->sched);
    dir = opendir(path);
    if (!dir && errno == ENOENT && !has_fair_server(kernel->release))
        return 0;
    if (!dir && errno != ENOENT)
        return refuse(why, size, -errno, path);
    while (dir && result == 0 && (entry = readdir(dir))) {
        if (!is_cpu(entry->d_name))
            continue;
        snprintf(runtime, sizeof(runtime), "%s/%s/runtime", path, entry->d_name);
        snprintf(period, sizeof(period), "%s/%s/period", path, entry->d_name);
        result =
            add_part(kernel, settings, runtime, period, wanted.percent, (int64_t)wanted.period_ms * 1000000, why, size);
    }
    if (dir)
        closedir(dir);
    if (result == 0 && settings->count == before) {
        result = -ENOENT;
        snprintf(why, size, "rt_reserve is not in force: no %s: mount debugfs and restart rsd", path);
    }
    return result;
}

/* With RT_GROUP_SCHED the throttle counts by the groups of the v1 hierarchy cpu, whatever the sysctl says: returns its
 * mount point. */
static bool has_v1_budgets(const struct reserve_kernel *kernel, char *where, size_t size)
{
    char line[PATH_SIZE], path[PATH_SIZE], type[64], options[512];
    bool found = false;
    FILE *file = fopen(kernel->mounts, "re");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file)) {
        char *word, *rest = options;
        if (sscanf(line, "%*s %4095s %63s %511s", path, type, options) != 3 || strcmp(type, "cgroup") != 0)
            continue;
        while (!found && (word = strsep(&rest, ",")))
            found = strcmp(word, "cpu") == 0;
        if (found && snprintf(where, size, "%s/cpu.rt_runtime_us", path) < (int)size)
            found = access(where, F_OK) == 0;
    }
    fclose(file);
    return found;
}

/* Beside fair servers: then the state of each CPU has it. true, too, if nobody can say. */
static bool has_throttle(const struct reserve_kernel *kernel)
{
    char path[PATH_SIZE], line[512];
    bool told = false, found = false, inside = false;
    FILE *file;
    snprintf(path, sizeof(path), "%s/debug", kernel->sched);
    file = fopen(path, "re");
    while (file && !found && !(told && !inside) && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "rt_rq[", 6) == 0)
            told = inside = true;
        else if (inside && line[0] != ' ')
            inside = false;
        found = inside && strstr(line, ".rt_throttled");
    }
    if (file)
        fclose(file);
    return found || !told;
}

static int find_settings(const struct reserve_kernel *kernel, struct reserve wanted, struct settings *settings,
                         char *why, size_t size)
{
    char path[PATH_SIZE], budget[PATH_SIZE + 32];
    int result;
    if (has_v1_budgets(kernel, budget, sizeof(budget))) {
        snprintf(why, size,
                 "rt_reserve is not in force: with RT_GROUP_SCHED %s decides: set that and sched_rt_runtime_us by hand",
                 budget);
        return -EOPNOTSUPP;
    }
    snprintf(path, sizeof(path), "%s/sched_rt_runtime_us", kernel->sysctl);
    if (access(path, W_OK) < 0) /* a container should not be told to mount debugfs */
        return refuse(why, size, -errno, path);
    result = add_servers(kernel, wanted, settings, why, size);
    if (result == 0 && (settings->count == 0 || has_throttle(kernel)))
        result = add_throttle(kernel, wanted, settings, why, size);
    return result;
}

/* ---- the note ---- */

static void note_path(const char *rundir, const char *end, char *path, size_t size)
{
    snprintf(path, size, "%s/reserve%s", rundir, end);
}

/* Written aside and renamed, and gone when there is nothing to put back. */
static int note_write(const char *rundir, const struct settings *settings)
{
    char path[PATH_SIZE], aside[PATH_SIZE];
    int fd, result = 0;
    FILE *file;
    note_path(rundir, "", path, sizeof(path));
    note_path(rundir, ".new", aside, sizeof(aside));
    if (settings->count == 0)
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
    unlink(aside); /* the directory is elmer-jobs's: no pipe of his may keep root waiting */
    fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file) {
        result = -errno;
        if (fd >= 0)
            close(fd);
        return result;
    }
    for (size_t i = 0; i < settings->count; i++) {
        const struct setting *setting = &settings->items[i];
        fprintf(file, "%" PRId64 " %" PRId64 " %s\n", setting->before, setting->wanted, setting->path);
    }
    if (ferror(file))
        result = -EIO;
    if (fclose(file) != 0 && result == 0)
        result = -errno;
    if (result == 0 && rename(aside, path) < 0)
        result = -errno;
    return result;
}

static bool begins_with(const char *text, const char *start, const char *next)
{
    return strncmp(text, start, strlen(start)) == 0 && strncmp(text + strlen(start), next, strlen(next)) == 0;
}

/* Only what we would set ourselves: the directory is elmer-jobs's, and root reads this. */
enum { SETTINGS_MAX = 65536 };
static void note_read(const struct reserve_kernel *kernel, const char *rundir, struct settings *settings)
{
    char path[PATH_SIZE], line[PATH_SIZE + 64];
    int64_t before, wanted;
    FILE *file;
    int fd, at;
    note_path(rundir, "", path, sizeof(path));
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    file = fd < 0 ? NULL : fdopen(fd, "r");
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%" SCNd64 " %" SCNd64 " %n", &before, &wanted, &at) == 2 && !strstr(line + at, "..") &&
            (begins_with(line + at, kernel->sysctl, "/sched_rt_") ||
             begins_with(line + at, kernel->sched, "/fair_server/cpu")) &&
            settings->count < SETTINGS_MAX)
            settings_add(settings, line + at, before, wanted);
    }
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
}

static bool same_directory(const char *one, const char *other)
{
    size_t length = (size_t)(strrchr(one, '/') - one);
    return strncmp(one, other, length + 1) == 0 && !strchr(other + length + 1, '/');
}

/* Backwards: see add_part(). Keeps in settings what could not be written, and with it the other number of that share,
 * which alone would make it another one. */
static int undo(const struct reserve_kernel *kernel, struct settings *settings)
{
    struct settings kept = {0};
    const struct setting *put_back = NULL;
    int failed = 0;
    for (size_t i = settings->count; i-- > 0;) {
        const struct setting *setting = &settings->items[i];
        int64_t now = 0;
        int result = read_number(kernel, setting->path, &now);
        if (result == 0 && now == setting->wanted && now != setting->before) {
            result = write_number(kernel, setting->path, setting->before);
            if (result == 0)
                put_back = setting;
        } else if (result == 0 && now != setting->before)
            log_notice("%s was changed to %" PRId64 " meanwhile: rsd leaves it so", setting->path, now);
        if (result == 0 || result == -ENOENT) /* gone: a CPU was taken out */
            continue;
        log_warning("cannot put %s back to %" PRId64 ": %s", setting->path, setting->before, strerror(-result));
        failed = result;
        if (put_back && same_directory(setting->path, put_back->path) &&
            write_number(kernel, put_back->path, put_back->wanted) == 0)
            settings_add(&kept, put_back->path, put_back->before, put_back->wanted);
        put_back = NULL;
        settings_add(&kept, setting->path, setting->before, setting->wanted);
    }
    for (size_t i = 0; i < kept.count / 2; i++) { /* in the order of the note again */
        struct setting swapped = kept.items[i];
        kept.items[i] = kept.items[kept.count - 1 - i];
        kept.items[kept.count - 1 - i] = swapped;
    }
    settings_fini(settings);
    *settings = kept;
    return failed;
}

int reserve_put_back(const struct reserve_kernel *kernel, const char *rundir)
{
    struct settings settings = {0};
    int result;
    note_read(kernel, rundir, &settings);
    result = undo(kernel, &settings);
    note_write(rundir, &settings);
    settings_fini(&settings);
    return result;
}

/* ---- all of it ---- */

static int apply(const struct reserve_kernel *kernel, const struct settings *settings, char *why, size_t size)
{
    for (size_t i = 0; i < settings->count; i++) {
        int result = write_number(kernel, settings->items[i].path, settings->items[i].wanted);
        if (result < 0)
            return refuse(why, size, result, settings->items[i].path);
    }
    return 0;
}

int reserve_keep(const struct reserve_kernel *kernel, const char *rundir, struct reserve wanted, char *why, size_t size)
{
    struct settings settings = {0};
    int result = reserve_put_back(kernel, rundir);
    assert(wanted.percent < 100);
    why[0] = 0;
    if (wanted.percent == 0)
        return 0;
    if (result < 0) { /* the note must not lose what was there first */
        snprintf(why, size, "rt_reserve is not in force: what an earlier rsd has set cannot be put back: %s",
                 strerror(-result));
        return result;
    }
    result = find_settings(kernel, wanted, &settings, why, size);
    if (result == 0) {
        result = note_write(rundir, &settings);
        if (result < 0)
            snprintf(why, size, "rt_reserve is not in force: what is there now cannot be noted in %s: %s", rundir,
                     strerror(-result));
    }
    if (result == 0) {
        result = apply(kernel, &settings, why, size);
        if (result < 0)
            reserve_put_back(kernel, rundir);
    }
    settings_fini(&settings);
    return result;
}

/* Beside fair servers the throttle is not read: see above. */
bool reserve_is_off(const struct reserve_kernel *kernel)
{
    char servers[PATH_SIZE], runtime[PATH_SIZE];
    int64_t us = 0;
    snprintf(servers, sizeof(servers), "%s/fair_server", kernel->sched);
    snprintf(runtime, sizeof(runtime), "%s/sched_rt_runtime_us", kernel->sysctl);
    return !has_fair_server(kernel->release) && access(servers, F_OK) < 0 && read_number(kernel, runtime, &us) == 0 &&
           us < 0;
}
