/* test_notices.c - who asks to be told in a submission, or of a job that is there, and an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libelmer/elmer.h"
#include "tests/unit/libelmer/client_bed.h"
#include "tests/unit/peer.h"

enum { CALL_MS = 60000 };

static const char *const command[] = {"true", NULL};

static int begin(void **state)
{
    setenv("ELMER_SENDMAIL", "/bin/sh", 1);
    return client_bed_setup(state);
}

static struct elmer_call *submit(const char *mail_at, const char *notify, int timeout_ms)
{
    char path[] = "PATH=/bin", script[] = "ELMER_SCRIPT=text", mail[] = "ELMER_SENDMAIL=/other";
    const char *const environment[] = {path, script, mail, NULL};
    const struct elmer_submission job = {.nprocs = 1,
                                         .command = command,
                                         .dir = "/d",
                                         .umask = 022,
                                         .environment = environment,
                                         .mail_at = mail_at,
                                         .notify = notify};
    struct elmer_call *call;
    struct elmer_error error;
    if (elmer_submit_begin(elmer, &job, timeout_ms, &call, &error) != ELMER_OK)
        fail_msg("%s", error.text);
    memset(path, 'x', strlen(path)); /* the arguments may go */
    return call;
}

static void answer(uint64_t id, uint64_t job)
{
    struct wire_message m = {
        .type = WIRE_submitted, .id = id, .u.submitted = {.job = job, .state = "queued", .reason = ""}};
    peer_send(&channel, &m);
    client_bed_step();
}

static void refuse(uint64_t id)
{
    struct wire_message m = {.type = WIRE_error, .id = id, .u.error = {.code = "refused", .text = "too many"}};
    peer_send(&channel, &m);
    client_bed_step();
}

static void connect_first(void)
{
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    client_bed_step();
}

static void accept_job(void)
{
    struct wire_message m;
    connect_first();
    m = peer_expect(&channel, WIRE_submit);
    assert_false(m.u.submit.notice);
    answer(m.id, 42);
    wire_message_fini(&m);
}

static bool has(const struct wire_strs *list, const char *item)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], item) == 0)
            return true;
    return false;
}

/* words: all but the first, with a blank between. */
static uint64_t expect_notice(const char *after, const char *words, char token[65])
{
    struct wire_message m = peer_expect(&channel, WIRE_submit);
    const struct wire_submit *s = &m.u.submit;
    char text[400] = "";
    size_t used = 0;
    uint64_t id = m.id;
    assert_true(s->notice && s->requeue);
    assert_int_equal(s->nprocs, 1);
    assert_int_equal(s->time_limit_ms, 60000);
    assert_int_equal(s->after.count, 1);
    assert_string_equal(s->after.items[0], after);
    assert_string_equal(s->name, "notice-of-42");
    assert_string_equal(s->dir, "/");
    assert_string_equal(s->output, "/dev/null");
    assert_true(has(&s->environment, "PATH=/bin") && has(&s->environment, "ELMER_SENDMAIL=/bin/sh"));
    assert_int_equal(s->environment.count, 3); /* and ELMER_SOCKET */
    assert_non_null(strstr(s->command.items[0], "/elmer-notice"));
    for (size_t i = 1; i < s->command.count; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i > 1 ? " " : "", s->command.items[i]);
    assert_string_equal(text, words);
    assert_in_range(strlen(s->token), 20, 64);
    if (token)
        snprintf(token, 65, "%s", s->token);
    wire_message_fini(&m);
    return id;
}

static struct elmer_submitted *submitted_of(struct elmer_call *call)
{
    struct elmer_submitted *submitted;
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    submitted = elmer_call_submitted(call);
    assert_int_equal(submitted->job, 42);
    elmer_call_free(call);
    return submitted;
}

static void expect_told(struct elmer_call *call)
{
    struct elmer_submitted *submitted = submitted_of(call);
    assert_string_equal(submitted->untold, "");
    elmer_submitted_free(submitted);
}

