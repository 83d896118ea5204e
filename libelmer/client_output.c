/* client_output.c - what a job has written, part by part.
 *
 * While it runs its own supervisor reads (read_output). When it has ended nobody there holds its files any more: then a
 * job is submitted to that host whose output is that file and which does nothing, the reader, so that the supervisor of
 * this one reads, as the user. It is checked as every job, but takes no processor and no turn (a notice of
 * requests/notice.c). A read of what is left is one call: submit it where there is none, look whether it runs, read.
 * While it does not yet the read ends as one that comes too often does, so that its caller can do something else. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/job/output.h"
#include "libelmer/client.h"

enum { READER_RUNS_MS = 60000, READER_NAME_MAX = 32 };

struct read {
    struct elmer_part part; /* first: what the caller sees */
    char bytes[];
};

static int take_part(struct wire_message *answer, void *data)
{
    const struct wire_output_part *part = &answer->u.output_part;
    size_t count = answer->type == WIRE_output_part ? strlen(part->data) / 2 : 0;
    struct read **out = data, *read;

    if (answer->type != WIRE_output_part || strlen(part->data) % 2 != 0)
        return -EPROTO;
    read = calloc(1, sizeof(*read) + count + 1);
    if (!read)
        return -ENOMEM;
    if (!hex_read_digits(part->data, (uint8_t *)read->bytes, count)) {
        free(read);
        return -EPROTO;
    }
    read->part = (struct elmer_part){.offset = part->offset, .size = part->size, .bytes = read->bytes, .count = count};
    free(*out);
    *out = read;
    return 0;
}

struct elmer_output {
    struct elmer *elmer;
    uint64_t job; /* whose output it is */
    char *host, *path;
    char *pattern;   /* the path, as submissions have it */
    uint64_t reader; /* 0: none is known */
    bool runs;       /* it has been seen to */
    char token[33];  /* of its submission, also of one whose answer was lost; "": it has none yet */
};

/* What a call for output asks now; READ alone is all of elmer_read_output(). */
enum step { AS_NOTICE, AS_JOB, LOOK, READ };

struct output {
    struct read *read; /* NULL: it has not come */
    enum step step;
    struct elmer_output *left; /* NULL: the job runs */
    int64_t offset;
    bool anew;        /* this call has found the reader's minute over, and submits another one */
    bool ended, over; /* the reader has; because its minute is over */
    char reason[256]; /* why */
    /* what the request has, until the next one is made */
    char name[READER_NAME_MAX];
    const char *hosts[2];
    struct client_made made;
};

static int take_submitted(const struct wire_message *answer, struct elmer_output *left)
{
    if (answer->type != WIRE_submitted)
        return -EPROTO;
    left->reader = answer->u.submitted.job;
    left->runs = false;
    return 0;
}

/* Of the reader alone, or of none. */
static int take_look(const struct wire_message *answer, struct output *output)
{
    const struct wire_jobs *jobs = &answer->u.jobs;

    if (answer->type != WIRE_jobs)
        return -EPROTO;
    for (size_t i = 0; i < jobs->jobs.count; i++) {
        const struct wire_job_view *view = &jobs->jobs.items[i];

        output->left->runs = strcmp(view->state, "running") == 0;
        output->ended = elmer_job_ended(&(struct elmer_job){.state = view->state});
        output->over = strcmp(view->reason_code, "exited") == 0 || strcmp(view->reason_code, "time-limit") == 0;
        snprintf(output->reason, sizeof(output->reason), "%s", view->reason);
    }
    return jobs->more;
}

static int take_output(struct wire_message *answer, void *data)
{
    struct output *output = data;

    switch (output->step) {
    case AS_NOTICE:
    case AS_JOB:
        return take_submitted(answer, output->left);
    case LOOK:
        return take_look(answer, output);
    case READ:
        break;
    }
    return take_part(answer, &output->read);
}

