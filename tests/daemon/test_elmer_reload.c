/* test_elmer_reload.c - SIGHUP: the configuration is another one while jobs run. What is wrong changes nothing; levels
 * and hosts change, and who runs notices nothing of it, also over a restart. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/daemon/elmer_lab.h"
#include "tests/daemon/elmer_steps.h"

/* Nobody's silence is judged here. */
#define CONF(levels, hosts)                                                                                            \
    "name = ws1\nresend = 1s\nheartbeat = 20s\nhost_timeout = 60s\nsettle = 0\nallocator = v1\nadmin_hosts = ws1\n"    \
    "levels = " levels "\nhosts = " hosts "\n"

static void reload(struct lab *lab, const char *config)
{
    snprintf(lab->config, sizeof(lab->config), "%s", config);
    lab_configure(lab);
    assert_int_equal(kill(lab->pid, SIGHUP), 0);
}

/* The state of a host, or "": it is none. */
static void state_of(struct fake *asker, const char *name, char *state, size_t size)
{
    struct wire_message query = {.type = WIRE_query_hosts}, answer;
    host_relay(asker, 1, 0, "root", &query);
    host_expect_relayed(asker, 1, WIRE_hosts, &answer);
    state[0] = 0;
    for (size_t i = 0; i < answer.u.hosts.hosts.count; i++)
        if (strcmp(answer.u.hosts.hosts.items[i].host, name) == 0)
            snprintf(state, size, "%s", answer.u.hosts.hosts.items[i].state);
    wire_message_fini(&answer);
}

/* Signals are heard in elmer's loop, as what is asked: after some turns at the latest. */
static void await_state(struct fake *asker, const char *name, const char *wanted)
{
    char state[20] = "?";
    for (int i = 0; i < 2000 && strcmp(state, wanted) != 0; i++)
        state_of(asker, name, state, sizeof(state));
    assert_string_equal(state, wanted);
}

/* How many rows of eadmin log say so; all are "(reload)"'s that say anything of it. */
static int count_kept(struct fake *asker, const char *what, const char *host, const char *text)
{
    struct wire_message query = {.type = WIRE_query_log}, answer;
    int count = 0;
    host_relay(asker, 1, 0, "root", &query);
    host_expect_relayed(asker, 1, WIRE_log, &answer);
    for (size_t i = 0; i < answer.u.log.decisions.count; i++) {
        const struct wire_decision_view *d = &answer.u.log.decisions.items[i];
        if (strcmp(d->what, what) != 0 || strcmp(d->host, host) != 0 || strcmp(d->text, text) != 0)
            continue;
        assert_string_equal(d->by, "(reload)");
        assert_string_equal(d->from, "ws1");
        assert_int_equal(d->uid, UINT32_MAX);
        count++;
    }
    wire_message_fini(&answer);
    return count;
}

/* It is on disk soon. */
static void await_kept(struct fake *asker, const char *what, const char *host, const char *text)
{
    int count = 0;
    for (int i = 0; i < 2000 && count == 0; i++)
        count = count_kept(asker, what, host, text);
    assert_int_equal(count, 1);
}

static uint64_t submit(struct fake *host, const char *token, const char *on)
{
    struct wire_message submission = lab_submission(token, 1);
    submission.u.submit.hosts = (struct wire_strs){&on, on ? 1 : 0};
    return lab_submit(host, &submission, NULL, 0);
}

static void is_queued(struct fake *host, uint64_t job)
{
    struct wire_message jobs;
    lab_query(host, job, &jobs);
    assert_string_equal(only(&jobs)->state, "queued");
    wire_message_fini(&jobs);
}

static void end_on(struct fake *host, uint64_t job)
{
    struct wire_message end;
    host_exited(host, job, 1, 0, "command", 0, 0);
    fake_expect(host, WIRE_end, &end);
    assert_int_equal(end.u.end.job, job);
    wire_message_fini(&end);
    host_empty(host, job, 1, 0.1);
}

static void test_levels(void **state)
{
    struct lab lab;
    struct fake ws1;
    (void)state;
    lab_create(&lab, CONF("1", "ws1"));
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    submit(&ws1, "a", NULL);
    run_job(&ws1, &ws1, 1, 1);
    submit(&ws1, "b", NULL);
    is_queued(&ws1, 2);
    reload(&lab, CONF("99", "ws1")); /* wrong: nothing changes */
    fake_expect_none(&ws1, WIRE_open, 300);
    reload(&lab, CONF("2", "ws1"));
    run_job(&ws1, &ws1, 2, 1); /* at once */
    await_kept(&ws1, "configured", "", "levels = 2, was 1");
    reload(&lab, CONF("1", "ws1"));
    fake_expect_none(&ws1, WIRE_end, 300); /* who is deeper stays */
    submit(&ws1, "c", NULL);
    end_on(&ws1, 1);
    fake_expect_none(&ws1, WIRE_open, 300);
    is_queued(&ws1, 3);
    end_on(&ws1, 2);
    run_job(&ws1, &ws1, 3, 1);
    fake_close(&ws1);
    lab_destroy(&lab);
}

