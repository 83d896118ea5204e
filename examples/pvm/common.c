#include "common.h"

#include <errno.h>
#include <pvm3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const char *program_name = "example";
static int spawned[EXAMPLE_TASKS_MAX];
static int nspawned;

double example_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double example_cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

extern int pvm_errno; /* of libpvm3, in no header of it */

static const char *pvm_text(int code)
{
    pvm_errno = code;
    return pvm_strerror();
}

void example_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    for (int i = 0; i < nspawned; i++)
        pvm_kill(spawned[i]);
    pvm_exit();
    exit(1);
}

int example_check(int result, const char *call)
{
    if (result < 0)
        example_die("%s: %s", call, pvm_text(result));
    return result;
}

void example_name(const char *program)
{
    program_name = program;
}

void example_enrol(void)
{
    pvm_setopt(PvmAutoErr, 0); /* we say it ourselves, once */
    int tid = pvm_mytid();
    if (tid < 0)
        example_die("cannot enrol in PVM: %s. Start a virtual machine (pvm), or submit with esubmit --pvm",
                    pvm_text(tid));
}

/* This program's path, for pvm_spawn. */
static char *own_path(void)
{
    static char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length < 0)
        example_die("cannot read /proc/self/exe, so the tasks cannot be started");
    self[length] = '\0';
    return self;
}

static void spawn_at(int flag, char *where, int n, int *tids)
{
    char task[] = EXAMPLE_TASK;
    char *args[] = {task, NULL};
    char *self = own_path();

    int started = pvm_spawn(self, args, flag, where, n, tids);
    for (int i = 0; i < n && started > 0; i++)
        if (tids[i] > 0 && nspawned < EXAMPLE_TASKS_MAX)
            spawned[nspawned++] = tids[i];
    if (started < 0)
        example_die("cannot spawn %s: %s", self, pvm_text(started));
    if (started < n)
        example_die("only %d of %d tasks started (%s): is %s on every host of the virtual machine?", started, n,
                    pvm_text(tids[started]), self);
    example_check(pvm_notify(PvmTaskExit, EXAMPLE_TAG_GONE, n, tids), "pvm_notify");
}

void example_spawn(int n, int *tids)
{
    static char anywhere[] = "";
    spawn_at(PvmTaskDefault, anywhere, n, tids);
}

int example_spawn_on(char *host)
{
    int tid;
    spawn_at(PvmTaskHost, host, 1, &tid);
    return tid;
}

void example_release(void)
{
    nspawned = 0;
}

int example_receive(int *from, int *bytes)
{
    int tag;
    int buffer = example_check(pvm_recv(-1, -1), "pvm_recv");
    example_check(pvm_bufinfo(buffer, bytes, &tag, from), "pvm_bufinfo");
    return tag;
}

/* For pvm_recvf(3): is this the tag, or the notice of an end? */
static int match_tag_or_end(int buffer, int from, int tag)
{
    int got;
    (void)from;
    return pvm_bufinfo(buffer, NULL, &got, NULL) >= 0 && (got == tag || got == EXAMPLE_TAG_GONE);
}

int example_receive_tag(int tag, int *from, int *bytes)
{
    int got;
    pvm_recvf(match_tag_or_end);
    int buffer = pvm_recv(-1, tag);
    pvm_recvf(NULL); /* as usual again */
    example_check(buffer, "pvm_recv");
    example_check(pvm_bufinfo(buffer, bytes, &got, from), "pvm_bufinfo");
    return got;
}

static void bad_option(char option, const char *text, double min, double max)
{
    fprintf(stderr, "%s: -%c %s: a number from %.15g to %.15g is wanted\n", program_name, option, text, min, max);
    exit(2);
}

long example_integer(char option, const char *text, long min, long max)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < min || value > max)
        bad_option(option, text, (double)min, (double)max);
    return value;
}

double example_real(char option, const char *text, double min, double max)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || *end || !(value >= min && value <= max))
        bad_option(option, text, min, max);
    return value;
}
