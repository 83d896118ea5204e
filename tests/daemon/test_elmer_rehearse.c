/* test_elmer_rehearse.c - esubmit --dry-run: what elmer says that it would do is what it then does, and nothing of it
 * stays. */
#include "config.h"

#include "tests/daemon/elmer_lab.h"

#include <poll.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/daemon/elmer_steps.h"

#define TWO "name = ws1\nhosts = ws1 ws2\nheartbeat = 1s\nhost_timeout = 3s\nallocator = v1\nlevels = 2\n"

struct pair {
    struct lab lab;
    struct fake host, other;
};

static void begin(struct pair *p, const char *config)
{
    lab_create(&p->lab, config);
    lab_start(&p->lab);
    host_open(&p->host, &p->lab, "ws1", 2, NULL);
    host_open(&p->other, &p->lab, "ws2", 1, NULL);
}

static void end(struct pair *p)
{
    fake_close(&p->host);
    fake_close(&p->other);
    lab_destroy(&p->lab);
}

/* It is asked again where elmer has just tried another one, and took long for it on a busy machine. */
static void ask_for(struct pair *p, struct wire_message *submission, enum wire_type type, struct wire_message *answer)
{
    int64_t deadline = mono_ms(mono_now()) + LAB_WAIT_MS;

    submission->type = WIRE_rehearse;
    for (;;) {
        host_relay(&p->host, 2001, 2001, "alice", submission);
        host_expect_answer(&p->host, 2001, WIRE_rehearsed, answer);
        if (answer->type == type && (type != WIRE_error || strcmp(answer->u.error.code, WIRE_CODE_UNAVAILABLE) != 0))
            return;
        if (answer->type != WIRE_error || mono_ms(mono_now()) > deadline)
            fail_msg("%s", answer->type == WIRE_error ? answer->u.error.text : "it is not refused");
        assert_string_equal(answer->u.error.code, WIRE_CODE_UNAVAILABLE);
        wire_message_fini(answer);
        poll(NULL, 0, 1);
    }
}

static void ask(struct pair *p, uint64_t nprocs, enum wire_type type, struct wire_message *answer)
{
    struct wire_message submission = lab_submission("dry", nprocs);

    ask_for(p, &submission, type, answer);
}

/* each: once, in the order of ranks. */
static void same_hosts(const struct wire_strs *each, const struct wire_strs *ranks)
{
    size_t at = 0;

    for (size_t i = 0; i < ranks->count; i++)
        if (i == 0 || strcmp(ranks->items[i], ranks->items[i - 1]) != 0) {
            assert_true(at < each->count);
            assert_string_equal(each->items[at++], ranks->items[i]);
        }
    assert_int_equal(at, each->count);
}

/* The same hosts and level as the submission that follows, whatever the seed is. */
static void test_as_it_comes(void **state)
{
    struct pair p;
    struct wire_message dry, answer, submission;

    (void)state;
    begin(&p, TWO);
    for (int i = 0; i < 3; i++) {
        char token[] = "t0";

        token[1] = (char)('0' + i);
        ask(&p, 2, WIRE_rehearsed, &dry);
        submission = lab_submission(token, 2);
        host_relay(&p.host, 2001, 2001, "alice", &submission);
        host_expect_relayed(&p.host, 2001, WIRE_submitted, &answer);
        assert_int_equal(answer.u.submitted.job, i + 1); /* no id was used up */
        assert_string_equal(answer.u.submitted.state, dry.u.rehearsed.state);
        assert_int_equal(answer.u.submitted.level, dry.u.rehearsed.level);
        assert_int_equal(answer.u.submitted.ahead, dry.u.rehearsed.ahead);
        same_hosts(&answer.u.submitted.hosts, &dry.u.rehearsed.hosts);
        wire_message_fini(&answer);
        wire_message_fini(&dry);
    }
    end(&p);
}

