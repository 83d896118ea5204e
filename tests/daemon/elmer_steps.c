/* elmer_steps.c - see elmer_steps.h. */
#include "config.h"

#include <signal.h>
#include <string.h>

#include "tests/daemon/elmer_steps.h"

const struct wire_job_view *only(const struct wire_message *jobs)
{
    return &jobs->u.jobs.jobs.items[0];
}

void open_job(struct fake *host, uint64_t job, uint32_t attempt, struct wire_message *start)
{
    struct wire_message order, open;
    fake_expect(host, WIRE_open, &open);
    while (open.u.open.job < job) { /* an earlier one, sent again: the machine was slow */
        wire_message_fini(&open);
        fake_expect(host, WIRE_open, &open);
    }
    assert_int_equal(open.u.open.job, job);
    assert_int_equal(open.u.open.attempt, attempt);
    fake_expect(host, WIRE_order, &order);
    while (order.u.order.generation < open.u.open.generation) { /* an earlier one */
        wire_message_fini(&order);
        fake_expect(host, WIRE_order, &order);
    }
    host_ordered(host, order.u.order.generation);
    host_event(host, WIRE_opened, job, attempt);
    wire_message_fini(&order);
    wire_message_fini(&open);
    if (start)
        fake_expect(host, WIRE_start, start);
}

void run_job(struct fake *host, struct fake *asker, uint64_t job, uint32_t attempt)
{
    struct wire_message start, jobs;
    open_job(host, job, attempt, &start);
    wire_message_fini(&start);
    host_started(host, job, attempt, 0);
    lab_query_until(asker, job, "running", &jobs);
    wire_message_fini(&jobs);
}

void end_job(struct fake *host, uint64_t job, uint32_t attempt, double cpu_seconds)
{
    struct wire_message end, forget;
    fake_expect(host, WIRE_end, &end);
    assert_int_equal(end.u.end.job, job);
    assert_int_equal(end.u.end.grace_ms, 500);
    host_empty(host, job, attempt, cpu_seconds);
    fake_expect(host, WIRE_forget, &forget);
    assert_int_equal(forget.u.forget.job, job);
    wire_message_fini(&end);
    wire_message_fini(&forget);
}

void finish_job(struct fake *host, uint64_t job, int status)
{
    run_job(host, host, job, 1);
    host_exited(host, job, 1, 0, "command", status, 0);
    end_job(host, job, 1, 0.5);
}

void kill_and_begin(struct lab *lab, struct fake *host, const struct host_options *options)
{
    fake_close(host);
    lab_stop(lab, SIGKILL);
    lab_start(lab);
    host_open(host, lab, "ws1", 1, options);
}

void query_as(struct fake *host, uint32_t uid, const char *user, uint64_t job, struct wire_message *answer)
{
    uint64_t ids[] = {job};
    struct wire_message query = {.type = WIRE_query, .u.query = {.running = true, .queued = true, .jobs = {ids, 1}}};
    host_relay(host, 100 + uid, uid, user, &query);
    host_expect_relayed(host, 100 + uid, WIRE_jobs, answer);
    assert_int_equal(answer->u.jobs.jobs.count, 1);
}

void refused(struct fake *host, uint32_t uid, struct wire_message *submission, const char *code, const char *words)
{
    struct wire_message answer;
    host_relay(host, 7, uid, uid ? "alice" : "root", submission);
    host_expect_relayed(host, 7, WIRE_error, &answer);
    assert_int_equal(answer.id, submission->id);
    assert_string_equal(answer.u.error.code, code);
    if (!strstr(answer.u.error.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", answer.u.error.text, words);
    wire_message_fini(&answer);
}