static void free_output(void *data)
{
    struct output *output = data;

    client_made_fini(&output->made);
    free(output->read);
    free(output);
}

static struct elmer_call *make(struct elmer *elmer, uint64_t job, uint32_t rank, bool errors, int64_t offset)
{
    const struct wire_message request = {
        .type = WIRE_read_output, .u.read_output = {.job = job, .rank = rank, .errors = errors, .offset = offset}};
    struct output *output = calloc(1, sizeof(*output));
    const struct client_call call = {.take = take_output, .data = output};

    if (output)
        output->step = READ;
    return client_call_create(elmer, &request, &call, output, free_output);
}

static struct elmer_part *part_of(struct output *output)
{
    struct read *read = output ? output->read : NULL;

    if (!output)
        return NULL;
    output->read = NULL;
    free_output(output);
    return read ? &read->part : NULL;
}

int elmer_read_output(struct elmer *elmer, uint64_t job, uint32_t rank, bool errors, int64_t offset, int timeout_ms,
                      struct elmer_part **part, struct elmer_error *error)
{
    void *output;
    int result = client_call_run(make(elmer, job, rank, errors, offset), timeout_ms, &output, error);

    *part = part_of(output);
    return result;
}

int elmer_read_output_begin(struct elmer *elmer, uint64_t job, uint32_t rank, bool errors, int64_t offset,
                            int timeout_ms, struct elmer_call **call, struct elmer_error *error)
{
    return client_call_begin(make(elmer, job, rank, errors, offset), timeout_ms, call, error);
}

struct elmer_part *elmer_call_part(struct elmer_call *call)
{
    return part_of(client_call_answer(call, free_output));
}

void elmer_part_free(struct elmer_part *part)
{
    free(part);
}

/* ---- what a job has left ---- */

/* A percent sign of the path is none of a pattern. NULL: no memory. */
static char *as_pattern(const char *path)
{
    char *pattern = malloc(2 * strlen(path) + 1), *at = pattern;

    if (!pattern)
        return NULL;
    for (; *path; path++) {
        if (*path == '%')
            *at++ = '%';
        *at++ = *path;
    }
    *at = '\0';
    return pattern;
}

static int check(const struct elmer_job *job, uint32_t rank, struct elmer_error *error)
{
    if (job->hidden)
        return client_error(error, ELMER_NOT_PERMITTED,
                            "job %" PRIu64 " belongs to %s: only its owner reads its output", job->id, job->user);
    if (rank >= (job->each ? job->nprocs : 1))
        return client_error(error, ELMER_REFUSED, "job %" PRIu64 " has no rank %" PRIu32 "; its last is %" PRIu32,
                            job->id, rank, job->each ? job->nprocs - 1 : 0);
    if (rank >= job->nprocessors)
        return client_error(error, ELMER_WRONG_STATE, "job %" PRIu64 " has written nothing: it is %s", job->id,
                            job->state);
    return ELMER_OK;
}

static void free_left(struct elmer_output *left)
{
    free(left->host);
    free(left->path);
    free(left->pattern);
    free(left);
}

int elmer_output_open(struct elmer *elmer, const struct elmer_job *job, uint32_t rank, bool errors,
                      struct elmer_output **output, struct elmer_error *error)
{
    int result = check(job, rank, error);
    char *path = result == ELMER_OK ? elmer_job_output(job, rank, errors) : NULL;
    struct elmer_output *left;

    *output = NULL;
    if (result != ELMER_OK)
        return result;
    if (!path && errno != ENOMEM)
        return client_error(error, ELMER_REFUSED,
                            "it is not known where job %" PRIu64 " writes to; is elmer older than this program?",
                            job->id);
    left = calloc(1, sizeof(*left));
    if (!left) {
        free(path);
        return client_error(error, ELMER_FAILED, "out of memory");
    }
    *left = (struct elmer_output){.elmer = elmer,
                                  .job = job->id,
                                  .path = path,
                                  .host = strdup(job->processors[rank].host),
                                  .pattern = path ? as_pattern(path) : NULL};
    if (!left->host || !left->pattern) {
        free_left(left);
        return client_error(error, ELMER_FAILED, "out of memory");
    }
    *output = left;
    return ELMER_OK;
}

