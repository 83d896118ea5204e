/* driver - what bench/run has done on a workstation: everything that is timed, without a shell or an interpreter
 * between.
 *
 * driver stamp FILE                          as a job: append "JOB RANK BEGIN END" to FILE, times of its first and last
 * act driver spawn [-p PARALLEL] [-n FIRST] [-w] [-g MS] COUNT COMMAND [ARG...] run COMMAND so often, PARALLEL at a
 * time; "@" in an argument is FIRST, FIRST+1, .. -w: it prints a job's id; wait for that job's end, then MS (20),
 * before the next prints "BEGIN EXIT STATUS WORD" for each (WORD: the first of its output, or -), and "cpu SECONDS" of
 * itself and all commands driver submit [-p THREADS] COUNT NPROCS COMMAND [ARG...] through libelmer, THREADS
 * submissions outstanding; prints "BEGIN END FIRST LAST", the last two are ids, and "cpu SECONDS" driver drain FIRST
 * LAST                    wait until these jobs have ended well; prints "END", just after the last has ended
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, the same on all nodes of one machine. The exit status is 0 only if all went
 * well.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libelmer/elmer.h"

enum { PARALLEL_MAX = 1000, ANSWER_MS = 120000, ARGS_MAX = 64, WINDOW = 256 };

extern char **environ;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "driver: %s: %s\n", what, why);
    exit(1);
}

static uint64_t number(const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *end)
        die(text, "a number is wanted");
    return value;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void print_cpu(void)
{
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    printf("cpu %.6f\n", seconds_of(self.ru_utime) + seconds_of(self.ru_stime) + seconds_of(children.ru_utime) +
                             seconds_of(children.ru_stime));
}

static struct elmer *open_elmer(void)
{
    struct elmer *elmer;
    struct elmer_error error;
    const char *socket = getenv("ELMER_SOCKET");
    struct elmer_options options = {.socket = socket && *socket ? socket : NULL}; /* as the commands have it */
    if (elmer_open(&options, &elmer, &error) != ELMER_OK)
        die("elmer_open", error.text);
    return elmer;
}

/* ---- stamp ---- */

static int stamp(int64_t begin, const char *path)
{
    char line[128];
    const char *job = getenv("ELMER_JOB_ID"), *rank = getenv("ELMER_RANK");
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        die(path, strerror(errno));
    int size = snprintf(line, sizeof(line), "%s %s %" PRId64 " %" PRId64 "\n", job ? job : "0", rank ? rank : "0",
                        begin, now_ns());
    return write(fd, line, (size_t)size) == size ? 0 : 1;
}

/* ---- waiting for jobs ---- */

/* Returns whether it has ended with exit status 0. */
static bool await_job(struct elmer *elmer, uint64_t id)
{
    for (;;) {
        struct elmer_jobs *jobs;
        struct elmer_error error;
        if (elmer_wait(elmer, id, 30000, &jobs, &error) != ELMER_OK)
            die("elmer_wait", error.text);
        bool ended = elmer_job_ended(&jobs->items[0]), good = jobs->items[0].exit_status == 0;
        if (ended && !good)
            fprintf(stderr, "driver: job %" PRIu64 ": %s\n", id, jobs->items[0].reason);
        elmer_jobs_free(jobs);
        if (ended)
            return good;
    }
}

/* Those of the window that have not ended are waited for. Returns how many did not end well, or are not known. */
static size_t settle(struct elmer *elmer, const uint64_t *ids, size_t count, int64_t *end_ns)
{
    struct elmer_jobs *jobs;
    struct elmer_error error;
    if (elmer_query(elmer, false, false, ids, count, ANSWER_MS, &jobs, &error) != ELMER_OK)
        die("elmer_query", error.text);
    size_t bad = count - jobs->count;
    for (size_t i = 0; i < jobs->count; i++) {
        if (elmer_job_ended(&jobs->items[i])) {
            bad += jobs->items[i].exit_status != 0;
        } else {
            bad += !await_job(elmer, jobs->items[i].id);
            *end_ns = now_ns();
        }
    }
    elmer_jobs_free(jobs);
    return bad;
}

