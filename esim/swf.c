#include "config.h"

#include "esim/swf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "lib/memory/mem.h"

enum { LINE_MAX_BYTES = 4096, TOLD_MAX = 20 };

struct swf {
    struct source source;
    gzFile file;
    char *path;
    char line[LINE_MAX_BYTES];
    bool pending;                         /* line is the first job, read with the header */
    uint64_t number, bad, unknown, count; /* lines, of those wrong; jobs without and with what is needed */
    int64_t last_submit_ms;
    struct swf_header header;
};

static const char *const names[SWF_FIELDS] = {"job number",     "submit time",      "wait time", "run time",
                                              "processors",     "average CPU time", "memory",    "requested processors",
                                              "requested time", "requested memory", "status",    "user",
                                              "group",          "program",          "queue",     "partition",
                                              "preceding job",  "think time"};

int swf_parse_line(const char *line, double fields[SWF_FIELDS])
{
    const char *at = line;

    for (int i = 0; i < SWF_FIELDS; i++) {
        char *end;
        errno = 0;
        fields[i] = strtod(at, &end);
        if (end == at || errno != 0 || (*end != '\0' && strchr(" \t\r\n", *end) == NULL) || !(fields[i] >= -1) ||
            fields[i] > 1e15)
            return i + 1;
        if (i != SWF_CPU && i != SWF_MEMORY && i != SWF_ASKED_MEMORY && fields[i] != (double)(int64_t)fields[i])
            return i + 1;
        at = end;
    }
    return at[strspn(at, " \t\r\n")] == '\0' ? 0 : SWF_FIELDS + 1;
}

static void tell(struct swf *swf, const char *what, const char *field)
{
    if (++swf->bad <= TOLD_MAX)
        fprintf(stderr, "%s:%llu: %s%s\n", swf->path, (unsigned long long)swf->number, what, field);
    if (swf->bad == TOLD_MAX + 1)
        fprintf(stderr, "%s: more lines are wrong, and left out\n", swf->path);
}

static bool read_line(struct swf *swf)
{
    size_t length;

    if (gzgets(swf->file, swf->line, sizeof(swf->line)) == NULL) {
        int code;
        const char *text = gzerror(swf->file, &code);
        if (code != Z_OK && code != Z_STREAM_END)
            tell(swf, "cannot be read further: ", text);
        return false;
    }
    swf->number++;
    length = strlen(swf->line);
    if (length + 1 < sizeof(swf->line) || swf->line[length - 1] == '\n')
        return true;
    tell(swf, "the line is too long", "");
    for (int c; (c = gzgetc(swf->file)) != -1 && c != '\n';)
        ;
    swf->line[0] = '\0';
    return true;
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
}

/* The next line with a job; false: there is none. */
static bool next_line(struct swf *swf, double fields[SWF_FIELDS])
{
    while (swf->pending || read_line(swf)) {
        int fault;
        swf->pending = false;
        if (swf->line[strspn(swf->line, " \t")] == ';') {
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

static bool next(struct source *source, struct sim_job *job)
{
    struct swf *swf = (struct swf *)source;
    double fields[SWF_FIELDS];

    while (next_line(swf, fields)) {
        double procs = fields[SWF_ASKED_PROCS] > 0 ? fields[SWF_ASKED_PROCS] : fields[SWF_PROCS];
        *job = (struct sim_job){.number = (uint64_t)fields[SWF_JOB],
                                .submit_ms = (int64_t)fields[SWF_SUBMIT] * 1000,
                                .work_ms = (int64_t)fields[SWF_RUN] * 1000,
                                .uid = fields[SWF_USER] > 0 ? (uint32_t)fields[SWF_USER] : 0,
                                .share = 1,
                                .start_ms = -1,
                                .end_ms = -1};
        if (fields[SWF_SUBMIT] < 0 || fields[SWF_RUN] < 0 || procs < 1 || procs > 1000000) {
            swf->unknown++;
            continue;
        }
        job->nprocs = (uint32_t)procs;
        if (fields[SWF_CPU] > 0 && fields[SWF_RUN] > 0 && fields[SWF_CPU] < fields[SWF_RUN])
            job->share = fields[SWF_CPU] / fields[SWF_RUN];
        if (job->submit_ms < swf->last_submit_ms) {
            tell(swf, "the submit time is before that of the job above", "");
            continue;
        }
        swf->last_submit_ms = job->submit_ms;
        job->index = ++swf->count;
        return true;
    }
    return false;
}

static void destroy(struct source *source)
{
    struct swf *swf = (struct swf *)source;

    gzclose(swf->file);
    free(swf->path);
    free(swf);
}

struct swf *swf_open(const char *path)
{
    gzFile file = gzopen(path, "rb");
    struct swf *swf;

    if (file == NULL)
        return NULL;
    swf = mem_zalloc(sizeof(*swf));
    swf->source = (struct source){.next = next, .destroy = destroy};
    swf->file = file;
    swf->path = mem_strdup(path);
    swf->header = (struct swf_header){-1, -1, -1, -1};
    while (!swf->pending && read_line(swf)) {
        if (swf->line[strspn(swf->line, " \t")] == ';')
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

struct source *swf_source(struct swf *swf)
{
    return &swf->source;
}

uint64_t swf_bad_lines(const struct swf *swf)
{
    return swf->bad;
}

uint64_t swf_unknown(const struct swf *swf)
{
    return swf->unknown;
}
