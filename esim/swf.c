#include "config.h"

#include "esim/swf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "esim/decimal.h"
#include "lib/job/fields.h"
#include "lib/memory/mem.h"

enum { LINE_MAX_BYTES = 4096, TOLD_MAX = 20, COMMENTS_MAX = 1000, PROCS_MAX = 1000000 };
#define TIME_MAX_S 1e12 /* 30,000 years */

struct swf {
    struct source source;
    gzFile file;
    char *path;
    char line[LINE_MAX_BYTES];
    bool silent;
    bool pending;           /* line is the first job, read with the header */
    bool jobs;              /* the header is over */
    uint64_t number, count; /* lines; jobs with what is needed */
    struct swf_counts counts;
    double last; /* job number of the line before */
    struct swf_header header;
    char *names[COMMENTS_MAX], *values[COMMENTS_MAX]; /* of the header */
    size_t ncomments;
    char fault[200];
};

static const char *const names[SWF_FIELDS] = {"job number",     "submit time",      "wait time", "run time",
                                              "processors",     "average CPU time", "memory",    "requested processors",
                                              "requested time", "requested memory", "status",    "user",
                                              "group",          "program",          "queue",     "partition",
                                              "preceding job",  "think time"};

/* Times, and what is an average, may have a fraction. */
static bool is_whole(enum swf_field field)
{
    return field != SWF_SUBMIT && field != SWF_WAIT && field != SWF_RUN && field != SWF_CPU && field != SWF_MEMORY &&
           field != SWF_ASKED_TIME && field != SWF_ASKED_MEMORY && field != SWF_THINK;
}

int swf_parse_line(const char *line, double fields[SWF_FIELDS])
{
    const char *at = line;

    for (int i = 0; i < SWF_FIELDS; i++) {
        char *end;
        errno = 0;
        fields[i] = decimal(at, &end);
        if (end == at || errno != 0 || (*end != '\0' && !strchr(" \t\r\n", *end)) || !(fields[i] >= -1) ||
            fields[i] > 1e15)
            return i + 1;
        if ((i == SWF_SUBMIT || i == SWF_RUN || i == SWF_THINK) && fields[i] > TIME_MAX_S)
            return i + 1;
        if (is_whole((enum swf_field)i) &&
            (fields[i] != (double)(int64_t)fields[i] || memchr(at, 'e', (size_t)(end - at)) ||
             memchr(at, 'E', (size_t)(end - at)))) /* of 1.23457e+09 the last digits are lost */
            return i + 1;
        if (i == SWF_USER && fields[i] >= UINT32_MAX) /* -1 of programs that know no sign */
            return i + 1;
        at = end;
    }
    return at[strspn(at, " \t\r\n")] == '\0' ? 0 : SWF_FIELDS + 1;
}

static void tell(struct swf *swf, const char *what, const char *field)
{
    if (++swf->counts.bad_lines > TOLD_MAX + 1 || swf->silent)
        return;
    if (swf->counts.bad_lines <= TOLD_MAX)
        fprintf(stderr, "%s:%llu: %s%s\n", swf->path, (unsigned long long)swf->number, what, field);
    else
        fprintf(stderr, "%s: more lines are wrong, and left out\n", swf->path);
}

/* Lines that can be read. zlib drops what it has unpacked when it finds damage in the same turn, so each is small. */
static uint64_t count_lines(const char *path)
{
    gzFile file = gzopen(path, "rb");
    uint64_t lines = 0;
    int c;

    if (!file)
        return 0;
    gzbuffer(file, 8);
    while ((c = gzgetc(file)) != -1)
        lines += c == '\n';
    gzclose(file);
    return lines;
}

/* The line that was cut off is not one of those that are wrong. */
static bool damaged(struct swf *swf)
{
    int result, error = errno;
    const char *text = gzerror(swf->file, &result);
    const char *name = strstr(text, ">: "); /* "<fd:3>: ", which says nothing to anybody */

    if (result == Z_OK || result == Z_STREAM_END)
        return false;
    if (result == Z_ERRNO)
        text = strerror(error);
    else if (strncmp(text, "<fd:", 4) == 0 && name)
        text = name + 3;
    snprintf(swf->fault, sizeof(swf->fault), "%.100s cannot be read beyond line %llu: %.60s", swf->path,
             (unsigned long long)(result == Z_ERRNO ? swf->number : count_lines(swf->path)), text);
    return true;
}