uint64_t elmer_output_reader(const struct elmer_output *output)
{
    return output->reader;
}

static void forget_reader(struct elmer_output *left)
{
    left->reader = 0;
    left->runs = false;
    left->token[0] = '\0';
}

/* All of these return what a client_then does. An elmer of before such notices takes it as a job that waits for its
 * turn. */
static int submit_reader(struct output *output, struct client_call *call, enum step step)
{
    static const char *const command[] = {OUTPUT_HOLDER, OUTPUT_HOLDER_SECONDS, NULL};
    struct elmer_output *left = output->left;
    const struct elmer_submission submission = {.nprocs = 1,
                                                .command = command,
                                                .name = output->name,
                                                .dir = "/",
                                                .output = left->pattern,
                                                .hosts = output->hosts,
                                                .umask = -1,
                                                .token = left->token,
                                                .time_limit_ms = READER_RUNS_MS,
                                                .notice = step == AS_NOTICE};
    int result;

    if (!*left->token && str_unique_token(left->token) < 0)
        return client_error(call->error, ELMER_FAILED, "no random numbers: %s", strerror(errno));
    snprintf(output->name, sizeof(output->name), "output-of-%" PRIu64, left->job);
    output->hosts[0] = left->host;
    output->step = step;
    *call->request = (struct wire_message){.type = WIRE_submit, .memory = call->request->memory};
    client_made_fini(&output->made);
    output->made = (struct client_made){.dir = NULL};
    result = client_fill(&call->request->u.submit, &submission, &output->made, call->error);
    if (result != ELMER_OK)
        return result;
    call->signs = true;
    call->is_signed = false;
    return CLIENT_ASK;
}

static int look_at_reader(struct output *output, struct client_call *call)
{
    output->step = LOOK;
    output->ended = true;
    output->over = false;
    snprintf(output->reason, sizeof(output->reason), "elmer does not know it any more");
    *call->request = (struct wire_message){
        .type = WIRE_query, .memory = call->request->memory, .u.query = {.running = true, .queued = true}};
    call->request->u.query.jobs.items = &output->left->reader;
    call->request->u.query.jobs.count = 1;
    call->signs = false;
    return CLIENT_ASK;
}

static int read_by_reader(struct output *output, struct client_call *call)
{
    output->step = READ;
    *call->request = (struct wire_message){.type = WIRE_read_output,
                                           .memory = call->request->memory,
                                           .u.read_output = {.job = output->left->reader, .offset = output->offset}};
    call->signs = false;
    return CLIENT_ASK;
}

/* It lives for a minute: too short for much output, or for a caller who takes his time. */
static int submit_anew(struct output *output, struct client_call *call)
{
    output->anew = true;
    return submit_reader(output, call, AS_NOTICE);
}

/* What elmer has said of the reader. */
static int then_looked(struct output *output, struct client_call *call)
{
    struct elmer_output *left = output->left;

    if (left->runs)
        return read_by_reader(output, call);
    if (!output->ended)
        return client_error(call->error, ELMER_UNAVAILABLE,
                            "%s does not answer, or too much output is read there now: try again; it is in %s there",
                            left->host, left->path);
    forget_reader(left);
    if (output->over && !output->anew)
        return submit_anew(output, call);
    return client_error(call->error, ELMER_REFUSED, "%s: the job that reads the output there has ended: %s", left->host,
                        output->reason);
}

static int then_read(struct output *output, struct client_call *call, int result)
{
    if (result != ELMER_WRONG_STATE)
        return result;
    forget_reader(output->left);
    return output->anew ? client_error(call->error, result, "the job that reads the output has been ended")
                        : submit_anew(output, call);
}