/* The call has ended when both are accepted. */
static void both_behind_the_job(void **state)
{
    char *here = get_current_dir_name(), words[300];
    struct elmer_call *call = submit("end,begin", "echo 'a b'", CALL_MS);
    (void)state;
    snprintf(words, sizeof(words), "--mail-at end --dir %s --notify echo 'a b'", here);
    accept_job();
    answer(expect_notice("start:42", "--mail-at begin", NULL), 43);
    assert_null(elmer_next_ended(elmer));
    answer(expect_notice("any:42", words, NULL), 44);
    expect_told(call);
    free(here);
}

static void only_failures(void **state)
{
    struct elmer_call *call = submit("fail", NULL, CALL_MS);
    (void)state;
    accept_job();
    answer(expect_notice("fail:42", "--mail-at fail", NULL), 43);
    expect_told(call);
}

static void nobody_is_told(void **state)
{
    struct elmer_call *call = submit("", "", CALL_MS);
    (void)state;
    accept_job();
    expect_told(call);
}

/* The job is there: the answer says what it lacks. */
static void a_notice_is_refused(void **state)
{
    static const char *const mail[] = {"end", "begin", "begin,fail"};
    static const char *const words[] = {"end", "begin", "begin and its end"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct elmer_call *call = submit(mail[i], NULL, CALL_MS);
        struct elmer_submitted *submitted;
        char said[200];
        if (i == 0)
            accept_job();
        else {
            struct wire_message m = peer_expect(&channel, WIRE_submit);
            answer(m.id, 42);
            wire_message_fini(&m);
        }
        refuse(expect_notice(i ? "start:42" : "any:42", i ? "--mail-at begin" : "--mail-at end", NULL));
        submitted = submitted_of(call);
        snprintf(said, sizeof(said), "job 42 is submitted and goes on, but nobody will be told of its %s: too many",
                 words[i]);
        assert_string_equal(submitted->untold, said);
        elmer_submitted_free(submitted);
    }
}

/* ... also when its time is over before its notices are accepted. */
static void no_time_is_left(void **state)
{
    struct elmer_call *call = submit("end", NULL, 1000);
    struct elmer_submitted *submitted;
    (void)state;
    accept_job();
    expect_notice("any:42", "--mail-at end", NULL);
    while (elmer_call_result(call, NULL) < 0)
        client_bed_step();
    submitted = submitted_of(call);
    assert_non_null(strstr(submitted->untold, "nobody will be told of its end: "));
    elmer_submitted_free(submitted);
}

/* A job that is refused has none. */
static void the_job_is_refused(void **state)
{
    struct elmer_call *call = submit("end", NULL, CALL_MS);
    struct elmer_error error;
    struct wire_message m;
    (void)state;
    connect_first();
    m = peer_expect(&channel, WIRE_submit);
    refuse(m.id);
    wire_message_fini(&m);
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, &error), ELMER_REFUSED);
    assert_string_equal(error.text, "too many");
    assert_null(elmer_call_submitted(call));
    elmer_call_free(call);
}

static void given_up_between_them(void **state)
{
    struct elmer_call *call = submit("begin,end", NULL, CALL_MS);
    (void)state;
    accept_job();
    expect_notice("start:42", "--mail-at begin", NULL);
    elmer_call_free(call);
}

/* Each is signed by itself: the ticket is for what it runs. */
static void each_has_its_ticket(void **state)
{
    static const char *const tickets[] = {"aa", "bb", "cc"};
    int listening = client_bed_desk();
    struct elmer_call *call = submit("begin,end", NULL, CALL_MS);
    struct channel desk;
    (void)state;
    assert_int_equal(channel_init(&desk, peer_accept_fd(listening), WIRE_FROM_CLIENT, 1 << 20), 0);
    desk.minor = WIRE_TICKET_MINOR;
    for (size_t i = 0; i < 3; i++) {
        struct wire_message asked = peer_expect(&desk, WIRE_submit), m;
        struct wire_message ticket = {.type = WIRE_ticket, .id = asked.id, .u.ticket.ticket = tickets[i]};
        assert_string_equal(asked.u.submit.name, i ? "notice-of-42" : "true");
        peer_send(&desk, &ticket);
        wire_message_fini(&asked);
        if (i == 0)
            connect_first();
        else
            client_bed_step();
        m = peer_expect(&channel, WIRE_submit);
        assert_string_equal(m.u.submit.ticket, tickets[i]);
        assert_int_equal(m.u.submit.notice, i > 0);
        answer(m.id, 42 + i);
        wire_message_fini(&m);
    }
    expect_told(call);
    channel_fini(&desk);
    close(listening);
}

