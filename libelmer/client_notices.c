/* client_notices.c - the notices of a job: what tells its user that it has begun or ended.
 *
 * A notice is a job without a processor that waits for the other one, on this host, where its user exists and mail
 * works. It has a ticket of its own, so what it runs was signed here, like the command of every job. There is one for
 * the begin and one for the end. They are submitted one behind the other; the first that is not accepted ends that.
 *
 * Their tokens are made of the job and of what they do: who asks again, also for the job with a token of its own, after
 * an answer that was lost, gets the same notices, and who asks for other ones is told that there are some.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/base/variable.h"
#include "lib/job/after.h"
#include "lib/job/mail_at.h"
#include "libelmer/client_internal.h"

enum { RUNS_MS = 60000, COMMAND_MAX = 1000, WORDS_MAX = 8, STEPS_MAX = 2, TOKEN_MAX = 65, JOB_NAME_MAX = 32 };

struct client_notices {
    struct mail_at mail;
    char *command; /* NULL: none */
    char *dir;     /* where it runs */
    const char **environment;
    uint64_t job;
    enum after_kind steps[STEPS_MAX]; /* what is submitted, in this order */
    size_t count, next;
    /* what the request has, until the next one is made */
    char name[JOB_NAME_MAX], item[AFTER_TEXT], token[TOKEN_MAX];
    struct client_made made;
    const char *words[WORDS_MAX], *after[2];
};

const char *client_sendmail(const char *chosen)
{
    static const char *const usual[] = {"/usr/sbin/sendmail", "/usr/lib/sendmail", NULL};

    if (chosen && *chosen)
        return access(chosen, X_OK) == 0 ? chosen : NULL;
    for (const char *const *path = usual; *path; path++)
        if (access(*path, X_OK) == 0)
            return *path;
    return NULL;
}

/* ---- what is asked for ---- */

static int check(const struct elmer_notices *asked, struct client_notices *n, struct elmer_error *error)
{
    const char *sendmail = getenv("ELMER_SENDMAIL");
    char why[MAIL_AT_WHY];

    if (asked->mail_at && *asked->mail_at && mail_at_parse(asked->mail_at, &n->mail, why) < 0)
        return client_error(error, ELMER_USAGE, "mail_at: %s", why);
    if (asked->notify && (strlen(asked->notify) > COMMAND_MAX || asked->notify[strcspn(asked->notify, "\n\r")]))
        return client_error(error, ELMER_USAGE,
                            "notify: want a line of shell, of at most %d bytes; put more into a script", COMMAND_MAX);
    if (asked->dir && *asked->dir != '/')
        return client_error(error, ELMER_USAGE, "the directory where notify runs is not an absolute path");
    if (!asked->mail_at || !*asked->mail_at || client_sendmail(sendmail))
        return ELMER_OK;
    if (sendmail && *sendmail)
        return client_error(error, ELMER_REFUSED, "mail_at: ELMER_SENDMAIL=%s is no program that can be run", sendmail);
    return client_error(error, ELMER_REFUSED,
                        "mail_at: this host cannot send mail, as it has no /usr/sbin/sendmail: install a mail system, "
                        "submit on a host that has one, or use notify");
}

/* Copies of those that are given, without the text of a script, and with what says how elmer and mail are reached. */
static bool copy_environment(const struct elmer *elmer, const char *const *given, struct client_notices *n)
{
    const char *sendmail = getenv("ELMER_SENDMAIL");
    const char *left_out[4] = {CLIENT_SCRIPT_VARIABLE};
    size_t count = 0, used = 0, nleft = 1;

    while (given && given[count])
        count++;
    n->environment = calloc(count + 3, sizeof(*n->environment));
    if (!n->environment)
        return false;
    if (elmer->own_socket) {
        left_out[nleft++] = "ELMER_SOCKET";
        n->environment[used] = str_format("ELMER_SOCKET=%s", elmer->own_socket);
        if (!n->environment[used++])
            return false;
    }
    if (sendmail) {
        left_out[nleft++] = "ELMER_SENDMAIL";
        n->environment[used] = str_format("ELMER_SENDMAIL=%s", sendmail);
        if (!n->environment[used++])
            return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (variable_is_one_of(given[i], left_out))
            continue;
        n->environment[used] = strdup(given[i]);
        if (!n->environment[used++])
            return false;
    }
    return true;
}

