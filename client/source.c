/* source.c - where output is read.
 *
 * On the host where it was written we open the file, as any program of the user does. On another one the supervisor of
 * the running job reads it there, as the user (elmer_read_output()). When the job has ended nobody there holds its
 * files any more: then a job of one processor is submitted to that host, whose output is that file and which does
 * nothing, so that its supervisor reads. It is submitted and checked as every job, and ended when all is read, or when
 * we are: a signal that ends us waits for that, the same one again does not. */
#include "config.h"

#include "client/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"

enum { HELPERS = 2, HELPER_MS = 15000, PAUSE_MS = 100, ASK_MS = 30000 };

static volatile sig_atomic_t ended_by;

/* ---- signals ---- */

static void on_signal(int number)
{
    ended_by = number;
    if (number != SIGPIPE) /* which comes again with each write */
        signal(number, SIG_DFL);
}

int source_ended_by(void)
{
    return ended_by;
}

void source_leave(void)
{
    sigset_t all;

    if (ended_by == 0)
        return;
    signal(ended_by, SIG_DFL);
    sigemptyset(&all);
    sigaddset(&all, ended_by);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    raise(ended_by);
}

/* Who has been told to ignore one goes on doing so. */
static void catch_signals(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction action = {.sa_handler = on_signal}, old;

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL && ended_by == 0)
            sigaction(ends[i], &action, NULL);
    }
}

/* The cluster's name of this host is its own, with or without its domain. */
static bool is_here(const char *host)
{
    char own[256] = "";
    size_t length = strcspn(host, ".");

    if (gethostname(own, sizeof(own) - 1) < 0)
        return false;
    return strcmp(own, host) == 0 || (strlen(own) == length && strncmp(own, host, length) == 0) ||
           (strncmp(own, host, strlen(host)) == 0 && own[strlen(host)] == '.');
}

int source_open(struct source *source, struct elmer *elmer, const struct elmer_job *job, uint32_t rank, bool errors)
{
    *source = (struct source){.elmer = elmer, .job = job->id, .rank = rank, .errors = errors};
    if (job->hidden) {
        say("job %" PRIu64 " belongs to %s: only its owner reads its output", job->id, job->user);
        return EXIT_PERMISSION;
    }
    if (rank >= (job->each ? job->nprocs : 1)) {
        say("job %" PRIu64 " has no rank %" PRIu32 "; its last is %" PRIu32, job->id, rank,
            job->each ? job->nprocs - 1 : 0);
        return EXIT_REFUSED;
    }
    source->path = elmer_job_output(job, rank, errors);
    if (!source->path || rank >= job->nprocessors) {
        say("it is not known where job %" PRIu64 " writes to; is elmer older than this command?", job->id);
        return EXIT_REFUSED;
    }
    source->host = must(strdup(job->processors[rank].host));
    source->here = is_here(source->host);
    return -1;
}

static void end_helper(struct source *source)
{
    struct elmer_error error;

    if (source->helper == 0 || elmer_kill(source->elmer, source->helper, ANSWER_MS, NULL, &error) == ELMER_OK)
        return;
    (void)elmer_cancel(source->elmer, source->helper, ANSWER_MS, NULL, &error); /* it still waits; else it has ended */
}

void source_close(struct source *source)
{
    end_helper(source);
    free(source->host);
    free(source->path);
    *source = (struct source){.elmer = NULL};
}

/* ---- here ---- */

static int read_here(const struct source *source, int64_t offset, struct part *part)
{
    int fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;
    ssize_t got = -1;

    part->count = 0;
    if (fd >= 0 && fstat(fd, &status) == 0 && !S_ISREG(status.st_mode)) {
        close(fd);
        say("%s is no file with an end", source->path);
        return EXIT_REFUSED;
    }
    if (fd >= 0) {
        part->size = status.st_size;
        part->offset = offset >= 0 ? offset : part->size > -offset ? part->size + offset : 0;
        got = pread(fd, part->bytes, sizeof(part->bytes), part->offset);
    }
    if (got < 0)
        say("%s cannot be read: %s", source->path, strerror(errno));
    if (fd >= 0)
        close(fd);
    part->count = got > 0 ? (size_t)got : 0;
    return got < 0 ? EXIT_REFUSED : -1;
}

/* ---- there ---- */

