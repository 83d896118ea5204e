/* words.c - what is known of a job, in words for people. */
#include "config.h"

#include "client/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/common.h"
#include "lib/base/bytes.h"

const char *words_id(char text[WORDS_MAX], const struct elmer_job *job)
{
    if (job->array)
        snprintf(text, WORDS_MAX, "%" PRIu64 "[%d]", job->array, job->index);
    else
        snprintf(text, WORDS_MAX, "%" PRIu64, job->id);
    return text;
}

const char *words_duration(char text[WORDS_MAX], int64_t from_ms, int64_t to_ms, int64_t now_ms)
{
    long long s;

    if (from_ms < 0)
        return "";
    s = ((to_ms >= 0 ? to_ms : now_ms) - from_ms) / 1000;
    if (s < 0)
        s = 0;
    if (s >= 86400)
        snprintf(text, WORDS_MAX, "%lldd%02lld:%02lld:%02lld", s / 86400, s / 3600 % 24, s / 60 % 60, s % 60);
    else
        snprintf(text, WORDS_MAX, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    return text;
}

/* To format a time costs more than the rest of a row, and many jobs of a list were submitted within one minute: so the
 * text of the last minute is kept. */
const char *words_local_time(char text[WORDS_MAX], int64_t ms)
{
    static char minute_text[WORDS_MAX];
    static int64_t minute = -1;
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    if (ms < 0)
        return "";
    if (ms / 60000 == minute) {
        snprintf(text, WORDS_MAX, "%.*s%02d", WORDS_MAX - 4, minute_text, (int)(seconds % 60));
        return text;
    }
    if (!localtime_r(&seconds, &tm) || strftime(text, WORDS_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        return "";
    if (tm.tm_sec == seconds % 60) { /* not so where clocks count leap seconds */
        minute = ms / 60000;
        snprintf(minute_text, sizeof(minute_text), "%.*s", (int)strlen(text) - 2, text);
    }
    return text;
}

const char *words_outcome(char text[WORDS_MAX], const struct elmer_job *job)
{
    if (job->signal > 0)
        snprintf(text, WORDS_MAX, "signal %d", job->signal);
    else if (job->exit_status >= 0)
        snprintf(text, WORDS_MAX, "exit %d", job->exit_status);
    else
        return "";
    return text;
}

char *words_hosts(const struct elmer_job *job)
{
    char *text = NULL;
    size_t size;
    FILE *out = must(open_memstream(&text, &size));

    for (size_t i = 0; i < job->nprocessors;) {
        size_t count = 1;

        while (i + count < job->nprocessors && strcmp(job->processors[i].host, job->processors[i + count].host) == 0)
            count++;
        fprintf(out, "%s%s", i ? "," : "", job->processors[i].host);
        if (count > 1)
            fprintf(out, "*%zu", count);
        i += count;
    }
    if (fclose(out) != 0)
        must(NULL);
    return text;
}

void words_put_time(FILE *out, uint64_t ms)
{
    static const struct {
        uint64_t ms;
        char unit;
    } units[] = {{86400000, 'd'}, {3600000, 'h'}, {60000, 'm'}, {1000, 's'}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ms %= units[i++].ms)
        if (ms >= units[i].ms)
            fprintf(out, "%llu%c", (unsigned long long)(ms / units[i].ms), units[i].unit);
}

char *words_limits(const struct elmer_job *job)
{
    char *text = NULL, memory[BYTES_TEXT];
    size_t size;
    FILE *out = must(open_memstream(&text, &size));
    const char *between = "";

    if (job->time_limit_ms) {
        fputs("time ", out);
        words_put_time(out, job->time_limit_ms);
        between = ", ";
    }
    if (job->cpu_limit_ms) {
        fprintf(out, "%sCPU time ", between);
        words_put_time(out, job->cpu_limit_ms);
        between = ", ";
    }
    if (job->warning_signal) {
        const char *name = sigabbrev_np((int)job->warning_signal);

        fputs(between, out);
        if (name)
            fprintf(out, "%s ", name);
        else /* in real time: they have numbers only */
            fprintf(out, "signal %lu ", (unsigned long)job->warning_signal);
        words_put_time(out, job->warning_ms);
        fputs(" before", out);
        between = ", ";
    }
    if (job->memory_bytes) {
        fprintf(out, "%smemory %s for each processor", between, bytes_text(memory, job->memory_bytes));
        between = ", ";
    }
    if (job->per_host)
        fprintf(out, "%s%lu processor%s of a host", between, (unsigned long)job->per_host,
                job->per_host == 1 ? "" : "s");
    if (fclose(out) != 0)
        must(NULL);
    return text;
}

/* As the shell takes it for one word. */
static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";

    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    putc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            putc(*word, out);
    putc('\'', out);
}

/* What script.c makes of a script: sh -c LINE NAME INTERPRETER PARAMETER ARGUMENTS. */
static bool is_script(const struct elmer_job *job)
{
    return job->ncommand >= 6 && strcmp(job->command[0], "/bin/sh") == 0 && strcmp(job->command[1], "-c") == 0 &&
           strstr(job->command[2], "ELMER_SCRIPT");
}

char *words_command(const struct elmer_job *job)
{
    bool script = is_script(job);
    char *text = NULL;
    size_t size;
    FILE *out = must(open_memstream(&text, &size));

    if (script) {
        fputs("script ", out);
        put_word(out, job->command[3]);
    }
    for (size_t i = script ? 6 : 0; i < job->ncommand; i++) {
        if (script || i > 0)
            putc(' ', out);
        put_word(out, job->command[i]);
    }
    if (fclose(out) != 0)
        must(NULL);
    return text;
}

char *words_polls(const struct elmer_job *job)
{
    bool one = !strpbrk(job->polls, "-,");
    char *text;

    if (asprintf(&text, "rank%s %s %s: nothing is left for others; see elmer-mpi(7)", one ? "" : "s", job->polls,
                 one ? "polls while it waits" : "poll while they wait") < 0)
        must(NULL);
    return text;
}