static int then_left(struct client_call *call, int result)
{
    struct output *output = ((struct elmer_call *)call)->answer;

    if (output->step == READ)
        return then_read(output, call, result);
    if (output->step == AS_NOTICE && (result == ELMER_REFUSED || (result == ELMER_FAILED && call->too_old)))
        return submit_reader(output, call, AS_JOB);
    if (result != ELMER_OK)
        return result;
    return output->step == LOOK ? then_looked(output, call) : look_at_reader(output, call);
}

/* *made: NULL where the result is another one than ELMER_OK. */
static int make_left(struct elmer_output *left, int64_t offset, struct elmer_call **made, struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_submit};
    struct output *output = calloc(1, sizeof(*output));
    struct client_call call = {
        .take = take_output, .then = then_left, .data = output, .request = &request, .error = error};
    int result;

    *made = NULL;
    if (!output)
        return client_error(error, ELMER_FAILED, "out of memory");
    output->left = left;
    output->offset = offset;
    result = !left->reader ? submit_reader(output, &call, AS_NOTICE)
             : left->runs  ? read_by_reader(output, &call)
                           : look_at_reader(output, &call);
    if (result != CLIENT_ASK) {
        free_output(output);
        return result;
    }
    *made = client_call_create(left->elmer, &request, &call, output, free_output);
    return *made ? ELMER_OK : client_error(error, ELMER_FAILED, "out of memory");
}

int elmer_output_read(struct elmer_output *output, int64_t offset, int timeout_ms, struct elmer_part **part,
                      struct elmer_error *error)
{
    struct elmer_call *call;
    void *answer = NULL;
    int result = make_left(output, offset, &call, error);

    if (result == ELMER_OK)
        result = client_call_run(call, timeout_ms, &answer, error);
    *part = part_of(answer);
    return result;
}

int elmer_output_read_begin(struct elmer_output *output, int64_t offset, int timeout_ms, struct elmer_call **call,
                            struct elmer_error *error)
{
    int result = make_left(output, offset, call, error);

    return result == ELMER_OK ? client_call_begin(*call, timeout_ms, call, error) : result;
}

/* ---- the end of a reader ---- */

static int take_done(struct wire_message *answer, void *data)
{
    (void)data;
    return answer->type == WIRE_done ? 0 : -EPROTO;
}

/* Where it does not run it still waits; else it has ended. */
static int then_end(struct client_call *call, int result)
{
    const uint64_t *reader = call->data;

    if (result != ELMER_WRONG_STATE && result != ELMER_NO_SUCH_JOB)
        return result;
    if (call->request->type == WIRE_cancel)
        return ELMER_OK;
    *call->request = (struct wire_message){
        .type = WIRE_cancel, .memory = call->request->memory, .u.cancel = {.job = *reader, .tasks = ""}};
    return CLIENT_ASK;
}

static struct elmer_call *make_end(struct elmer *elmer, uint64_t reader)
{
    const struct wire_message request = {.type = WIRE_kill, .u.kill = {.job = reader, .tasks = ""}};
    uint64_t *data = malloc(sizeof(*data));
    const struct client_call call = {.take = take_done, .then = then_end, .data = data};

    if (data)
        *data = reader;
    return client_call_create(elmer, &request, &call, data, free);
}

void elmer_output_close(struct elmer_output *output, int timeout_ms)
{
    if (!output)
        return;
    if (output->reader)
        (void)client_call_run(make_end(output->elmer, output->reader), timeout_ms, NULL, NULL);
    free_left(output);
}

int elmer_output_close_begin(struct elmer_output *output, int timeout_ms, struct elmer_call **call,
                             struct elmer_error *error)
{
    int result = ELMER_OK;

    *call = NULL;
    if (!output)
        return ELMER_OK;
    if (output->reader)
        result = client_call_begin(make_end(output->elmer, output->reader), timeout_ms, call, error);
    free_left(output);
    return result;
}