static bool is_comment(const struct swf *swf)
{
    return swf->line[strspn(swf->line, " \t")] == ';';
}

/* Some editors begin a file with the byte order mark of UTF-8. */
static void drop_mark(struct swf *swf)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t bytes = sizeof(mark) - 1;

    if (strncmp(swf->line, mark, bytes) == 0)
        memmove(swf->line, swf->line + bytes, strlen(swf->line + bytes) + 1);
}

/* False: there is none. One that cannot be a job is told, and empty; a comment may be cut off. */
static bool read_line(struct swf *swf)
{
    size_t length = 0;
    bool zero = false;
    int c;

    if (swf->fault[0] != '\0')
        return false;
    errno = 0;
    for (; (c = gzgetc(swf->file)) != -1 && c != '\n'; length++) {
        if (length + 1 < sizeof(swf->line))
            swf->line[length] = (char)c;
        zero = zero || c == '\0';
    }
    swf->line[length + 1 < sizeof(swf->line) ? length : sizeof(swf->line) - 1] = '\0';
    if (c == -1 && (damaged(swf) || length == 0))
        return false;
    swf->number++;
    if (swf->number == 1)
        drop_mark(swf);
    if (is_comment(swf) || (!zero && length + 1 < sizeof(swf->line)))
        return true;
    tell(swf, zero ? "a byte of the line is zero" : "the line is too long", "");
    swf->line[0] = '\0';
    return true;
}

/* ";  Name: value", of the header. Some names are there more than once, as Note and Queue are. */
static void keep_comment(struct swf *swf, const char *text)
{
    size_t name = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"), value;

    if (name == 0 || text[name] != ':' || swf->jobs || swf->ncomments == COMMENTS_MAX)
        return;
    swf->names[swf->ncomments] = mem_strndup(text, name);
    text += name + 1 + strspn(text + name + 1, " \t");
    for (value = strlen(text); value > 0 && strchr(" \t\r", text[value - 1]);)
        value--;
    swf->values[swf->ncomments++] = mem_strndup(text, value);
}

static void read_comment(struct swf *swf)
{
    const struct {
        const char *name;
        int64_t *value;
    } known[] = {{"MaxProcs", &swf->header.max_procs},
                 {"MaxNodes", &swf->header.max_nodes},
                 {"MaxJobs", &swf->header.max_jobs},
                 {"UnixStartTime", &swf->header.unix_start}};
    const char *text = swf->line + strspn(swf->line, "; \t");

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t length = strlen(known[i].name);
        if (strncmp(text, known[i].name, length) == 0 && text[length] == ':')
            *known[i].value = strtoll(text + length + 1, NULL, 10);
    }
    keep_comment(swf, text);
}

/* The next line with a job; false: there is none. */
static bool next_line(struct swf *swf, double fields[SWF_FIELDS])
{
    swf->jobs = true;
    while (swf->pending || read_line(swf)) {
        int fault;
        swf->pending = false;
        if (is_comment(swf)) {
            read_comment(swf);
            continue;
        }
        if (swf->line[strspn(swf->line, " \t\r\n")] == '\0')
            continue;
        fault = swf_parse_line(swf->line, fields);
        if (fault == 0)
            return true;
        if (fault > SWF_FIELDS)
            tell(swf, "there is more behind the 18 fields", "");
        else
            tell(swf, "there is no good number for the ", names[fault - 1]);
    }
    return false;
}

enum { CANCELLED = 5 }; /* status: before it began, or while it ran */

/* Of a job that was swapped out, behind the line that sums it up there is one for each part of its time, with the same
 * number: 2, and of the last part 3 or 4. */
static bool is_part(struct swf *swf, const double fields[SWF_FIELDS])
{
    bool part = fields[SWF_STATUS] >= 2 && fields[SWF_STATUS] <= 4;

    swf->counts.parts += part;
    swf->counts.parts_alone += part && fields[SWF_JOB] != swf->last;
    swf->last = fields[SWF_JOB];
    return part;
}

static int64_t to_ms(double seconds)
{
    return (int64_t)(seconds * 1000 + 0.5);
}