/* The last to start are among the last to end, so few are waited for, and the others looked at afterwards. */
static int drain(uint64_t first, uint64_t last)
{
    struct elmer *elmer = open_elmer();
    size_t bad = 0;
    uint64_t ids[WINDOW];
    uint64_t tail = last - first < 16 ? first : last - 15;
    for (uint64_t id = tail; id <= last; id++)
        await_job(elmer, id);
    int64_t end_ns = now_ns();
    for (uint64_t id = first; id <= last;) {
        size_t count = 0;
        while (count < WINDOW && id <= last)
            ids[count++] = id++;
        bad += settle(elmer, ids, count, &end_ns);
    }
    elmer_close(elmer);
    printf("%" PRId64 "\n", end_ns);
    if (bad)
        fprintf(stderr, "driver: %zu jobs have not ended well\n", bad);
    return bad ? 1 : 0;
}

/* ---- spawn ---- */

struct run {
    pid_t pid;
    int out;
    int64_t begin_ns;
};

/* Its arguments, "@" replaced; the replaced ones are in text. */
static void fill_arguments(char **out, char **command, uint64_t n, char *text, size_t size)
{
    size_t i = 0;
    snprintf(text, size, "%" PRIu64, n);
    for (; i < ARGS_MAX - 1 && command[i]; i++)
        out[i] = strcmp(command[i], "@") == 0 ? text : command[i];
    out[i] = NULL;
}

static struct run spawn(char **command, uint64_t n)
{
    struct run run;
    posix_spawn_file_actions_t actions;
    char *arguments[ARGS_MAX], text[32];
    int pipes[2];
    fill_arguments(arguments, command, n, text, sizeof(text));
    if (pipe2(pipes, O_CLOEXEC) != 0)
        die("pipe", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    run.begin_ns = now_ns();
    int code = posix_spawnp(&run.pid, arguments[0], &actions, NULL, arguments, environ);
    if (code)
        die(arguments[0], strerror(code));
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    run.out = pipes[0];
    return run;
}

/* What it wrote is read to its end, so that a long list does not block it; only the first word is kept. */
static void finish(struct run *run, char *word, size_t size, int64_t *exit_ns, int *status)
{
    char buffer[65536];
    size_t have = 0;
    for (ssize_t got; (got = read(run->out, buffer, sizeof(buffer))) > 0;)
        for (ssize_t i = 0; i < got && have < size - 1 && (have == 0 || word[have - 1] > ' '); i++)
            word[have++] = buffer[i];
    while (have > 0 && word[have - 1] <= ' ')
        have--;
    word[have] = '\0';
    close(run->out);
    while (waitpid(run->pid, status, 0) < 0 && errno == EINTR)
        ;
    *exit_ns = now_ns();
}

struct spawning {
    char **command;
    uint64_t first;
    size_t count, next;
    struct elmer *elmer; /* to wait for jobs; NULL: do not */
    long pause_ms;
    bool failed;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void pause_between(const struct spawning *spawning)
{
    struct timespec t = {spawning->pause_ms / 1000, spawning->pause_ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void *spawn_some(void *data)
{
    struct spawning *spawning = data;
    for (;;) {
        pthread_mutex_lock(&lock);
        size_t n = spawning->next++;
        pthread_mutex_unlock(&lock);
        if (n >= spawning->count)
            return NULL;
        char word[64];
        int64_t exit_ns;
        int status;
        struct run run = spawn(spawning->command, spawning->first + n);
        finish(&run, word, sizeof(word), &exit_ns, &status);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        bool good = code == 0;
        if (good && spawning->elmer) {
            good = await_job(spawning->elmer, number(word));
            pause_between(spawning);
        }
        pthread_mutex_lock(&lock);
        printf("%" PRId64 " %" PRId64 " %d %s\n", run.begin_ns, exit_ns, code, word[0] ? word : "-");
        spawning->failed |= !good;
        pthread_mutex_unlock(&lock);
    }
}

static void in_threads(size_t count, void *(*work)(void *), void *data)
{
    pthread_t threads[PARALLEL_MAX];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)512 * 1024);
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attributes, work, data) != 0)
            die("pthread_create", strerror(errno));
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&attributes);
}

/* ---- submit ---- */

