/* source.c - where output is read.
 *
 * On the host where it was written we open the file, as any program of the user does. On another one the supervisor of
 * the running job reads it there, as the user (elmer_read_output()), and when the job has ended that of a job that does
 * nothing else (elmer_output_read()). That one is ended when all is read, or when we are: a signal that ends us waits
 * for that, the same one again does not. */
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
#include "client/patience.h"
#include "lib/base/clock.h"

enum { BEGIN_MS = 15000, ASK_MS = 30000, PAUSE_MS = 100 };

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
    struct elmer_error error = {{0}};
    int result;

    *source = (struct source){.elmer = elmer, .job = job->id, .rank = rank, .errors = errors};
    result = elmer_output_open(elmer, job, rank, errors, &source->left, &error);
    if (result != ELMER_OK)
        return say_result(result, &error);
    source->path = must(elmer_job_output(job, rank, errors));
    source->host = must(strdup(job->processors[rank].host));
    source->here = is_here(source->host);
    return -1;
}

void source_close(struct source *source)
{
    elmer_output_close(source->left, ANSWER_MS);
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

static int ask(const struct source *source, int64_t offset, bool ended, struct elmer_part **read,
               struct elmer_error *error)
{
    if (ended)
        return elmer_output_read(source->left, offset, ANSWER_MS, read, error);
    return elmer_read_output(source->elmer, source->job, source->rank, source->errors, offset, ANSWER_MS, read, error);
}

/* Where nothing reads what the job has left, nothing will soon. */
static bool may_come_soon(const struct source *source, bool ended)
{
    return ended_by == 0 && (!ended || elmer_output_reader(source->left) != 0);
}

/* From the job, or from what reads what it has left: as soon as that is possible. */
static int ask_patiently(struct source *source, int64_t offset, bool ended, struct elmer_part **read,
                         struct elmer_error *error)
{
    int64_t deadline = mono_ms(mono_now()) + (ended && !source->left_read ? BEGIN_MS : ASK_MS);
    bool patient = source->patient && !ended;

    for (;;) {
        int result = ask(source, offset, ended, read, error);

        if (result == ELMER_OK && patient)
            (void)waiting_was_said(); /* the next time it is said again */
        if ((result != ELMER_UNAVAILABLE || !may_come_soon(source, ended) || mono_ms(mono_now()) >= deadline) &&
            !(patient && patience_passes(result, error)))
            return result;
        poll(NULL, 0, PAUSE_MS);
    }
}

static int read_there(struct source *source, int64_t offset, bool ended, struct part *part)
{
    struct elmer_error error = {{0}};
    struct elmer_part *read;
    int result;

    if (ended)
        catch_signals();
    result = ask_patiently(source, offset, ended, &read, &error);
    if (result == ELMER_UNAVAILABLE && ended_by != 0)
        return EXIT_REFUSED; /* it goes on to its end */
    if (result == ELMER_WRONG_STATE && !ended)
        return EXIT_JOB; /* it has just ended, or goes back into the queue: not said, the caller looks */
    if (result != ELMER_OK)
        return say_result(result, &error);
    part->offset = read->offset;
    part->size = read->size;
    part->count = read->count < sizeof(part->bytes) ? read->count : sizeof(part->bytes);
    memcpy(part->bytes, read->bytes, part->count);
    elmer_part_free(read);
    source->left_read = ended;
    if (ended && part->size == 0 && !source->said_empty) {
        say("%s on %s is empty, or was not there any more", source->path, source->host);
        source->said_empty = true;
    }
    return -1;
}

int source_read(struct source *source, int64_t offset, bool ended, struct part *part)
{
    if (ended_by != 0)
        return EXIT_REFUSED;
    return source->here ? read_here(source, offset, part) : read_there(source, offset, ended, part);
}
