/*
 * observer - record every change of scheduling class and priority of all threads in control groups.
 *
 * usage: observer [-i INTERVAL_US] [-t SECONDS] LABEL=GROUP...
 *
 * GROUP is a directory of the cgroup2 tree; it need not exist yet and may go and come again. The groups are read in the
 * order given, once per interval (default 1000 us), until SIGTERM or SIGINT or for SECONDS (default 60). Then standard
 * output gets, in order of time, MILLISECONDS LABEL TID CLASS PRIORITY      a thread seen for the first time, or
 * changed since the last look MILLISECONDS LABEL TID gone 0              it is no longer there MILLISECONDS LABEL -
 * empty 0               the group has no thread any more (or does not exist any more) CLASS is other, batch, idle,
 * fifo, rr or deadline, followed by +reset if children do not inherit it. MILLISECONDS are CLOCK_MONOTONIC, the same on
 * all nodes of one machine. "# ready" comes first; the last line tells how good the eyes were: # looks N longest_gap_ms
 * X lost N after one line for each time of more than 5 ms without a look, by its end and its length: # gap MILLISECONDS
 * LENGTH_MS Nothing in the machine can cause these. On a virtual machine whose owner limits its CPU time all processors
 * stand still together for tens of milliseconds, jobs and daemons included: a test of times may subtract them.
 *
 * It must not be starved by what it watches: it runs in SCHED_DEADLINE, which ranks above SCHED_FIFO and which the
 * throttling of real-time tasks does not touch. Its reservation, 60 % of one CPU at most, is also the hard bound on
 * what it can take from others, and alarm() ends it in any case. Where SCHED_DEADLINE is refused it takes SCHED_FIFO 99
 * and says so; gaps of 50 ms per second are then to be expected behind tasks that spin. Nothing is written before the
 * end, since writing may wait for a starved kernel thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* LeakSanitizer forks and traces, which SCHED_DEADLINE does not go together with: it ends the program before all is
 * written. */
#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

enum { MAX_GROUPS = 64, MAX_THREADS = 8192, MAX_EVENTS = 400000, MAX_GAPS = 4096, CLASS_GONE = 100, CLASS_EMPTY = 101 };

#define POLICY_DEADLINE    6
#define FLAG_RESET_ON_FORK 1u

/* the kernel's struct sched_attr, which glibc 2.36 does not declare */
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

struct thread {
    int tid;
    uint32_t policy, priority;
    bool reset;
};

struct group {
    const char *label, *path;
    int fd;       /* of cgroup.threads, -1 while the group does not exist */
    size_t count; /* known threads, ordered by tid */
    struct thread *known;
};

struct event {
    int64_t time_ns;
    const struct group *group;
    struct thread thread;
};

static struct group groups[MAX_GROUPS];
static struct event *events;
static struct gap {
    int64_t end_ns, length_ns;
} gaps[MAX_GAPS];
static size_t group_count, event_count, gap_count, lost;
static struct thread *fresh;
static char *text;
static const size_t text_max = (size_t)MAX_THREADS * 12;
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void record(int64_t time_ns, const struct group *g, const struct thread *t)
{
    if (event_count == MAX_EVENTS) {
        lost++;
        return;
    }
    events[event_count++] = (struct event){time_ns, g, *t};
}