static int copy(const struct elmer *elmer, const struct elmer_notices *asked, struct client_notices *n,
                struct elmer_error *error)
{
    bool runs = asked->notify && *asked->notify;

    n->command = runs ? strdup(asked->notify) : NULL;
    n->dir = !runs ? NULL : asked->dir ? strdup(asked->dir) : get_current_dir_name();
    if (runs && !asked->dir && !n->dir)
        return client_error(error, ELMER_USAGE,
                            "notify: the current directory, where it would run, cannot be found: %s", strerror(errno));
    if ((runs && !(n->command && n->dir)) || !copy_environment(elmer, asked->environment, n))
        return client_error(error, ELMER_FAILED, "out of memory");
    if (n->mail.begin)
        n->steps[n->count++] = AFTER_START;
    if (n->mail.end || runs) /* which judges for itself whether there is mail */
        n->steps[n->count++] = AFTER_ANY;
    else if (n->mail.fail)
        n->steps[n->count++] = AFTER_FAIL;
    return ELMER_OK;
}

int client_notices_create(const struct elmer *elmer, const struct elmer_notices *asked, struct client_notices **notices,
                          struct elmer_error *error)
{
    struct client_notices *n = calloc(1, sizeof(*n));
    int result = n ? check(asked, n, error) : client_error(error, ELMER_FAILED, "out of memory");

    *notices = NULL;
    if (result == ELMER_OK)
        result = copy(elmer, asked, n, error);
    if (result == ELMER_OK && n->count > 0)
        *notices = n;
    else
        client_notices_destroy(n);
    return result;
}

void client_notices_destroy(struct client_notices *n)
{
    if (!n)
        return;
    for (size_t i = 0; n->environment && n->environment[i]; i++)
        free((char *)(uintptr_t)n->environment[i]);
    free(n->environment);
    client_made_fini(&n->made);
    free(n->command);
    free(n->dir);
    free(n);
}

/* ---- one behind the other ---- */

void client_notices_of(struct client_notices *n, uint64_t job)
{
    n->job = job;
}

const char *client_notices_missed(const struct client_notices *n)
{
    if (n->steps[n->next - 1] != AFTER_START)
        return "end";
    return n->next < n->count ? "begin and its end" : "begin";
}

static uint64_t mixed(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u; /* FNV-1a, with the end of the text */
    while (*text++);
    return hash;
}

static void set_token(struct client_notices *n, bool begin)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; n->words[i]; i++)
        hash = mixed(hash, n->words[i]);
    hash = mixed(hash, n->item);
    snprintf(n->token, sizeof(n->token), "notice-of-%" PRIu64 "-%s-%016" PRIx64, n->job, begin ? "begin" : "end", hash);
}

static void set_words(struct client_notices *n, bool begin)
{
    const char *mail = begin ? "begin" : n->mail.end ? "end" : n->mail.fail ? "fail" : NULL;
    size_t count = 0;

    n->words[count++] = ELMER_LIBEXECDIR "/elmer-notice";
    if (mail) {
        n->words[count++] = "--mail-at";
        n->words[count++] = mail;
    }
    if (!begin && n->command) {
        n->words[count++] = "--dir";
        n->words[count++] = n->dir;
        n->words[count++] = "--notify";
        n->words[count++] = n->command;
    }
    n->words[count] = NULL;
}