static void test_why(void **state)
{
    struct pair p;
    struct wire_message dry, jobs;
    struct wire_message submission = lab_submission("first", 3);
    uint64_t id = 3;
    struct wire_message query = {.type = WIRE_query, .u.query.jobs = {&id, 1}};

    (void)state;
    begin(&p, TWO "user_running = 2\n");
    lab_submit(&p.host, &submission, NULL, 0);
    ask(&p, 2, WIRE_rehearsed, &dry);
    assert_string_equal(dry.u.rehearsed.state, "starting");
    assert_int_equal(dry.u.rehearsed.level, 1);
    assert_int_equal(dry.u.rehearsed.hosts.count, 2);
    assert_int_equal(dry.u.rehearsed.above.count, 1);
    assert_int_equal(dry.u.rehearsed.above.items[0], 1);
    wire_message_fini(&dry);
    submission = lab_submission("second", 3);
    lab_submit(&p.host, &submission, NULL, 0);
    ask(&p, 1, WIRE_rehearsed, &dry);
    assert_string_equal(dry.u.rehearsed.state, "queued");
    assert_int_equal(dry.u.rehearsed.ahead, 0);
    assert_non_null(strstr(dry.u.rehearsed.reason, "user_running"));
    wire_message_fini(&dry);
    ask(&p, 4, WIRE_error, &dry);
    assert_non_null(strstr(dry.u.error.text, "4 processors are asked for"));
    wire_message_fini(&dry);
    host_relay(&p.host, 2001, 2001, "alice", &query);
    host_expect_relayed(&p.host, 2001, WIRE_jobs, &jobs);
    assert_int_equal(jobs.u.jobs.jobs.count, 0);
    wire_message_fini(&jobs);
    end(&p);
}

/* Behind others: how many, and what the first of them waits for. */
static void test_behind(void **state)
{
    struct pair p;
    struct wire_message dry;

    (void)state;
    begin(&p, TWO);
    for (int i = 0; i < 4; i++) {
        char token[] = "t0";
        struct wire_message submission = lab_submission(token, 3);

        token[1] = (char)('0' + i);
        lab_submit(&p.host, &submission, NULL, 0);
    }
    ask(&p, 1, WIRE_rehearsed, &dry);
    assert_string_equal(dry.u.rehearsed.state, "queued");
    assert_int_equal(dry.u.rehearsed.ahead, 2);
    assert_int_equal(dry.u.rehearsed.first, 3);
    assert_non_null(strstr(dry.u.rehearsed.first_reason, "waits for 3 processors: of 3 that it may use, 3 full"));
    wire_message_fini(&dry);
    end(&p);
}

/* What it waits for counts as in a submission. */
static void test_after(void **state)
{
    static const char *items[] = {"ok:1"}, *later[] = {"ok:3"};
    struct pair p;
    struct wire_message dry, submission = lab_submission("first", 3), behind = lab_submission("dry", 1), cancel;

    (void)state;
    begin(&p, TWO);
    lab_submit(&p.host, &submission, NULL, 0);
    submission = lab_submission("second", 3);
    lab_submit(&p.host, &submission, NULL, 0);
    submission = lab_submission("third", 3);
    lab_submit(&p.host, &submission, NULL, 0);
    behind.u.submit.after = (struct wire_strs){items, 1};
    ask_for(&p, &behind, WIRE_rehearsed, &dry);
    assert_string_equal(dry.u.rehearsed.state, "queued");
    assert_string_equal(dry.u.rehearsed.reason, "waits for 1 to end well");
    wire_message_fini(&dry);
    cancel = (struct wire_message){.type = WIRE_cancel, .u.cancel.job = 3};
    host_relay(&p.host, 2001, 2001, "alice", &cancel);
    host_expect_relayed(&p.host, 2001, WIRE_done, &dry);
    wire_message_fini(&dry);
    behind.u.submit.after.items = later;
    ask_for(&p, &behind, WIRE_rehearsed, &dry); /* elmer asks the store, and then tries it still */
    assert_string_equal(dry.u.rehearsed.state, "cancelled");
    assert_string_equal(dry.u.rehearsed.reason, "it can never run: job 3 did not end well");
    wire_message_fini(&dry);
    submission = lab_submission("fourth", 1);
    assert_int_equal(lab_submit(&p.host, &submission, NULL, 0), 4);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_it_comes),
        cmocka_unit_test(test_why),
        cmocka_unit_test(test_behind),
        cmocka_unit_test(test_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
