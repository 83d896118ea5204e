/* controllers.c - controllers handed down to jobs' groups, and groups of older versions made sound again.
 *
 * A group that hands a controller down may have no process of its own. For memory the kernel insists (EBUSY). A
 * threaded one (cpuset, cpu) it lets pass and makes the group `domain threaded` instead, and all groups below `domain
 * invalid`: nothing can be born there or moved there (EOPNOTSUPP) until the processes are out or the controllers are
 * taken back. An rsd that asked for cpuset while the keeper was still in the scope itself has left such scopes.
 *
 * So the order is: processes out of the group, by the leaf keeper; where that is refused, controllers back first, from
 * the groups below and then from the group; then memory, cpuset and cpu, each only while the group is empty, and back
 * again if the kernel has changed its kind. Each step may be the last one of an rsd that dies: the next one begins at
 * the first again, and no step undoes what is already right.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/root/controllers.h"
#include "rsd/root/group.h"

enum { MOVE_ROUNDS = 100 };

static const struct {
    const char *name;
    unsigned bit;
    const char *without;
} controllers[CONTROLLER_COUNT] = {
    {"memory", CONTROLLER_MEMORY, "no controller memory: no memory figures, and nothing holds a job to its -m"},
    {"cpuset", CONTROLLER_CPUSET, "no controller cpuset: a job can take processors of others (set back once a second)"},
    {"cpu", CONTROLLER_CPU, "no controller cpu: a bomb makes logins slow"},
};

/* Of a file that lists names, as cgroup.controllers. */
static unsigned read_set(int dir, const char *file)
{
    char text[1024], *rest = text, *word;
    unsigned set = 0;
    if (group_read(dir, file, text, sizeof(text)) < 0)
        return 0;
    while ((word = strsep(&rest, " \n"))) {
        for (size_t i = 0; i < CONTROLLER_COUNT; i++)
            set |= strcmp(word, controllers[i].name) == 0 ? controllers[i].bit : 0;
    }
    return set;
}

/* The root of the hierarchy has no kind; it may have processes and hand down at the same time. */
static bool is_root(int dir)
{
    return faccessat(dir, "cgroup.type", F_OK, 0) < 0;
}

static bool is_domain(int dir)
{
    char type[64];
    return group_read(dir, "cgroup.type", type, sizeof(type)) < 0 || strcmp(type, "domain\n") == 0;
}

/* Those of which nothing can be read are as good as full. */
static bool has_processes(int dir)
{
    struct group_pids pids = {0};
    bool has = group_pids(dir, &pids) < 0 || pids.count > 0;
    group_pids_fini(&pids);
    return has;
}

static void put(int dir, char sign, const char *name)
{
    char text[32];
    snprintf(text, sizeof(text), "%c%s", sign, name);
    (void)group_write(dir, "cgroup.subtree_control", text); /* what came of it is read afterwards */
}

void controllers_take_back(int dir, unsigned which)
{
    for (size_t i = CONTROLLER_COUNT; i-- > 0;) {
        if (which & controllers[i].bit)
            put(dir, '-', controllers[i].name);
    }
}

unsigned controllers_hand_down(int dir, unsigned wanted)
{
    unsigned there = read_set(dir, "cgroup.controllers");
    for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
        if (!(wanted & there & controllers[i].bit) || (!is_root(dir) && has_processes(dir)))
            continue;
        put(dir, '+', controllers[i].name);
        if (!is_domain(dir)) /* somebody has put a process there meanwhile */
            put(dir, '-', controllers[i].name);
    }
    return read_set(dir, "cgroup.subtree_control");
}

void controllers_hand_down_new(int dir, unsigned wanted)
{
    unsigned there = wanted & read_set(dir, "cgroup.controllers");
    char text[64];
    size_t used = 0;
    for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
        if (there & controllers[i].bit)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s+%s", used ? " " : "", controllers[i].name);
    }
    if (used && group_write(dir, "cgroup.subtree_control", text) < 0)
        (void)controllers_hand_down(dir, wanted); /* what can be, one by one */
}

size_t controllers_lacking(unsigned there, const char *lacks[CONTROLLER_COUNT])
{
    size_t count = 0;
    for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
        if (!(there & controllers[i].bit))
            lacks[count++] = controllers[i].without;
    }
    return count;
}

/* ---- making it fit ---- */

static int move_all(int dir, int leaf)
{
    struct group_pids pids = {0};
    int result = group_pids(dir, &pids);
    for (size_t i = 0; result == 0 && i < pids.count; i++) {
        char pid[16];
        snprintf(pid, sizeof(pid), "%d", (int)pids.items[i]);
        result = group_write(leaf, "cgroup.procs", pid);
        if (result == -ESRCH)
            result = 0;
    }
    if (result == 0 && pids.count > 0)
        result = -EAGAIN;
    group_pids_fini(&pids);
    return result;
}

/* Again, because one may fork while it is moved. */
static int move_out(int dir)
{
    int leaf, result = -EAGAIN;
    if (!has_processes(dir))
        return 0;
    if (mkdirat(dir, "keeper", 0755) < 0 && errno != EEXIST)
        return -errno;
    leaf = openat(dir, "keeper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (leaf < 0)
        return -errno;
    for (int i = 0; result == -EAGAIN && i < MOVE_ROUNDS; i++)
        result = move_all(dir, leaf);
    close(leaf);
    return result == -EAGAIN ? -EBUSY : result;
}

/* From the groups below first: a group keeps what one below it hands down. */
static void take_all_back(int dir)
{
    struct dirent *entry;
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    while (stream && (entry = readdir(stream))) {
        int below =
            entry->d_name[0] == '.' ? -1 : openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            continue;
        controllers_take_back(below, read_set(below, "cgroup.subtree_control"));
        close(below);
    }
    if (stream)
        closedir(stream);
    else if (fd >= 0)
        close(fd);
    controllers_take_back(dir, read_set(dir, "cgroup.subtree_control"));
}

int controllers_settle(int dir)
{
    int result;
    if (is_root(dir))
        return 0;
    result = move_out(dir);
    if (result < 0 || !is_domain(dir)) {
        take_all_back(dir);
        result = move_out(dir);
    }
    return result == 0 && !is_domain(dir) ? -EOPNOTSUPP : result;
}
