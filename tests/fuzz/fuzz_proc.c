/* fuzz_proc.c - what the kernel says in files, and what a job's user can put there (names of groups and mounts):
 * mountinfo, cgroup, /proc/stat, cpu.stat, memory.peak, cgroup.procs, cgroup.events. The input is one line that says
 * which, then the content. */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/net/usage.h"
#include "rsd/root/group.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"

enum { GROUP_FD = 1 << 20 /* any of files.c's */, CPUS = 3 };

static int64_t now_ns;

struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    now_ns += 1000000000;
    return (struct mono){.ns = now_ns};
}

/* Split at the first line "--". */
static void split(struct input *input, struct input *second)
{
    const char *text = (const char *)input->at, *cut = input->left >= 4 ? memmem(text, input->left, "\n--\n", 4) : NULL;

    *second = (struct input){0};
    if (!cut)
        return;
    *second = (struct input){input->at + (cut + 4 - text), input->left - (size_t)(cut + 4 - text)};
    input->left = (size_t)(cut + 1 - text);
}

static void locate(struct input *input)
{
    struct input cgroup;
    struct err err = ERR_INIT;
    char path[256], group[256];

    split(input, &cgroup);
    files_put("/fuzz/self/mountinfo", input->at, input->left);
    files_put("/fuzz/self/cgroup", cgroup.at, cgroup.left);
    files_put("/fuzz/7/cgroup", cgroup.at, cgroup.left);
    if (group_locate("/fuzz", NULL, path, sizeof(path), &err) == 0)
        FUZZ_CHECK(strlen(path) < sizeof(path), "unterminated");
    else
        FUZZ_CHECK(err.text[0] != '\0', "no reason");
    (void)group_locate("/fuzz", "/elmer.slice/elmer-jobs.scope", path, sizeof(path), NULL);
    if (group_of("/fuzz", 7, group, sizeof(group)) == 0)
        FUZZ_CHECK(group[0] == '/' && !strchr(group, '\n'), "group %s", group);
}

static void usage(struct input *input)
{
    static const uint64_t cpus[CPUS] = {0, 3, 1023}, own[] = {3, 9};
    struct input rest, stat;
    struct usage usage;
    struct err err = ERR_INIT;
    uint64_t interval_ms;
    double busy[CPUS], jobs[CPUS];

    split(input, &rest);
    usage_init(&usage, "/fuzz/stat");
    FUZZ_CHECK(usage_set_host(&usage, cpus, CPUS, "/fuzz") == 0, "no memory");
    usage_add_job(&usage, 1, 1, own, 2, true);
    usage_add_job(&usage, 2, 1, NULL, 0, false);
    files_put("/fuzz/stat", input->at, input->left);
    (void)usage_begin(&usage, &err);
    files_clear();
    for (int i = 0; i < 2; i++) {
        split(&rest, &stat);
        files_put("/fuzz/stat", stat.at, stat.left);
        files_put("/fuzz/1.1/job/cpu.stat", rest.at, rest.left);
        files_put("/fuzz/2.1/job/cpu.stat", input->at, input->left);
        if (i == 1)
            usage_end_job(&usage, 2, 1, (double)input->left / 7);
        if (usage_sample(&usage, &interval_ms, busy, jobs, &err) == 0)
            for (size_t k = 0; k < CPUS; k++)
                FUZZ_CHECK(busy[k] >= 0 && busy[k] <= 1 && jobs[k] >= 0 && jobs[k] <= 1, "%g %g", busy[k], jobs[k]);
        FUZZ_CHECK(files_clear() == 0, "a file was left open");
        rest = stat;
    }
    usage_fini(&usage);
}

static void group(struct input *input)
{
    struct cgroup cgroup = {GROUP_FD, GROUP_FD, GROUP_FD};
    struct group_pids pids = {0};
    double seconds;
    int64_t peak;

    files_put("cpu.stat", input->at, input->left);
    files_put("memory.peak", input->at, input->left);
    files_put("cgroup.procs", input->at, input->left);
    if (group_pids(GROUP_FD, &pids) == 0)
        for (size_t i = 0; i < pids.count; i++)
            FUZZ_CHECK(pids.items[i] > 0, "pid %d", (int)pids.items[i]); /* 0 and -1 would signal many */
    group_pids_fini(&pids);
    group_usage(&cgroup, &seconds, &peak);
    FUZZ_CHECK(seconds == seconds, "not a number");
    FUZZ_CHECK(files_clear() == 0, "a file was left open");
    files_put("cgroup.events", input->at, input->left);
    cgroup.events_fd = openat(GROUP_FD, "cgroup.events", O_RDONLY | O_CLOEXEC);
    FUZZ_CHECK(!(group_populated(&cgroup) && !memmem(input->at, input->left, "populated 1", 11)), "populated");
    (void)group_frozen(&cgroup);
    (void)close(cgroup.events_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    uint8_t which = input_byte(&input);

    if (which == 'm')
        locate(&input);
    else if (which == 's')
        usage(&input);
    else
        group(&input);
    FUZZ_CHECK(files_clear() == 0, "a file was left open");
    return 0;
}