static void test_hosts(void **state)
{
    struct lab lab;
    struct fake ws1, ws2, ws3;
    struct wire_message submission = lab_submission("no", 1), error;
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.generation = 9, .holdings = &holding, .nholdings = 1};
    const char *on = "ws2";
    (void)state;
    lab_create(&lab, CONF("2", "ws1 ws2"));
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    submit(&ws1, "a", "ws2");
    run_job(&ws2, &ws1, 1, 1);

    /* ws2 goes, and ws3 comes */
    reload(&lab, CONF("2", "ws1 ws3"));
    await_state(&ws1, "ws2", "leaving");
    await_state(&ws1, "ws3", "never-seen");
    await_kept(&ws1, "configured", "", "hosts = ws1 ws3, was ws1 ws2");
    await_kept(&ws1, "taken-out", "ws2", "of the configuration: removed when its jobs have ended");
    await_kept(&ws1, "added", "ws3", "");
    host_open(&ws3, &lab, "ws3", 1, NULL);
    submit(&ws1, "b", "ws3");
    run_job(&ws3, &ws1, 2, 1);
    fake_expect_none(&ws2, WIRE_end, 300);
    submission.u.submit.hosts = (struct wire_strs){&on, 1};
    refused(&ws1, 2001, &submission, WIRE_CODE_REFUSED, "there is no host \"ws2\"");

    /* elmer is killed: it knows of ws2 from its job only */
    lab_stop(&lab, SIGKILL);
    fake_close(&ws1);
    fake_close(&ws2);
    fake_close(&ws3);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, &holds);
    await_state(&ws1, "ws2", "leaving");
    end_on(&ws2, 1);
    fake_expect(&ws2, WIRE_error, &error);
    assert_non_null(strstr(error.u.error.text, "taken out of the configuration"));
    wire_message_fini(&error);
    assert_true(fake_closed(&ws2));
    fake_close(&ws2);
    await_state(&ws1, "ws2", "");

    /* and back */
    reload(&lab, CONF("2", "ws1 ws2 ws3"));
    await_state(&ws1, "ws2", "down");
    host_open(&ws2, &lab, "ws2", 1, NULL);
    submit(&ws1, "c", "ws2");
    run_job(&ws2, &ws1, 3, 1);
    fake_close(&ws1);
    fake_close(&ws2);
    lab_destroy(&lab);
}

/* Again and again one is added and another, idle one removed by the same reload: what is known of hosts moves then. */
static void test_one_for_another(void **state)
{
    struct lab lab;
    struct fake ws1;
    (void)state;
    lab_create(&lab, CONF("1", "ws1 ws2"));
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 2, NULL);
    for (int k = 3; k < 40; k++) {
        char config[sizeof(lab.config)], name[20], before[20];
        snprintf(config, sizeof(config), CONF("1", "ws1 ws%d"), k);
        snprintf(name, sizeof(name), "ws%d", k);
        snprintf(before, sizeof(before), "ws%d", k - 1);
        reload(&lab, config);
        await_state(&ws1, name, "never-seen");
        await_state(&ws1, before, "");
    }
    fake_close(&ws1);
    lab_destroy(&lab);
}

/* An address of a host that a release before took, and this one does not: elmer begins, and says so. */
static void test_faulty_address(void **state)
{
    char out[4096];
    struct lab lab;
    struct fake ws1;
    (void)state;
    lab_create(&lab, CONF("1", "ws1") "[host ws1]\naddress = ws1.example.org\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    reload(&lab, CONF("1", "ws1 ws2") "[host ws1]\naddress = 2001:db8::1\n");
    await_state(&ws1, "ws2", "never-seen");
    fake_close(&ws1);
    lab_stop(&lab, SIGTERM);
    snprintf(lab.config, sizeof(lab.config), "%s", "name = ws1\nlevels = 99\n[host ws1]\naddress = ws1.example.org\n");
    lab_configure(&lab);
    assert_int_equal(lab_run(&lab, out, sizeof(out)), 2); /* for the levels */
    assert_non_null(strstr(out, "elmer does without a value of its configuration: "));
    assert_non_null(strstr(out, "address = ws1.example.org: no numeric IPv4 address"));
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_one_for_another),
        cmocka_unit_test(test_faulty_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