static int by_tid(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

/* Read the group's thread list into text. Returns its length, 0 when the group is empty or absent. */
static size_t read_list(struct group *g)
{
    size_t have = 0;

    if (g->fd < 0) {
        g->fd = open(g->path, O_RDONLY | O_CLOEXEC);
        if (g->fd < 0)
            return 0;
    }
    while (have < text_max - 1) {
        ssize_t got = pread(g->fd, text + have, text_max - 1 - have, (off_t)have);
        if (got < 0) { /* ENODEV: the group was removed */
            close(g->fd);
            g->fd = -1;
            return 0;
        }
        if (got == 0)
            break;
        have += (size_t)got;
    }
    text[have] = 0;
    return have;
}

/* Fill fresh[] with the group's threads that still exist, ordered by tid. Returns their number. */
static size_t look_at(struct group *g)
{
    size_t n = 0;
    char *at = text;

    if (read_list(g) == 0)
        return 0;
    while (n < MAX_THREADS) {
        struct attr a = {.size = sizeof(a)};
        char *end;
        long tid = strtol(at, &end, 10);
        if (end == at)
            break;
        at = end;
        if (tid <= 0 || syscall(SYS_sched_getattr, (pid_t)tid, &a, sizeof(a), 0u) != 0)
            continue; /* it died meanwhile */
        fresh[n++] = (struct thread){(int)tid, a.policy, a.priority, (a.flags & FLAG_RESET_ON_FORK) != 0};
    }
    qsort(fresh, n, sizeof(*fresh), by_tid);
    return n;
}

/* Compare what is there with what was known, record the differences, remember the new state. */
static void compare(struct group *g, size_t n, int64_t time_ns)
{
    size_t i = 0, k = 0;

    while (i < n || k < g->count) {
        if (k == g->count || (i < n && fresh[i].tid < g->known[k].tid)) {
            record(time_ns, g, &fresh[i++]);
        } else if (i == n || g->known[k].tid < fresh[i].tid) {
            struct thread gone = {g->known[k++].tid, CLASS_GONE, 0, false};
            record(time_ns, g, &gone);
        } else {
            const struct thread *a = &g->known[k++], *b = &fresh[i++];
            if (a->policy != b->policy || a->priority != b->priority || a->reset != b->reset)
                record(time_ns, g, b);
        }
    }
    if (n == 0 && g->count > 0)
        record(time_ns, g, &(struct thread){0, CLASS_EMPTY, 0, false});
    memcpy(g->known, fresh, n * sizeof(*fresh));
    g->count = n;
}

static const char *class_name(uint32_t policy)
{
    static const char *const names[] = {"other", "fifo", "rr", "batch", "?", "idle", "deadline"};

    if (policy == CLASS_GONE)
        return "gone";
    if (policy == CLASS_EMPTY)
        return "empty";
    return policy < sizeof(names) / sizeof(*names) ? names[policy] : "?";
}

static void print_ms(const char *before, int64_t time_ns)
{
    printf("%s%" PRId64 ".%03d", before, time_ns / 1000000, (int)(time_ns / 1000 % 1000));
}

static void print_events(void)
{
    for (size_t i = 0; i < event_count; i++) {
        const struct event *e = &events[i];
        char tid[16] = "-";
        if (e->thread.tid != 0)
            snprintf(tid, sizeof(tid), "%d", e->thread.tid);
        print_ms("", e->time_ns);
        printf(" %s %s %s%s %u\n", e->group->label, tid, class_name(e->thread.policy), e->thread.reset ? "+reset" : "",
               e->thread.priority);
    }
}

/* Rank above everything that is watched. Returns the name of what was got. */
static const char *take_rank(int64_t interval_ns)
{
    struct attr a = {.size = sizeof(a),
                     .policy = POLICY_DEADLINE,
                     .runtime_ns = (uint64_t)interval_ns * 6 / 10,
                     .deadline_ns = (uint64_t)interval_ns,
                     .period_ns = (uint64_t)interval_ns};
    struct sched_param fifo = {.sched_priority = 99};

    if (syscall(SYS_sched_setattr, 0, &a, 0u) == 0)
        return "deadline";
    fprintf(stderr, "observer: SCHED_DEADLINE is refused (%s): taking SCHED_FIFO 99, see longest_gap_ms\n",
            strerror(errno));
    if (sched_setscheduler(0, SCHED_FIFO, &fifo) == 0)
        return "fifo";
    fprintf(stderr, "observer: SCHED_FIFO is refused too (%s): it needs CAP_SYS_NICE\n", strerror(errno));
    exit(1);
}

static void sleep_until(int64_t time_ns)
{
    struct timespec t = {.tv_sec = time_ns / 1000000000, .tv_nsec = time_ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL); /* a signal ends it early, which is what we want */
}

static void print_gaps(uint64_t looks)
{
    int64_t longest = 0;

    for (size_t i = 0; i < gap_count; i++) {
        print_ms("# gap ", gaps[i].end_ns);
        print_ms(" ", gaps[i].length_ns);
        putchar('\n');
        if (gaps[i].length_ns > longest)
            longest = gaps[i].length_ns;
    }
    printf("# looks %" PRIu64, looks);
    print_ms(" longest_gap_ms ", longest);
    printf(" lost %zu\n", lost);
}

static void watch(int64_t interval_ns, int64_t end_ns)
{
    int64_t last = now_ns();
    uint64_t looks = 0;

    while (!stop && last < end_ns) {
        int64_t start = now_ns();
        if (start - last > 5000000 && gap_count < MAX_GAPS)
            gaps[gap_count++] = (struct gap){start, start - last};
        last = start;
        for (size_t i = 0; i < group_count; i++) {
            size_t n = look_at(&groups[i]);
            compare(&groups[i], n, now_ns());
        }
        looks++;
        sleep_until(start + interval_ns);
    }
    print_events();
    print_gaps(looks);
}

static void *must_alloc(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p) {
        fprintf(stderr, "observer: out of memory\n");
        exit(1);
    }
    return p;
}

static void usage(void)
{
    fprintf(stderr, "usage: observer [-i INTERVAL_US] [-t SECONDS] LABEL=GROUP...\n");
    exit(2);
}

static void add_group(char *argument)
{
    struct group *g = &groups[group_count];
    char *equals = strchr(argument, '=');
    char *path;

    if (!equals || group_count == MAX_GROUPS || asprintf(&path, "%s/cgroup.threads", equals + 1) < 0)
        usage();
    *equals = 0;
    *g = (struct group){.label = argument, .path = path, .fd = -1, .known = must_alloc(MAX_THREADS, sizeof(*g->known))};
    group_count++;
}

static long number(const char *s, long low, long high)
{
    char *end;
    long v = strtol(s, &end, 10);
    if (end == s || *end != 0 || v < low || v > high)
        usage();
    return v;
}

int main(int argc, char **argv)
{
    long interval_us = 1000, seconds = 60;
    struct sigaction act = {.sa_handler = on_signal};
    int option;

    while ((option = getopt(argc, argv, "i:t:")) != -1) {
        if (option == 'i')
            interval_us = number(optarg, 200, 1000000);
        else if (option == 't')
            seconds = number(optarg, 1, 3600);
        else
            usage();
    }
    if (optind == argc)
        usage();
    for (int i = optind; i < argc; i++)
        add_group(argv[i]);
    events = must_alloc(MAX_EVENTS, sizeof(*events));
    fresh = must_alloc(MAX_THREADS, sizeof(*fresh));
    text = must_alloc(text_max, 1);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGINT, &act, NULL);
    alarm((unsigned)seconds + 10);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        fprintf(stderr, "observer: memory is not locked (%s): a look may wait for the disk\n", strerror(errno));
    printf("# ready %s\n", take_rank(interval_us * 1000));
    fflush(stdout);
    watch(interval_us * 1000, now_ns() + seconds * 1000000000);
    return 0;
}