struct submitting {
    struct elmer_submission submission;
    size_t count, next;
    uint64_t first, last;
    pthread_barrier_t connected; /* the time counts from when all have a connection */
    int64_t begin_ns;
};

static void connect_first(struct elmer *elmer)
{
    struct elmer_jobs *jobs;
    struct elmer_error error;
    uint64_t none = 1;
    if (elmer_query(elmer, false, false, &none, 1, ANSWER_MS, &jobs, &error) != ELMER_OK)
        die("elmer_query", error.text);
    elmer_jobs_free(jobs);
}

static void *submit_some(void *data)
{
    struct submitting *all = data;
    struct elmer *elmer = open_elmer();
    connect_first(elmer);
    if (pthread_barrier_wait(&all->connected) == PTHREAD_BARRIER_SERIAL_THREAD)
        all->begin_ns = now_ns();
    for (;;) {
        struct elmer_submitted *answer;
        struct elmer_error error;
        pthread_mutex_lock(&lock);
        bool more = all->next++ < all->count;
        pthread_mutex_unlock(&lock);
        if (!more)
            break;
        if (elmer_submit(elmer, &all->submission, ANSWER_MS, &answer, &error) != ELMER_OK)
            die("elmer_submit", error.text);
        pthread_mutex_lock(&lock);
        if (answer->job < all->first)
            all->first = answer->job;
        if (answer->job > all->last)
            all->last = answer->job;
        pthread_mutex_unlock(&lock);
        elmer_submitted_free(answer);
    }
    elmer_close(elmer);
    return NULL;
}

static int submit(size_t threads, size_t count, uint64_t nprocs, char **command)
{
    static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    struct submitting all = {.count = count, .first = UINT64_MAX};
    all.submission = (struct elmer_submission){.nprocs = (uint32_t)nprocs,
                                               .command = (const char *const *)command,
                                               .output = "/dev/null",
                                               .environment = environment,
                                               .umask = -1};
    pthread_barrier_init(&all.connected, NULL, (unsigned)threads);
    in_threads(threads, submit_some, &all);
    printf("%" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 "\n", all.begin_ns, now_ns(), all.first, all.last);
    print_cpu();
    return all.last - all.first + 1 == count ? 0 : 1;
}

/* ---- main ---- */

static int usage(void)
{
    fputs("usage: driver stamp FILE | spawn [-p N] [-n FIRST] [-w] [-g MS] COUNT COMMAND.. | submit [-p N] COUNT "
          "NPROCS COMMAND.. |"
          " drain FIRST LAST\n",
          stderr);
    return 2;
}

static int main_spawn(size_t parallel, struct spawning *spawning, bool wait)
{
    spawning->elmer = wait ? open_elmer() : NULL;
    in_threads(parallel, spawn_some, spawning);
    elmer_close(spawning->elmer);
    print_cpu();
    return spawning->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    int64_t begin = now_ns();
    const char *verb = argc > 2 ? argv[1] : "";
    struct spawning spawning = {.pause_ms = 20};
    size_t parallel = 1;
    bool wait = false;

    if (strcmp(verb, "stamp") == 0)
        return argc == 3 ? stamp(begin, argv[2]) : usage();
    if (strcmp(verb, "drain") == 0)
        return argc == 4 ? drain(number(argv[2]), number(argv[3])) : usage();
    optind = 2;
    for (int c; (c = getopt(argc, argv, "+p:n:g:w")) != -1;) {
        switch (c) {
        case 'p':
            parallel = number(optarg);
            break;
        case 'n':
            spawning.first = number(optarg);
            break;
        case 'g':
            spawning.pause_ms = (long)number(optarg);
            break;
        case 'w':
            wait = true;
            break;
        default:
            return usage();
        }
    }
    if (parallel < 1 || parallel > PARALLEL_MAX || (wait && parallel > 1) || argc - optind < 2)
        return usage();
    spawning.count = number(argv[optind]);
    if (strcmp(verb, "spawn") == 0) {
        spawning.command = argv + optind + 1;
        return main_spawn(parallel, &spawning, wait);
    }
    if (strcmp(verb, "submit") == 0 && argc - optind >= 3)
        return submit(parallel, spawning.count, number(argv[optind + 1]), argv + optind + 2);
    return usage();
}