static bool next(struct source *source, struct sim_job *job)
{
    struct swf *swf = (struct swf *)source;
    double fields[SWF_FIELDS];

    while (next_line(swf, fields)) {
        enum swf_field field = fields[SWF_ASKED_PROCS] > 0 ? SWF_ASKED_PROCS : SWF_PROCS;
        double procs = fields[field];
        *job = (struct sim_job){.number = fields[SWF_JOB] > 0 ? (uint64_t)fields[SWF_JOB] : 0,
                                .submit_ms = to_ms(fields[SWF_SUBMIT]),
                                .work_ms = to_ms(fields[SWF_RUN]),
                                .preceding = fields[SWF_PRECEDING] > 0 ? (uint64_t)fields[SWF_PRECEDING] : 0,
                                .think_ms = fields[SWF_THINK] >= 0 ? to_ms(fields[SWF_THINK]) : -1,
                                .uid = fields[SWF_USER] >= 0 ? (uint32_t)fields[SWF_USER] : 0,
                                .nobody = fields[SWF_USER] < 0,
                                .share = 1,
                                .start_ms = -1,
                                .end_ms = -1};
        if (is_part(swf, fields))
            continue;
        if (fields[SWF_SUBMIT] < 0 || fields[SWF_RUN] < 0 || procs < 1) {
            swf->counts.unknown++;
            continue;
        }
        if (fields[SWF_STATUS] == CANCELLED && fields[SWF_RUN] == 0) {
            swf->counts.never_ran++;
            continue;
        }
        if (procs > PROCS_MAX) {
            tell(swf, "there is no good number for the ", names[field]);
            continue;
        }
        job->nprocs = (uint32_t)procs;
        if (fields[SWF_ASKED_MEMORY] > 0 && fields[SWF_ASKED_MEMORY] < MEMORY_MAX_BYTES / 1024.0) /* KB */
            job->memory_bytes = (uint64_t)(fields[SWF_ASKED_MEMORY] * 1024);
        if (fields[SWF_CPU] > 0 && fields[SWF_RUN] > 0 && fields[SWF_CPU] < fields[SWF_RUN])
            job->share = fields[SWF_CPU] / fields[SWF_RUN];
        job->index = ++swf->count;
        return true;
    }
    return false;
}

static void destroy(struct source *source)
{
    struct swf *swf = (struct swf *)source;

    gzclose(swf->file);
    for (size_t i = 0; i < swf->ncomments; i++) {
        free(swf->names[i]);
        free(swf->values[i]);
    }
    free(swf->path);
    free(swf);
}

/* again: it can be read more than once. Nobody may write to a pipe, so it is not waited for. */
static gzFile open_file(const char *path, bool *again)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    gzFile file = NULL;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0)
        file = gzdopen(fd, "rb");
    if (fd >= 0 && !file) {
        int error = errno;
        close(fd);
        errno = error;
    }
    *again = file && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    return file;
}

struct swf *swf_open(const char *path, bool silent)
{
    bool again;
    gzFile file = open_file(path, &again);
    struct swf *swf;

    if (!file)
        return NULL;
    swf = mem_zalloc(sizeof(*swf));
    swf->source = (struct source){.next = next, .destroy = destroy};
    swf->file = file;
    swf->silent = silent;
    swf->path = mem_strdup(path);
    swf->header = (struct swf_header){-1, -1, -1, -1};
    if (!again)
        snprintf(swf->fault, sizeof(swf->fault),
                 "%.100s is no file: a trace is read more than once, so put it into one", path);
    while (!swf->pending && read_line(swf)) {
        if (is_comment(swf))
            read_comment(swf);
        else
            swf->pending = swf->line[strspn(swf->line, " \t\r\n")] != '\0';
    }
    return swf;
}

const struct swf_header *swf_header(const struct swf *swf)
{
    return &swf->header;
}

bool swf_comment(const struct swf *swf, size_t index, const char **name, const char **value)
{
    if (index >= swf->ncomments)
        return false;
    *name = swf->names[index];
    *value = swf->values[index];
    return true;
}

const char *swf_fault(const struct swf *swf)
{
    return swf->fault[0] != '\0' ? swf->fault : NULL;
}

struct source *swf_source(struct swf *swf)
{
    return &swf->source;
}

struct swf_counts swf_counts(const struct swf *swf)
{
    return swf->counts;
}
