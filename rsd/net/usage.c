/* usage.c - the interval between two samples: ticks of each processor from /proc/stat, CPU time of each job from its
 * group.
 *
 * The kernel says how much a job has used in all, not where. It can have used a processor of its own only as far as
 * that was busy, so its time is laid where its processors were busy, as evenly as that allows; the rest of what was
 * busy is foreign. A job that uses one of its eight processors alone leaves nothing foreign there, which a share of an
 * eighth each would. Where a job and somebody foreign use different processors of the same job, nobody can tell who was
 * where: then the load counts as the job's as far as the job's time goes.
 *
 * A job that is alone polls at full speed while it waits (yield/), and would sleep if anybody came. Its processes say
 * how long they have done so, and that counts as idle: else no allocator that looks at load would ever put a later job
 * below one that waits. A job that lies about it finds a later one below, which takes nothing from it.
 */
#include "config.h"

#include "rsd/net/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"

enum { STAT_MAX = 1 << 20, JOBS_MAX = 16384, CPU_FIELDS = 8, POLLS_MAX = 255, POLLS_ALL = 64 << 10 };

struct usage_job {
    uint64_t job;
    uint32_t attempt;
    bool known;         /* used_us is what it had used when the interval began */
    bool ended;         /* in this interval, used_now_us is final */
    double used_now_us; /* in this interval */
    double slack_us;    /* see charge_jobs() */
    uint64_t used_us;
    bool waits;                 /* spun_us is known */
    uint64_t spun_us, spent_us; /* what it has spun in all; of that, counted in an interval */
    char polls[POLLS_MAX + 1];  /* ranks */
    size_t *indices;            /* of its processors in cpus */
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
    free(usage->busy_us);
    free(usage->spun_us);
    usage->spun_us = NULL;
    usage->jobs_group = NULL;
    usage->cpus = NULL;
    usage->ticks = NULL;
    usage->busy_us = NULL;
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
    usage->busy_us = calloc(count, sizeof(*usage->busy_us));
    usage->spun_us = calloc(count, sizeof(*usage->spun_us));
    if (!usage->jobs_group || !usage->cpus || !usage->ticks || !usage->busy_us || !usage->spun_us) {
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

void usage_place_job(struct usage *usage, uint64_t job, uint32_t attempt, const uint64_t *cpus, size_t ncpus)
{
    struct usage_job *entry = find(usage, job, attempt);

    if (entry && ncpus > 0)
        (void)set_indices(usage, entry, cpus, ncpus);
}

void usage_add_job(struct usage *usage, uint64_t job, uint32_t attempt, const uint64_t *cpus, size_t ncpus, bool fresh)
{
    struct usage_job *entry = find(usage, job, attempt);

    if (entry) {
        usage_place_job(usage, job, attempt, cpus, ncpus);
        return;
    }
    entry = append(usage);
    if (!entry)
        return;
    *entry = (struct usage_job){.job = job, .attempt = attempt, .known = fresh};
    if (set_indices(usage, entry, cpus, ncpus) == 0)
        usage->njobs++;
}

/* Water into basins of different depth, the job's processors: busy_us less what is in them already. All get the same,
 * but none more than it holds. What finds no room (ticks are coarse) is spread evenly. */
static void charge(const struct usage_job *job, double used_us, const double *busy_us, double *shares)
{
    double left_us = used_us;

    for (size_t round = 0; round < job->nindices && left_us > 0; round++) {
        size_t open = 0;
        double each_us, before_us = left_us;

        for (size_t i = 0; i < job->nindices; i++)
            open += busy_us[job->indices[i]] > shares[job->indices[i]];
        if (open == 0)
            break;
        each_us = before_us / (double)open;
        for (size_t i = 0; i < job->nindices; i++) {
            double room_us = busy_us[job->indices[i]] - shares[job->indices[i]];
            double part_us = room_us <= 0 ? 0 : room_us < each_us ? room_us : each_us;

            shares[job->indices[i]] += part_us;
            left_us -= part_us;
        }
        if (before_us - left_us >= each_us * (double)open * (1 - 1e-9))
            return; /* all of it had room */
    }
    for (size_t i = 0; i < job->nindices && left_us > 0; i++)
        shares[job->indices[i]] += left_us / (double)job->nindices;
}

static void remove_job(struct usage *usage, struct usage_job *entry)
{
    free(entry->indices);
    *entry = usage->jobs[--usage->njobs];
}

static bool is_held(const struct usage_job *entry, const struct wire_holding *held, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (held[i].job == entry->job && held[i].attempt == entry->attempt)
            return true;
    return false;
}

void usage_hold(struct usage *usage, const struct wire_holding *held, size_t count)
{
    for (size_t i = usage->njobs; i-- > 0;)
        if (!is_held(&usage->jobs[i], held, count))
            remove_job(usage, &usage->jobs[i]);
    for (size_t i = 0; i < count; i++)
        usage_add_job(usage, held[i].job, (uint32_t)held[i].attempt, NULL, 0, false);
}

void usage_end_job(struct usage *usage, uint64_t job, uint32_t attempt, double cpu_seconds)
{
    struct usage_job *entry = find(usage, job, attempt);

    if (!entry || entry->ended)
        return;
    if (entry->known && cpu_seconds * 1e6 > (double)entry->used_us && usage->begin.ns != 0) {
        entry->used_now_us =
            cpu_seconds * 1e6 - (double)entry->used_us; /* laid out with the sample, when it is known what was busy */
        entry->ended = true;
        return;
    }
    remove_job(usage, entry);
}

void usage_waits(struct usage *usage, const struct wire_waits *waits)
{
    struct usage_job *entry = find(usage, waits->job, (uint32_t)waits->attempt);
    size_t length = strlen(waits->polls);

    if (!entry)
        return;
    if (!entry->waits || waits->spun_us < entry->spun_us) /* what it has spun before we knew is over */
        entry->spent_us = waits->spun_us;
    entry->waits = true;
    entry->spun_us = waits->spun_us;
    for (; length > 0 && (length > POLLS_MAX || (length < strlen(waits->polls) && waits->polls[length] != ','));
         length--)
        ; /* whole ranges */
    memcpy(entry->polls, waits->polls, length);
    entry->polls[length] = '\0';
}

/* ---- reading ---- */

/* The beginning of a file, NUL-terminated; malloc'd. */
static char *read_file(const char *path, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t size;

    if (fd < 0)
        return NULL;
    (void)file_read_fd(fd, max, &text, &size);
    close(fd);
    return text;
}

/* "cpu3 user nice system idle iowait irq softirq steal ..." */
static bool parse_cpu(const char *line, uint64_t *cpu, struct usage_ticks *ticks)
{
    uint64_t v[CPU_FIELDS] = {0};

    if (sscanf(line,
               "cpu%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64,
               cpu, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) < 5)
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
    for (const char *line = text; line && strncmp(line, "cpu", 3) == 0;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
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

    if (snprintf(path, sizeof(path), "%s/%" PRIu64 ".%" PRIu32 "/job/cpu.stat", usage->jobs_group, job->job,
                 job->attempt) >= (int)sizeof(path))
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

/* What running jobs have used since the interval began, and where they are now. */
static void read_jobs(struct usage *usage)
{
    for (size_t i = 0; i < usage->njobs; i++) {
        struct usage_job *job = &usage->jobs[i];
        uint64_t used;

        if (job->ended)
            continue;
        job->used_now_us = 0;
        if (!usage->jobs_group[0] || !read_used(usage, job, &used))
            continue;
        if (job->known && used > job->used_us)
            job->used_now_us = (double)(used - job->used_us);
        job->used_us = used;
        job->known = true;
    }
}

/* What was spun goes from what was busy and from what its job has used. */
static void take_spun(struct usage *usage)
{
    memset(usage->spun_us, 0, usage->ncpus * sizeof(*usage->spun_us));
    for (size_t i = 0; i < usage->njobs; i++) {
        struct usage_job *job = &usage->jobs[i];
        double spun_us = (double)(job->spun_us - job->spent_us);

        job->spent_us = job->spun_us;
        if (spun_us > job->used_now_us)
            spun_us = job->used_now_us;
        if (spun_us <= 0)
            continue;
        charge(job, spun_us, usage->busy_us, usage->spun_us);
        job->used_now_us -= spun_us;
    }
    for (size_t i = 0; i < usage->ncpus; i++) {
        usage->busy_us[i] -= usage->spun_us[i];
        if (usage->busy_us[i] < 0)
            usage->busy_us[i] = 0;
    }
}

/* How much more than it has used was busy on its processors. */
static double slack_of(const struct usage_job *job, const double *busy_us)
{
    double slack_us = -job->used_now_us;

    for (size_t i = 0; i < job->nindices; i++)
        slack_us += busy_us[job->indices[i]];
    return slack_us;
}

static int by_slack(const void *a, const void *b)
{
    const struct usage_job *x = a, *y = b;

    return (x->slack_us > y->slack_us) - (x->slack_us < y->slack_us);
}

/* Those with the least choice first. And those that have ended go. */
static void charge_jobs(struct usage *usage, const double *busy_us, double *shares)
{
    for (size_t i = 0; i < usage->njobs; i++)
        usage->jobs[i].slack_us = slack_of(&usage->jobs[i], busy_us);
    if (usage->njobs > 1)
        qsort(usage->jobs, usage->njobs, sizeof(*usage->jobs), by_slack);
    for (size_t i = 0; i < usage->njobs; i++)
        if (usage->jobs[i].used_now_us > 0)
            charge(&usage->jobs[i], usage->jobs[i].used_now_us, busy_us, shares);
    for (size_t i = usage->njobs; i-- > 0;)
        if (usage->jobs[i].ended)
            remove_job(usage, &usage->jobs[i]);
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

size_t usage_used(const struct usage *usage, struct wire_used *used, size_t most)
{
    size_t count = 0, texts = 0;

    for (size_t i = 0; i < usage->njobs && count < most; i++) {
        const struct usage_job *job = &usage->jobs[i];

        if (!job->known || job->ended)
            continue;
        texts += strlen(job->polls);
        used[count++] =
            (struct wire_used){job->job, job->attempt, job->used_us / 1000, texts < POLLS_ALL ? job->polls : ""};
    }
    return count;
}

int usage_begin(struct usage *usage, struct err *err)
{
    int result;

    if (!usage->cpus)
        return err_set(err, -EINVAL, "the processors are not known yet");
    result = read_ticks(usage, usage->ticks, err);
    if (result != 0)
        return result;
    read_jobs(usage);
    for (size_t i = usage->njobs; i-- > 0;)
        if (usage->jobs[i].ended)
            remove_job(usage, &usage->jobs[i]);
    usage->begin = mono_now();
    return 0;
}

int usage_sample(struct usage *usage, uint64_t *interval_ms, double *busy, double *jobs, struct err *err)
{
    struct mono now = mono_now();
    int64_t length_ns = now.ns - usage->begin.ns;
    struct usage_ticks *ticks;
    int result;

    if (usage->begin.ns == 0) { /* the first look has failed: this is the first one */
        result = usage_begin(usage, err);
        return result != 0 ? result : -EAGAIN;
    }
    if (length_ns < 1000000)
        return -EAGAIN;
    ticks = calloc(usage->ncpus + 1, sizeof(*ticks));
    if (!ticks)
        return err_set(err, -ENOMEM, "out of memory");
    result = read_ticks(usage, ticks, err);
    if (result != 0) {
        free(ticks);
        return result;
    }
    read_jobs(usage);
    for (size_t i = 0; i < usage->ncpus; i++) {
        busy[i] = busy_share(&usage->ticks[i], &ticks[i]);
        usage->busy_us[i] = busy[i] * (double)length_ns / 1000;
        jobs[i] = 0;
    }
    take_spun(usage);
    for (size_t i = 0; i < usage->ncpus; i++)
        busy[i] = clamp(usage->busy_us[i] * 1000 / (double)length_ns);
    charge_jobs(usage, usage->busy_us, jobs);
    for (size_t i = 0; i < usage->ncpus; i++)
        jobs[i] = clamp(jobs[i] * 1000 / (double)length_ns);
    free(usage->ticks);
    usage->ticks = ticks;
    usage->begin = now;
    *interval_ms = (uint64_t)(length_ns / 1000000);
    return 0;
}