int client_notices_then(struct client_notices *n, struct client_call *call, int result)
{
    enum after_kind kind;
    const struct elmer_submission submission = {.nprocs = 1,
                                                .name = n->name,
                                                .dir = "/",
                                                .output = "/dev/null",
                                                .umask = -1,
                                                .token = n->token,
                                                .after = n->after,
                                                .command = n->words,
                                                .environment = n->environment,
                                                .requeue = true,
                                                .time_limit_ms = RUNS_MS,
                                                .notice = true};

    if (result != ELMER_OK || n->next == n->count)
        return result;
    kind = n->steps[n->next++];
    snprintf(n->name, sizeof(n->name), "notice-of-%" PRIu64, n->job);
    after_text(&(struct after){.kind = kind, .job = n->job}, n->item);
    n->after[0] = n->item;
    set_words(n, kind == AFTER_START);
    set_token(n, kind == AFTER_START);
    client_made_fini(&n->made);
    n->made = (struct client_made){.dir = NULL};
    *call->request = (struct wire_message){.type = WIRE_submit, .memory = call->request->memory};
    result = client_fill(&call->request->u.submit, &submission, &n->made, call->error);
    if (result != ELMER_OK)
        return result;
    call->signs = true;
    call->is_signed = false;
    return CLIENT_ASK;
}

/* ---- of a job that is there ---- */

struct notify {
    struct client_notices *notices;
    const char **missed;
};

static void free_notify(void *data)
{
    struct notify *notify = data;

    client_notices_destroy(notify->notices);
    free(notify);
}

static int take_accepted(struct wire_message *answer, void *data)
{
    (void)data;
    return answer->type == WIRE_submitted ? 0 : -EPROTO;
}

static int then_next(struct client_call *call, int result)
{
    struct notify *notify = ((struct elmer_call *)call)->answer;

    result = client_notices_then(notify->notices, call, result);
    if (result != ELMER_OK && result != CLIENT_ASK && notify->missed)
        *notify->missed = client_notices_missed(notify->notices);
    return result;
}

/* *call: NULL where the result is another one than ELMER_OK. */
static int make(struct elmer *elmer, uint64_t job, const struct elmer_notices *asked, const char **missed,
                struct elmer_call **made, struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_submit};
    struct notify *notify = calloc(1, sizeof(*notify));
    struct client_call call = {
        .take = take_accepted, .then = then_next, .data = notify, .request = &request, .error = error};
    int result;

    *made = NULL;
    if (!notify)
        return client_error(error, ELMER_FAILED, "out of memory");
    notify->missed = missed;
    result = client_notices_create(elmer, asked, &notify->notices, error);
    if (result == ELMER_OK && !notify->notices)
        result = client_error(error, ELMER_USAGE, "there is nothing to tell: mail_at and notify are empty");
    if (result == ELMER_OK) {
        client_notices_of(notify->notices, job);
        result = client_notices_then(notify->notices, &call, ELMER_OK);
    }
    if (result != CLIENT_ASK) {
        free_notify(notify);
        return result;
    }
    *made = client_call_create(elmer, &request, &call, notify, free_notify);
    return *made ? ELMER_OK : client_error(error, ELMER_FAILED, "out of memory");
}

int client_notify(struct elmer *elmer, uint64_t job, const struct elmer_notices *asked, int timeout_ms,
                  const char **missed, struct elmer_error *error)
{
    struct elmer_call *call;
    int result;

    if (missed)
        *missed = "begin and its end";
    result = make(elmer, job, asked, missed, &call, error);
    return result == ELMER_OK ? client_call_run(call, timeout_ms, NULL, error) : result;
}

int elmer_notify(struct elmer *elmer, uint64_t job, const struct elmer_notices *notices, int timeout_ms,
                 struct elmer_error *error)
{
    return client_notify(elmer, job, notices, timeout_ms, NULL, error);
}

int elmer_notify_begin(struct elmer *elmer, uint64_t job, const struct elmer_notices *notices, int timeout_ms,
                       struct elmer_call **call, struct elmer_error *error)
{
    int result = make(elmer, job, notices, NULL, call, error);

    return result == ELMER_OK ? client_call_begin(*call, timeout_ms, call, error) : result;
}
