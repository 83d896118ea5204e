/* client_submit.c - send a submission, and behind it the notices that it asks for.
 *
 * A call that submits goes on with the notices (client_notices.c) when the job is accepted, by the same deadline. From
 * then on it ends well in any case, because the job is there: what fails is told in the answer. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/client.h"

struct answer {
    struct elmer_submitted submitted; /* first: what the caller sees */
    struct wire_message message;
    struct client_notices *notices; /* that are submitted behind it; NULL: none */
    bool accepted;                  /* the job is: now they are */
    struct elmer_error untold;
    struct elmer_error *error; /* the caller's meanwhile */
};

static int take_submitted(struct wire_message *message, void *data)
{
    struct answer *answer = data;
    const char **hosts;
    size_t count = 0;

    if (message->type != WIRE_submitted)
        return -EPROTO;
    hosts = message->u.submitted.hosts.items;
    for (size_t i = 0; i < message->u.submitted.hosts.count; i++) /* one per processor -> each once */
        if (count == 0 || strcmp(hosts[count - 1], hosts[i]) != 0)
            hosts[count++] = hosts[i];
    answer->message = *message;
    message->memory = NULL;
    answer->submitted = (struct elmer_submitted){
        .job = answer->message.u.submitted.job,
        .state = answer->message.u.submitted.state,
        .level = (int)answer->message.u.submitted.level,
        .ahead = (uint32_t)answer->message.u.submitted.ahead,
        .reason = answer->message.u.submitted.reason,
        .hosts = hosts,
        .nhosts = count,
        .untold = "",
    };
    return 0;
}

/* Of a notice. */
static int take_accepted(struct wire_message *message, void *data)
{
    (void)data;
    return message->type == WIRE_submitted ? 0 : -EPROTO;
}

/* The job has been accepted, or one of its notices has ended so. */
static int then_notices(struct client_call *call, int result)
{
    struct answer *answer = ((struct elmer_call *)call)->answer;

    if (!answer->accepted) {
        if (result != ELMER_OK || !answer->notices)
            return result;
        answer->accepted = true;
        answer->error = call->error;
        call->error = &answer->untold;
        call->take = take_accepted;
        client_notices_of(answer->notices, answer->submitted.job);
    }
    result = client_notices_then(answer->notices, call, result);
    if (result == CLIENT_ASK)
        return result;
    if (result != ELMER_OK) {
        struct elmer_error why = answer->untold;

        client_error(&answer->untold, 0,
                     "job %" PRIu64 " is submitted and goes on, but nobody will be told of its %s: %.900s",
                     answer->submitted.job, client_notices_missed(answer->notices), why.text);
        answer->submitted.untold = answer->untold.text;
    }
    call->error = answer->error;
    return ELMER_OK;
}

void elmer_submitted_free(struct elmer_submitted *submitted)
{
    struct answer *answer = (struct answer *)submitted;

    if (!answer)
        return;
    wire_message_fini(&answer->message);
    client_notices_destroy(answer->notices);
    free(answer);
}

static void free_submitted(void *submitted)
{
    elmer_submitted_free(submitted);
}

/* type: submit or rehearse. The call is begun where *begun is wanted, else waited for. */
static int ask(struct elmer *elmer, enum wire_type type, const struct elmer_submission *submission,
               const struct client_call *call, void (*free_answer)(void *answer), int timeout_ms, void **answer,
               struct elmer_call **begun, struct elmer_error *error)
{
    struct wire_message request = {.type = type};
    struct client_made made = {0};
    int result = client_fill(&request.u.submit, submission, &made, error);

    static_assert(sizeof(struct wire_submit) == sizeof(struct wire_rehearse), "both have JOB_SUBMIT_FIELDS");
    if (result != ELMER_OK) {
        if (call->data)
            free_answer(call->data);
    } else {
        struct elmer_call *filled = client_call_create(elmer, &request, call, call->data, free_answer);
        result = begun ? client_call_begin(filled, timeout_ms, begun, error)
                       : client_call_run(filled, timeout_ms, answer, error);
    }
    client_made_fini(&made);
    return result;
}

