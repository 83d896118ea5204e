/* marker.c - a job that leaves marks: each run says when it begins and ends, and whether it met another run of the same
 * job.
 *
 * marker DIR NAME MS STATUS [COMMAND [ARG...]]
 *
 * Appends to DIR/marks, in one write each:
 *   begin NAME JOB ATTEMPT RANK HOST NS     overlap ... the same      end ... the same
 * then sleeps for MS milliseconds, or runs COMMAND and waits for it, and exits with STATUS, or 99 if COMMAND failed.
 * A run holds a lock on DIR/NAME.RANK as long as any of its processes lives. So two runs of a rank at a time are seen
 * without a clock, also when the first was killed. DIR is one file system for all hosts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int marks = -1;
static const char *name, *job, *rank;
static char attempt[24] = "?", host[65] = "?";

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "marker: %s: %s\n", what, strerror(errno));
    exit(98);
}

static void mark(const char *what)
{
    char line[300];
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int size = snprintf(line, sizeof(line), "%s %s %s %s %s %s %" PRId64 "\n", what, name, job, attempt, rank, host,
                        (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
    if (write(marks, line, (size_t)size) != size)
        die("the mark");
}

/* The control group is .../JOB.ATTEMPT/job; nothing in the environment tells the attempt. */
static void find_attempt(void)
{
    char text[4200] = "", *leaf, *dot;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(text, sizeof(text), file) && strncmp(text, "0::", 3) != 0)
        ;
    if (file)
        fclose(file);
    leaf = strrchr(text, '/');
    if (leaf)
        *leaf = 0;
    dot = leaf ? strrchr(text, '.') : NULL;
    if (dot)
        snprintf(attempt, sizeof(attempt), "%.20s", dot + 1);
}

static void open_marks(const char *dir)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s.%s", dir, name, rank);
    int lock = open(path, O_RDWR | O_CREAT, 0600); /* inherited: what COMMAND leaves behind holds it too */
    if (lock < 0)
        die(path);
    snprintf(path, sizeof(path), "%s/marks", dir);
    marks = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (marks < 0)
        die(path);
    mark("begin");
    if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        mark("overlap");
}

static int run(char **command)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], command);
        die(command[0]);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void sleep_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fputs("usage: marker DIR NAME MS STATUS [COMMAND [ARG...]]\n", stderr);
        return 2;
    }
    name = argv[2];
    job = getenv("ELMER_JOB_ID");
    rank = getenv("ELMER_RANK");
    job = job ? job : "0";
    rank = rank ? rank : "0";
    gethostname(host, sizeof(host) - 1);
    find_attempt();
    open_marks(argv[1]);
    int failed = 0;
    if (argc > 5)
        failed = run(argv + 5);
    else
        sleep_ms(strtol(argv[3], NULL, 10));
    mark("end");
    return failed ? 99 : (int)strtol(argv[4], NULL, 10);
}
