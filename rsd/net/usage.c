/* usage.c - the interval between two samples: ticks of each processor from /proc/stat, CPU time of each job from its group. */
#include "config.h"

#include "rsd/net/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_MAX = 1 << 20, JOBS_MAX = 16384, CPU_FIELDS = 8 };

struct usage_job {
    uint64_t job;
    uint32_t attempt;
    bool known;       /* used_us is what it had used when the interval began */
    uint64_t used_us;
    size_t *indices;  /* of its processors in cpus */
    size_t nindices;
};

void usage_init(struct usage *usage, const char *proc_stat)
{
    *usage = (struct usage){.proc_stat = proc_stat};
}

static void clear_host(struct usage *usage)
{
    free(usage->jobs_group);
    free(usage->cpus);
    free(usage->ticks);
    free(usage->ended_us);
    usage->jobs_group = NULL;
    usage->cpus = NULL;
    usage->ticks = NULL;
    usage->ended_us = NULL;
    usage->ncpus = 0;
    usage->begin.ns = 0;
}

static void clear_jobs(struct usage *usage)
{
    for (size_t i = 0; i < usage->njobs; i++)
        free(usage->jobs[i].indices);
    free(usage->jobs);
    usage->jobs = NULL;
    usage->njobs = usage->capacity = 0;
}

void usage_fini(struct usage *usage)
{
    clear_host(usage);
    clear_jobs(usage);
}

static bool same_host(const struct usage *usage, const uint64_t *cpus, size_t ncpus, const char *jobs_group)
{
    return usage->cpus && usage->ncpus == ncpus && memcmp(usage->cpus, cpus, ncpus * sizeof(*cpus)) == 0 &&
           strcmp(usage->jobs_group, jobs_group) == 0;
}

int usage_set_host(struct usage *usage, const uint64_t *cpus, size_t ncpus, const char *jobs_group)
{
    size_t count = ncpus ? ncpus : 1;

    if (same_host(usage, cpus, ncpus, jobs_group))
        return 0;
    clear_host(usage);
    clear_jobs(usage); /* they spoke of other processors */
    usage->jobs_group = strdup(jobs_group);
    usage->cpus = calloc(count, sizeof(*usage->cpus));
    usage->ticks = calloc(count, sizeof(*usage->ticks));
    usage->ended_us = calloc(count, sizeof(*usage->ended_us));
    if (!usage->jobs_group || !usage->cpus || !usage->ticks || !usage->ended_us) {
        clear_host(usage);
        return -ENOMEM;
    }
    if (ncpus > 0)
        memcpy(usage->cpus, cpus, ncpus * sizeof(*cpus));
    usage->ncpus = ncpus;
    return 0;
}

/* ---- jobs ---- */

static struct usage_job *find(struct usage *usage, uint64_t job, uint32_t attempt)
{
    for (size_t i = 0; i < usage->njobs; i++)
        if (usage->jobs[i].job == job && usage->jobs[i].attempt == attempt)
            return &usage->jobs[i];
    return NULL;
}

/* Where the processors stand in the report; without any that we know: on all of them. */
static int set_indices(struct usage *usage, struct usage_job *job, const uint64_t *cpus, size_t ncpus)
{
    size_t *indices = calloc(usage->ncpus + 1, sizeof(*indices)), count = 0;

    if (!indices)
        return -ENOMEM;
    for (size_t i = 0; i < usage->ncpus; i++)
        for (size_t j = 0; j < ncpus; j++)
            if (cpus[j] == usage->cpus[i]) {
                indices[count++] = i;
                break;
            }
    for (size_t i = 0; count == 0 && ncpus == 0 && i < usage->ncpus; i++)
        indices[i] = i;
    free(job->indices);
    job->indices = indices;
    job->nindices = count > 0 || ncpus > 0 ? count : usage->ncpus;
    return 0;
}

static struct usage_job *append(struct usage *usage)
{
    if (usage->njobs == JOBS_MAX)
        return NULL;
    if (usage->njobs == usage->capacity) {
        size_t capacity = usage->capacity ? 2 * usage->capacity : 16;
        struct usage_job *grown = reallocarray(usage->jobs, capacity, sizeof(*grown));

        if (!grown)
            return NULL;
        usage->jobs = grown;
        usage->capacity = capacity;
    }
    return &usage->jobs[usage->njobs];
}

void usage_add_job(struct usage *usage, uint64_t job, uint32_t attempt, const uint64_t *cpus, size_t ncpus, bool fresh)
{
    struct usage_job *entry = find(usage, job, attempt);

    if (entry) {
        if (ncpus > 0)
            (void)set_indices(usage, entry, cpus, ncpus);
        return;
    }
    entry = append(usage);
    if (!entry)
        return;
    *entry = (struct usage_job){.job = job, .attempt = attempt, .known = fresh};
    if (set_indices(usage, entry, cpus, ncpus) == 0)
        usage->njobs++;
}

static void charge(const struct usage_job *job, double used_us, double *shares)
{
    for (size_t i = 0; i < job->nindices; i++)
        shares[job->indices[i]] += used_us / (double)job->nindices;
}

void usage_end_job(struct usage *usage, uint64_t job, uint32_t attempt, double cpu_seconds)
{
    struct usage_job *entry = find(usage, job, attempt);

    if (!entry)
        return;
    if (entry->known && cpu_seconds * 1e6 > (double)entry->used_us && usage->begin.ns != 0)
        charge(entry, cpu_seconds * 1e6 - (double)entry->used_us, usage->ended_us);
    free(entry->indices);
    *entry = usage->jobs[--usage->njobs];
}