static int ask(const struct source *source, uint64_t job, uint32_t rank, bool errors, int64_t offset, struct part *part)
{
    struct elmer_error error = {{0}};
    struct elmer_part *read;
    int64_t deadline = mono_ms(mono_now()) + ASK_MS;
    int result;

    while ((result = elmer_read_output(source->elmer, job, rank, errors, offset, ANSWER_MS, &read, &error)) ==
               ELMER_UNAVAILABLE &&
           ended_by == 0 && mono_ms(mono_now()) < deadline)
        poll(NULL, 0, PAUSE_MS);
    if (result == ELMER_WRONG_STATE)
        return EXIT_JOB; /* it has just ended, or goes back into the queue: not said, the caller looks */
    if (result != ELMER_OK)
        return say_result(result, &error);
    part->offset = read->offset;
    part->size = read->size;
    part->count = read->count < sizeof(part->bytes) ? read->count : sizeof(part->bytes);
    memcpy(part->bytes, read->bytes, part->count);
    elmer_part_free(read);
    return -1;
}

/* A percent sign of the path is none of a pattern. */
static char *as_pattern(const char *path)
{
    char *pattern = must(malloc(2 * strlen(path) + 1)), *at = pattern;

    for (; *path; path++) {
        if (*path == '%')
            *at++ = '%';
        *at++ = *path;
    }
    *at = '\0';
    return pattern;
}

/* Whether the helper runs, or *code says that it never will. */
static bool runs(struct source *source, int *code)
{
    struct elmer_jobs *jobs;
    bool yes = false;

    if (elmer_query(source->elmer, false, false, &source->helper, 1, ANSWER_MS, &jobs, NULL) != ELMER_OK)
        return false;
    if (jobs->count == 1)
        yes = strcmp(jobs->items[0].state, "running") == 0;
    if (jobs->count == 1 && elmer_job_ended(&jobs->items[0])) {
        say("%s: the job that reads the output there has ended: %s", source->host, jobs->items[0].reason);
        source->helper = 0;
        *code = EXIT_REFUSED;
    }
    elmer_jobs_free(jobs);
    return yes;
}

static int start_helper(struct source *source)
{
    const char *const hosts[] = {source->host, NULL}, *const command[] = {"sleep", "60", NULL};
    char *pattern = as_pattern(source->path), *name = must(str_format("etail-%" PRIu64, source->job));
    struct elmer_submission submission = {
        .nprocs = 1, .command = command, .name = name, .dir = "/", .output = pattern, .hosts = hosts, .umask = -1};
    struct elmer_submitted *submitted;
    struct elmer_error error = {{0}};
    int64_t deadline = mono_ms(mono_now()) + HELPER_MS;
    int result, code = -1;

    catch_signals();
    result = elmer_submit(source->elmer, &submission, ANSWER_MS, &submitted, &error);
    free(pattern);
    free(name);
    if (result != ELMER_OK)
        return say_result(result, &error);
    source->helper = submitted->job;
    elmer_submitted_free(submitted);
    while (!runs(source, &code)) {
        if (code >= 0 || ended_by != 0)
            return code >= 0 ? code : EXIT_REFUSED;
        if (mono_ms(mono_now()) >= deadline) {
            say("%s does not answer, or has no processor now for a job that reads the output; it is in %s there",
                source->host, source->path);
            return EXIT_UNAVAILABLE;
        }
        poll(NULL, 0, PAUSE_MS);
    }
    return -1;
}

static int read_there(struct source *source, int64_t offset, bool ended, struct part *part)
{
    int code = EXIT_JOB;

    if (!ended && source->helper == 0)
        code = ask(source, source->job, source->rank, source->errors, offset, part);
    if (code != EXIT_JOB || !ended) /* it is done, or cannot be */
        return code;
    for (int i = 0; i < HELPERS && code == EXIT_JOB; i++) { /* one lives for a minute: too short for much output */
        code = source->helper == 0 ? start_helper(source) : -1;
        if (code < 0)
            code = ask(source, source->helper, 0, false, offset, part);
        if (code == EXIT_JOB)
            source->helper = 0;
    }
    if (code < 0 && part->size == 0 && !source->said_empty) {
        say("%s on %s is empty, or was not there any more", source->path, source->host);
        source->said_empty = true;
    }
    if (code == EXIT_JOB)
        say("the job that reads the output has been ended");
    return code;
}

int source_read(struct source *source, int64_t offset, bool ended, struct part *part)
{
    if (ended_by != 0)
        return EXIT_REFUSED;
    return source->here ? read_here(source, offset, part) : read_there(source, offset, ended, part);
}
