/* rig_scan.c - what there is of the rig's jobs: processes, their classes and signals; and the gate before them. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/root/group.h"
#include "tests/root/rig.h"

bool rig_exists(const struct rig *rig, uint64_t job)
{
    char path[4300];
    snprintf(path, sizeof(path), "%s/%" PRIu64 ".1", rig->groups, job);
    return access(path, F_OK) == 0;
}

size_t rig_pids(const struct rig *rig, uint64_t job, const char *leaf, pid_t *pids, size_t max)
{
    char path[4300];
    struct group_pids found = {0};
    size_t count;
    int fd;
    snprintf(path, sizeof(path), "%s/%" PRIu64 ".1/%s", rig->groups, job, leaf);
    fd = open(path, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    assert_int_equal(group_pids(fd, &found), 0);
    close(fd);
    count = found.count < max ? found.count : max;
    if (count > 0)
        memcpy(pids, found.items, count * sizeof(*pids));
    group_pids_fini(&found);
    return count;
}

static bool has_signal(pid_t pid, const char *set, int signal)
{
    char path[64], line[200];
    unsigned long long mask = 0;
    FILE *status;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status)) {
        if (strncmp(line, set, strlen(set)) == 0 && line[strlen(set)] == ':')
            mask = strtoull(line + strlen(set) + 1, NULL, 16);
    }
    if (status)
        fclose(status);
    return mask >> (signal - 1) & 1;
}

size_t rig_signals(const struct rig *rig, uint64_t job, const char *set, int signal)
{
    pid_t pids[64];
    size_t count = rig_pids(rig, job, "job", pids, 64), found = 0;
    for (size_t i = 0; i < count; i++)
        found += has_signal(pids[i], set, signal);
    return found;
}

bool rig_is_called(pid_t pid, const char *name)
{
    char path[64], comm[32] = "";
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    if (!fgets(comm, sizeof(comm), file))
        comm[0] = 0;
    fclose(file);
    comm[strcspn(comm, "\n")] = 0;
    return strcmp(comm, name) == 0;
}

void rig_gate(struct rig *rig)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/work/gate", rig->dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    rig->gate = open(path, O_RDWR | O_CLOEXEC); /* until the end: what is in a FIFO that nobody has open is lost */
    assert_true(rig->gate >= 0);
}

void rig_gate_open(const struct rig *rig)
{
    assert_int_equal(write(rig->gate, "go\n", 3), 3);
}

size_t rig_wrong(const struct rig *rig, uint64_t job, int policy, int priority, size_t *threads)
{
    static pid_t pids[4096];
    size_t count = rig_pids(rig, job, "job", pids, 4096), wrong = 0;
    *threads = 0;
    for (size_t i = 0; i < count; i++) {
        char path[64];
        struct dirent *entry;
        DIR *dir;
        snprintf(path, sizeof(path), "/proc/%d/task", (int)pids[i]);
        dir = opendir(path);
        while (dir && (entry = readdir(dir))) {
            pid_t tid = atoi(entry->d_name);
            struct sched_param param = {0};
            int now = tid > 0 ? sched_getscheduler(tid) : -1;
            if (now < 0 || sched_getparam(tid, &param) < 0)
                continue;
            ++*threads;
            now &= ~SCHED_RESET_ON_FORK;
            if (param.sched_priority != priority || (policy >= 0 && now != policy) ||
                (policy < 0 && now != SCHED_FIFO && now != SCHED_RR))
                wrong++;
        }
        if (dir)
            closedir(dir);
    }
    return wrong;
}

static bool is_zombie(pid_t pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const char *state;
    if (!file)
        return false;
    (void)!fgets(line, sizeof(line), file);
    fclose(file);
    state = strrchr(line, ')');
    return state && state[1] == ' ' && state[2] == 'Z';
}

size_t rig_zombies(pid_t parent)
{
    char path[64];
    int pid;
    size_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%d", &pid) == 1)
        count += is_zombie(pid);
    if (file)
        fclose(file);
    return count;
}

pid_t rig_spawn(const struct rig *rig)
{
    char path[64];
    int pid, found = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)rig->root_half, (int)rig->root_half);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%d", &pid) == 1) {
        if (rig_is_called(pid, "elmer-spawn"))
            found = pid;
    }
    if (file)
        fclose(file);
    return found;
}