/* The notices that it asks for; a notice asks for none. */
static int make_notices(const struct elmer *elmer, const struct elmer_submission *s, struct client_notices **notices,
                        struct elmer_error *error)
{
    const struct elmer_notices asked = {.mail_at = s->mail_at, .notify = s->notify, .environment = s->environment};

    *notices = NULL;
    return s->notice ? ELMER_OK : client_notices_create(elmer, &asked, notices, error);
}

static int submit(struct elmer *elmer, const struct elmer_submission *submission, bool alone, int timeout_ms,
                  void **answer, struct elmer_call **begun, struct elmer_error *error)
{
    struct answer *made = calloc(1, sizeof(*made));
    const struct client_call call = {.take = take_submitted, .then = then_notices, .signs = true, .data = made};
    int result = made && !alone ? make_notices(elmer, submission, &made->notices, error) : ELMER_OK;

    if (result != ELMER_OK) {
        free_submitted(made);
        return result;
    }
    return ask(elmer, WIRE_submit, submission, &call, free_submitted, timeout_ms, answer, begun, error);
}

int elmer_submit(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                 struct elmer_submitted **submitted, struct elmer_error *error)
{
    *submitted = NULL;
    return submit(elmer, submission, false, timeout_ms, (void **)submitted, NULL, error);
}

int client_submit(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                  struct elmer_submitted **submitted, struct elmer_error *error)
{
    *submitted = NULL;
    return submit(elmer, submission, true, timeout_ms, (void **)submitted, NULL, error);
}

int elmer_submit_begin(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                       struct elmer_call **call, struct elmer_error *error)
{
    *call = NULL;
    return submit(elmer, submission, false, timeout_ms, NULL, call, error);
}

struct elmer_submitted *elmer_call_submitted(struct elmer_call *call)
{
    return client_call_answer(call, free_submitted);
}

/* ---- only to try ---- */

struct rehearsal {
    struct elmer_rehearsed rehearsed; /* first: what the caller sees */
    struct wire_message message;
};

static int take_rehearsed(struct wire_message *message, void *data)
{
    struct rehearsal *answer = data;
    const struct wire_rehearsed *r;

    if (message->type != WIRE_rehearsed)
        return -EPROTO;
    answer->message = *message;
    message->memory = NULL;
    r = &answer->message.u.rehearsed;
    answer->rehearsed = (struct elmer_rehearsed){
        .state = r->state,
        .level = (int)r->level,
        .ahead = (uint32_t)r->ahead,
        .reason = r->reason,
        .ranks = r->hosts.items,
        .nranks = r->hosts.count,
        .above = r->above.items,
        .nabove = r->above.count,
        .first = r->first,
        .first_reason = r->first_reason,
        .note = r->note,
    };
    return 0;
}

void elmer_rehearsed_free(struct elmer_rehearsed *rehearsed)
{
    struct rehearsal *answer = (struct rehearsal *)rehearsed;

    if (answer)
        wire_message_fini(&answer->message);
    free(answer);
}

static void free_rehearsed(void *rehearsed)
{
    elmer_rehearsed_free(rehearsed);
}

static int rehearse(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms, void **answer,
                    struct elmer_call **begun, struct elmer_error *error)
{
    const struct client_call call = {.take = take_rehearsed, .data = calloc(1, sizeof(struct rehearsal))};
    struct client_notices *notices;
    int result = make_notices(elmer, submission, &notices, error); /* what it would need for them, too */

    client_notices_destroy(notices);
    if (result != ELMER_OK) {
        free(call.data);
        return result;
    }
    return ask(elmer, WIRE_rehearse, submission, &call, free_rehearsed, timeout_ms, answer, begun, error);
}

int elmer_rehearse(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                   struct elmer_rehearsed **rehearsed, struct elmer_error *error)
{
    *rehearsed = NULL;
    return rehearse(elmer, submission, timeout_ms, (void **)rehearsed, NULL, error);
}

int elmer_rehearse_begin(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                         struct elmer_call **call, struct elmer_error *error)
{
    *call = NULL;
    return rehearse(elmer, submission, timeout_ms, NULL, call, error);
}

struct elmer_rehearsed *elmer_call_rehearsed(struct elmer_call *call)
{
    return client_call_answer(call, free_rehearsed);
}