/* ---- reading ---- */

/* The beginning of a file, NUL-terminated; malloc'd. */
static char *read_file(const char *path, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = 0, capacity = 8192;
    char *text = NULL;

    if (fd < 0)
        return NULL;
    for (;;) {
        char *grown = realloc(text, capacity + 1);
        ssize_t n;

        if (!grown)
            break;
        text = grown;
        n = read(fd, text + size, capacity - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        size += (size_t)n;
        if (size == capacity && (capacity *= 2) > max)
            break;
    }
    close(fd);
    if (text)
        text[size] = '\0';
    return text;
}

/* "cpu3 user nice system idle iowait irq softirq steal ..." */
static bool parse_cpu(const char *line, uint64_t *cpu, struct usage_ticks *ticks)
{
    uint64_t v[CPU_FIELDS] = {0};

    if (sscanf(line, "cpu%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, cpu, &v[0],
               &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) < 5)
        return false;
    *ticks = (struct usage_ticks){.busy = v[0] + v[1] + v[2] + v[5] + v[6] + v[7], .seen = true};
    ticks->total = ticks->busy + v[3] + v[4];
    return true;
}

static int read_ticks(const struct usage *usage, struct usage_ticks *ticks, struct err *err)
{
    char *text = read_file(usage->proc_stat, STAT_MAX);

    if (!text)
        return err_set(err, -EIO, "%s cannot be read: %s", usage->proc_stat, strerror(errno));
    memset(ticks, 0, usage->ncpus * sizeof(*ticks));
    for (const char *line = text; line && strncmp(line, "cpu", 3) == 0; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        struct usage_ticks found;
        uint64_t cpu;

        if (!parse_cpu(line, &cpu, &found))
            continue;
        for (size_t i = 0; i < usage->ncpus; i++)
            if (usage->cpus[i] == cpu)
                ticks[i] = found;
    }
    free(text);
    return 0;
}

/* What a job has used, from its group; false when there is none (any more). */
static bool read_used(const struct usage *usage, const struct usage_job *job, uint64_t *used_us)
{
    char path[4400];
    char *text, *at;
    bool ok;

    if (snprintf(path, sizeof(path), "%s/%" PRIu64 ".%" PRIu32 "/job/cpu.stat", usage->jobs_group, job->job, job->attempt) >= (int)sizeof(path))
        return false;
    text = read_file(path, 8192);
    if (!text)
        return false;
    at = strstr(text, "usage_usec ");
    ok = at && sscanf(at, "usage_usec %" SCNu64, used_us) == 1;
    free(text);
    return ok;
}

/* ---- the interval ---- */

/* Adds what running jobs have used since the interval began to shares (NULL: only note where they are). */
static void read_jobs(struct usage *usage, double *shares)
{
    if (!usage->jobs_group[0])
        return;
    for (size_t i = 0; i < usage->njobs; i++) {
        struct usage_job *job = &usage->jobs[i];
        uint64_t used;

        if (!read_used(usage, job, &used))
            continue;
        if (job->known && shares && used > job->used_us)
            charge(job, (double)(used - job->used_us), shares);
        job->used_us = used;
        job->known = true;
    }
}

static double clamp(double share)
{
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* A processor that cannot be seen counts as busy: nothing is put there blindly. */
static double busy_share(const struct usage_ticks *from, const struct usage_ticks *to)
{
    if (!from->seen || !to->seen)
        return 1;
    if (to->total <= from->total || to->busy < from->busy) /* iowait may run backwards */
        return 0;
    return clamp((double)(to->busy - from->busy) / (double)(to->total - from->total));
}

int usage_begin(struct usage *usage, struct err *err)
{
    int code;

    if (!usage->cpus)
        return err_set(err, -EINVAL, "the processors are not known yet");
    code = read_ticks(usage, usage->ticks, err);
    if (code != 0)
        return code;
    read_jobs(usage, NULL);
    memset(usage->ended_us, 0, usage->ncpus * sizeof(*usage->ended_us));
    usage->begin = mono_now();
    return 0;
}

int usage_sample(struct usage *usage, uint64_t *interval_ms, double *busy, double *jobs, struct err *err)
{
    struct mono now = mono_now();
    int64_t length_ns = now.ns - usage->begin.ns;
    struct usage_ticks *ticks;
    int code;

    if (!usage->cpus || usage->begin.ns == 0)
        return err_set(err, -EINVAL, "no interval has begun");
    if (length_ns < 1000000)
        return -EAGAIN;
    ticks = calloc(usage->ncpus + 1, sizeof(*ticks));
    if (!ticks)
        return err_set(err, -ENOMEM, "out of memory");
    code = read_ticks(usage, ticks, err);
    if (code != 0) {
        free(ticks);
        return code;
    }
    memcpy(jobs, usage->ended_us, usage->ncpus * sizeof(*jobs));
    read_jobs(usage, jobs);
    for (size_t i = 0; i < usage->ncpus; i++) {
        busy[i] = busy_share(&usage->ticks[i], &ticks[i]);
        jobs[i] = clamp(jobs[i] * 1000 / (double)length_ns);
        usage->ended_us[i] = 0;
    }
    free(usage->ticks);
    usage->ticks = ticks;
    usage->begin = now;
    *interval_ms = (uint64_t)(length_ns / 1000000);
    return 0;
}