/* ---- of a job that is there ---- */

static struct elmer_call *notify(const char *mail_at, const char *line, const char *dir)
{
    static const char *const environment[] = {"PATH=/bin", NULL};
    const struct elmer_notices notices = {.mail_at = mail_at, .notify = line, .dir = dir, .environment = environment};
    struct elmer_call *call;
    struct elmer_error error;
    if (elmer_notify_begin(elmer, 42, &notices, CALL_MS, &call, &error) != ELMER_OK)
        fail_msg("%s", error.text);
    return call;
}

static void ended(struct elmer_call *call, int result, const char *text)
{
    struct elmer_error error = {{0}};
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, &error), result);
    assert_string_equal(error.text, text);
    elmer_call_free(call);
}

/* The same notices have the same tokens, so that they are made once; others have others. */
static void asked_again(void **state)
{
    struct elmer_call *call = notify("begin", "x", "/there");
    char first[65], second[65], other[65];
    (void)state;
    connect_first();
    answer(expect_notice("start:42", "--mail-at begin", first), 43);
    answer(expect_notice("any:42", "--dir /there --notify x", second), 44);
    ended(call, ELMER_OK, "");
    assert_string_not_equal(first, second);
    call = notify("begin", "y", "/there");
    answer(expect_notice("start:42", "--mail-at begin", other), 43);
    assert_string_equal(first, other);
    refuse(expect_notice("any:42", "--dir /there --notify y", other));
    ended(call, ELMER_REFUSED, "too many");
    assert_string_not_equal(second, other);
}

static void refused_here(void **state)
{
    static const struct {
        struct elmer_notices notices;
        const char *words;
    } bad[] = {{{.mail_at = "start"}, "mail_at: 'start' is none of begin, end, fail"},
               {{.mail_at = ""}, "there is nothing to tell"},
               {{.notify = "a\nb"}, "notify: want a line of shell, of at most 1000 bytes"},
               {{.notify = "x", .dir = "there"}, "not an absolute path"}};
    const struct elmer_submission job = {.nprocs = 1, .command = command, .mail_at = "at the end"};
    struct elmer_rehearsed *rehearsed;
    struct elmer_submitted *submitted;
    struct elmer_error error;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct elmer_call *call;
        assert_int_equal(elmer_notify(elmer, 42, &bad[i].notices, CALL_MS, &error), ELMER_USAGE);
        assert_int_equal(elmer_notify_begin(elmer, 42, &bad[i].notices, CALL_MS, &call, NULL), ELMER_USAGE);
        assert_null(call);
        if (!strstr(error.text, bad[i].words))
            fail_msg("%s", error.text);
    }
    assert_int_equal(elmer_submit(elmer, &job, CALL_MS, &submitted, &error), ELMER_USAGE);
    assert_non_null(strstr(error.text, "mail_at: 'at the end' is none of begin, end, fail"));
    assert_int_equal(elmer_rehearse(elmer, &job, CALL_MS, &rehearsed, &error), ELMER_USAGE);
    assert_non_null(strstr(error.text, "mail_at: 'at the end' is none of begin, end, fail"));
    setenv("ELMER_SENDMAIL", "/nowhere/sendmail", 1);
    assert_int_equal(elmer_notify(elmer, 42, &(struct elmer_notices){.mail_at = "end"}, CALL_MS, &error),
                     ELMER_REFUSED);
    assert_string_equal(error.text, "mail_at: ELMER_SENDMAIL=/nowhere/sendmail is no program that can be run");
}

int main(void)
{
#define IN_BED(name) cmocka_unit_test_setup_teardown(name, begin, client_bed_teardown)
    const struct CMUnitTest tests[] = {IN_BED(both_behind_the_job),   IN_BED(only_failures),
                                       IN_BED(nobody_is_told),        IN_BED(a_notice_is_refused),
                                       IN_BED(no_time_is_left),       IN_BED(the_job_is_refused),
                                       IN_BED(given_up_between_them), IN_BED(each_has_its_ticket),
                                       IN_BED(asked_again),           IN_BED(refused_here)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
