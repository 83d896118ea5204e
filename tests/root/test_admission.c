/* test_admission.c - who may run jobs here: real supervisors, the user nobody, and a script in place of the program
 * that asks PAM. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/config.h"
#include "tests/root/bed.h"
#include "tests/unit/scratch.h"

static char account[100];

/* In the directory of the rig, which is there when the root half starts. */
static void deny_groups(struct rsd_config *config)
{
    snprintf(config->deny_groups, sizeof(config->deny_groups), "no-such-group nogroup");
}

static void deny_users(struct rsd_config *config)
{
    config->deny_groups[0] = 0;
    snprintf(config->deny_users, sizeof(config->deny_users), "no-such-user nobody");
}

static void with_account(struct rsd_config *config)
{
    snprintf(config->account, sizeof(config->account), "%s", account);
}

static void up(void (*configure)(struct rsd_config *config))
{
    snprintf(account, sizeof(account), "/tmp/elmer-account-%d", (int)getpid());
    rig_configure = configure;
    bed_up(NULL);
}

static int down(void **state)
{
    unlink(account);
    return bed_down(state);
}

static void ask_open(uint64_t job, const char *from)
{
    struct wire_message message = {.type = WIRE_open};
    message.u.open.job = job;
    message.u.open.attempt = 1;
    message.u.open.uid = 65534;
    message.u.open.user = "nobody";
    message.u.open.cpus = (struct wire_uints){&rig.cpu, 1};
    message.u.open.submit_host = from;
    rig_send(&rig, &message);
}

static void opened(uint64_t job, const char *from)
{
    struct wire_message answer;
    ask_open(job, from);
    rig_expect(&rig, WIRE_opened, 5000, &answer);
    assert_int_equal(answer.u.opened.job, job);
    wire_message_fini(&answer);
}

static void refused(uint64_t job, const char *from, const char *text)
{
    struct wire_message answer;
    ask_open(job, from);
    rig_expect(&rig, WIRE_open_failed, 5000, &answer);
    assert_int_equal(answer.u.open_failed.job, job);
    assert_string_equal(answer.u.open_failed.text, text);
    wire_message_fini(&answer);
    rig_end(&rig, job, 0);
    rig_empty(&rig, job, 5000);
}

/* Also who does not say where it was submitted means somewhere else. */
static void refused_from_elsewhere(void (*configure)(struct rsd_config *config), const char *text)
{
    up(configure);
    refused(1, "elsewhere", text);
    refused(2, "", text);
    refused(3, "testhost2", text);
    opened(4, "testhost");
    rig_end(&rig, 4, 0);
    rig_empty(&rig, 4, 5000);
}

static void test_groups(void **state)
{
    (void)state;
    refused_from_elsewhere(deny_groups, "jobs of group nogroup from other hosts are refused (deny_groups in rsd.conf): "
                                        "submit as a user without that group, or on the host that is to run them");
}

static void test_users(void **state)
{
    (void)state;
    refused_from_elsewhere(deny_users, "jobs of user nobody from other hosts are refused (deny_users in rsd.conf): "
                                       "submit on the host that is to run them, or ask its administrator");
}

/* ---- PAM ---- */

/* It notes each time that it is asked: as the user, in a directory of his. */
static void answers(const char *how)
{
    FILE *file;
    unlink(account); /* what runs keeps what it is */
    file = fopen(account, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\necho $1 >>%s/work/asked\n%s\n", rig.dir, how);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(account, 0755), 0);
}

static int asked(void)
{
    char path[100], line[100];
    int lines = 0;
    FILE *file;
    snprintf(path, sizeof(path), "%s/work/asked", rig.dir);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file)) {
        assert_string_equal(line, "nobody\n");
        lines++;
    }
    if (file)
        fclose(file);
    return lines;
}

static void test_who_may_is_asked_about_once(void **state)
{
    (void)state;
    up(with_account);
    answers("echo yes");
    opened(1, "elsewhere");
    answers("echo no Permission denied");
    opened(2, "testhost");
    assert_int_equal(asked(), 1);
    rig_root_kill(&rig, SIGKILL);
    rig_root_start(&rig); /* which knows nothing of it */
    refused(3, "testhost", "the account of nobody may not be used here: Permission denied (PAM, service elmer)");
    assert_int_equal(asked(), 2);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    rig_end(&rig, 2, 0);
    rig_empty(&rig, 2, 5000);
}

static void test_refusals_are_kept_but_no_failures(void **state)
{
    static const char text[] = "the account of nobody may not be used here: User account has expired (PAM, service "
                               "elmer)";
    (void)state;
    up(with_account);
    answers("echo System error");
    refused(1, "testhost",
            "whether the account of nobody may be used cannot be found out: System error (PAM, service elmer)");
    answers("echo no User account has expired");
    refused(2, "testhost", text);
    answers("echo yes");
    refused(3, "elsewhere", text);
    assert_int_equal(asked(), 2);
}

/* While it takes its time the root half does other things. */
static void test_slow_answer(void **state)
{
    struct wire_message message = {.type = WIRE_ping, .id = 77};
    char gate[100];
    (void)state;
    up(with_account);
    snprintf(gate, sizeof(gate), "%s/work/gate", rig.dir);
    assert_int_equal(mkfifo(gate, 0600), 0);
    assert_int_equal(chown(gate, NOBODY, NOBODY), 0);
    char how[200];
    snprintf(how, sizeof(how), "read go <%s; echo yes", gate);
    answers(how);
    ask_open(1, "testhost");
    rig_until(asked() == 1);
    rig_send(&rig, &message);
    rig_expect(&rig, WIRE_pong, 5000, &message);
    assert_int_equal(message.id, 77);
    wire_message_fini(&message);
    FILE *file = fopen(gate, "w");
    assert_non_null(file);
    fputs("go\n", file);
    fclose(file);
    rig_expect(&rig, WIRE_opened, 5000, &message);
    wire_message_fini(&message);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* The job is ended while PAM hangs, with something that a module has put into a session of its own. */
static void test_no_answer(void **state)
{
    char how[300];
    (void)state;
    up(with_account);
    snprintf(how, sizeof(how),
             "setsid sh -c 'echo $$ >%s/work/other; exec sleep 300' & echo $$ >%s/work/self; sleep 300", rig.dir,
             rig.dir);
    answers(how);
    ask_open(1, "testhost");
    rig_until(scratch_pid(rig.dir, "work/self") > 0 && scratch_pid(rig.dir, "work/other") > 0);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 10000);
    rig_until(kill(scratch_pid(rig.dir, "work/self"), 0) < 0 && kill(scratch_pid(rig.dir, "work/other"), 0) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_groups, down),
        cmocka_unit_test_teardown(test_users, down),
        cmocka_unit_test_teardown(test_who_may_is_asked_about_once, down),
        cmocka_unit_test_teardown(test_refusals_are_kept_but_no_failures, down),
        cmocka_unit_test_teardown(test_slow_answer, down),
        cmocka_unit_test_teardown(test_no_answer, down),
    };
    int possible;
    bed_bound_self(5, 300);
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
