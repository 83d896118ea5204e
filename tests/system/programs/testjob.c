/* testjob.c - a job for the system tests: bounded in time by itself, whatever happens to it.
 *
 * testjob [--stamp FILE] [--ignore-term] [--threads N] [--processes N | --sessions N] [--churn] [--work-us N --wait-us
 * N] [--report FILE] SECONDS
 *   --stamp FILE    first of all, write the monotonic clock in nanoseconds to FILE
 *   --threads N     N threads instead of one
 *   --processes N   N processes instead of one, --sessions N: each in a session of its own
 *   --churn         each thread keeps making short threads and processes (each is awaited), as a build does
 *   --work-us/--wait-us  alternate work and sleep instead of spinning
 *   --report FILE   at the end one line: cpu seconds of each thread, in the order of their numbers
 * They begin when all of them are there. Exit status 0 at the end of the time, 2 on wrong use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 1024 };

static int64_t deadline_ns, work_ns, wait_ns;
static bool churn;
static double cpu_seconds[MAX_THREADS];
static long processes = 1;
static bool sessions;
static int gate[2]; /* a pipe: it has ended when all are there */

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void spin_until(int64_t end_ns)
{
    while (now_ns(CLOCK_MONOTONIC) < end_ns)
        for (volatile int i = 0; i < 1000; i++)
            ;
}

static void *short_life(void *unused)
{
    (void)unused;
    spin_until(now_ns(CLOCK_MONOTONIC) + 200000);
    return NULL;
}

/* One thread and one process, both gone when it returns. */
static void churn_once(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_life, NULL) == 0)
        pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        short_life(NULL);
        _exit(0);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void wait_at_gate(void)
{
    char none;
    while (read(gate[0], &none, 1) < 0 && errno == EINTR)
        ;
}

static void *work(void *number)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = churn ? 20000000 : wait_ns};
    wait_at_gate();
    while (now_ns(CLOCK_MONOTONIC) < deadline_ns) {
        if (churn) {
            churn_once();
        } else {
            int64_t end = work_ns ? now_ns(CLOCK_MONOTONIC) + work_ns : deadline_ns;
            spin_until(end < deadline_ns ? end : deadline_ns);
        }
        if (pause.tv_nsec > 0)
            nanosleep(&pause, NULL);
    }
    cpu_seconds[(intptr_t)number] = (double)now_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9;
    return NULL;
}

static void stamp(const char *path)
{
    int64_t now = now_ns(CLOCK_MONOTONIC);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    dprintf(fd, "%lld\n", (long long)now);
    close(fd);
}

static int usage(void)
{
    fputs("usage: testjob [--stamp FILE] [--ignore-term] [--threads N] [--churn] [--work-us N --wait-us N] [--report "
          "FILE] SECONDS\n",
          stderr);
    return 2;
}

/* From here on there are so many of us. Whoever forked them waits for nobody: all end at the same time. */
static void multiply(void)
{
    signal(SIGCHLD, SIG_IGN);
    for (long i = 1; i < processes; i++) {
        pid_t pid = fork();
        if (pid < 0) {
            fprintf(stderr, "testjob: only %ld processes: %s\n", i, strerror(errno));
            exit(1);
        }
        if (pid == 0) {
            close(gate[1]);
            gate[1] = -1;
            if (sessions)
                setsid();
            return;
        }
    }
}

static long number_of(const char *text, long max)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || end == text || value < 0 || value > max) {
        fprintf(stderr, "testjob: '%s' is not a number of 0..%ld\n", text, max);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"stamp", 1, NULL, 's'},    {"ignore-term", 0, NULL, 'i'},
                                            {"threads", 1, NULL, 't'},  {"churn", 0, NULL, 'c'},
                                            {"work-us", 1, NULL, 'w'},  {"wait-us", 1, NULL, 'p'},
                                            {"report", 1, NULL, 'r'},   {"processes", 1, NULL, 'n'},
                                            {"sessions", 1, NULL, 'S'}, {NULL, 0, NULL, 0}};
    const char *report = NULL;
    long threads = 1;
    for (int c; (c = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        switch (c) {
        case 's':
            stamp(optarg);
            break;
        case 'i':
            signal(SIGTERM, SIG_IGN);
            break;
        case 't':
            threads = number_of(optarg, MAX_THREADS);
            break;
        case 'c':
            churn = true;
            break;
        case 'S':
            sessions = true; /* fall through */
        case 'n':
            processes = number_of(optarg, MAX_THREADS);
            break;
        case 'w':
            work_ns = number_of(optarg, 900000) * 1000;
            break;
        case 'p':
            wait_ns = number_of(optarg, 900000) * 1000;
            break;
        case 'r':
            report = optarg;
            break;
        default:
            return usage();
        }
    }
    if (optind != argc - 1 || threads < 1)
        return usage();
    deadline_ns = now_ns(CLOCK_MONOTONIC) + number_of(argv[optind], 3600) * 1000000000;
    if (pipe(gate) < 0) {
        perror("testjob: pipe");
        return 1;
    }
    multiply();
    pthread_t ids[MAX_THREADS];
    long made = 0;
    for (; made < threads - 1; made++)
        if (pthread_create(&ids[made], NULL, work, (void *)(intptr_t)(made + 1)) != 0) {
            fprintf(stderr, "testjob: only %ld threads: %s\n", made + 1, strerror(errno));
            return 1;
        }
    if (gate[1] >= 0)
        close(gate[1]);
    work(NULL);
    for (long i = 0; i < made; i++)
        pthread_join(ids[i], NULL);
    FILE *out = report ? fopen(report, "w") : NULL;
    for (long i = 0; out && i < threads; i++)
        fprintf(out, "%.3f%c", cpu_seconds[i], i == threads - 1 ? '\n' : ' ');
    return out && fclose(out) != 0 ? 1 : 0;
}
