/* test_start.c - what a ticket lets hosts open and start: every other wish has a name. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/lib/ticket/submission.h"

/* ---- what is opened ---- */

static void a_job_is_opened_as_it_was_asked_for(void **state)
{
    struct cluster c;
    static struct ticket t;
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    assert_why(ticket_check_open(&t, 1000, "alice", false, 4, 0), TICKET_GOOD);
    assert_why(ticket_check_open(&t, 1001, "alice", false, 4, 0), TICKET_OTHER_USER);
    assert_why(ticket_check_open(&t, 1000, "carol", false, 4, 0), TICKET_OTHER_USER);
    assert_why(ticket_check_open(&t, 1000, "alice", true, 4, 0), TICKET_OTHER_LAUNCHER);
    assert_why(ticket_check_open(&t, 1000, "alice", false, 5, 0), TICKET_TOO_MANY_PROCESSORS);
    assert_why(ticket_check_open(&t, 1000, "alice", false, 4, 1), TICKET_OTHER_MEMORY);
}

/* One that asks for memory is another ticket than one that does not, which has the bytes that it always had. */
static void memory_is_part_of_it(void **state)
{
    struct cluster c;
    static struct ticket t, again;
    static char without[TICKET_TEXT_MAX + 1], text[TICKET_TEXT_MAX + 1];
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    ticket_encode(&t, without);
    t.memory_bytes = (uint64_t)4 << 30;
    assert_true(ticket_sign(&t, c.secret));
    ticket_encode(&t, text);
    assert_int_equal(strlen(text), strlen(without) + 16);
    assert_why(ticket_decode(text, &again), TICKET_GOOD);
    assert_true(again.memory_bytes == (uint64_t)4 << 30);
    assert_why(ticket_check_chain(&again, &c.trust), TICKET_GOOD);
    assert_why(ticket_check_open(&again, 1000, "alice", false, 4, (uint64_t)4 << 30), TICKET_GOOD);
    assert_why(ticket_check_open(&again, 1000, "alice", false, 4, (uint64_t)8 << 30), TICKET_OTHER_MEMORY);
    assert_why(ticket_check_open(&again, 1000, "alice", false, 4, 0), TICKET_OTHER_MEMORY);
    again.memory_bytes = 0; /* taken out on the way: the signature does not hold */
    assert_why(ticket_check_chain(&again, &c.trust), TICKET_FORGED);
}

/* ---- what is started ---- */

static void a_command_is_started_as_it_was_asked_for(void **state)
{
    struct cluster c;
    static struct ticket t;
    struct ticket_start start = start_of(false);
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    assert_why(ticket_check_start(&t, &start), TICKET_GOOD);
    t.each = false; /* then there is one process, */
    assert_why(ticket_check_start(&t, &start), TICKET_NO_SUCH_RANK);
    start.process = 0; /* with files of its own */
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_OUTPUT);
    start.output = start.errors = "s-12.0.out";
    assert_why(ticket_check_start(&t, &start), TICKET_GOOD);
}

static void another_argument_is_refused(void **state)
{
    static const char *const other[] = {"sim", "-n", "101"}, *const joined[] = {"sim", "-n100"};
    struct cluster c;
    static struct ticket t;
    struct ticket_start start = start_of(false);
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    start.argv = LIST(other);
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_COMMAND);
    start.argv = LIST(joined);
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_COMMAND);
    start.argv.count = 0;
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_COMMAND);
}

/* `more` stands before, or in the place of, what is there. */
static enum ticket_refusal with_variable(const struct ticket *t, const char *more, bool instead)
{
    const char *all[16] = {more};
    struct ticket_start start = start_of(t->helpers);
    size_t count = 1;
    for (size_t i = instead; i < start.environment.count; i++)
        all[count++] = start.environment.items[i];
    start.environment = (struct ticket_list){all, count};
    return ticket_check_start(t, &start);
}

/* In the place of the variable of that name. */
static enum ticket_refusal with_value(const struct ticket *t, const char *entry)
{
    const char *all[16] = {entry};
    struct ticket_start start = start_of(t->helpers);
    size_t count = 1;
    for (size_t i = 0; i < start.environment.count; i++)
        if (strncmp(start.environment.items[i], entry, strcspn(entry, "=") + 1) != 0)
            all[count++] = start.environment.items[i];
    start.environment = (struct ticket_list){all, count};
    return ticket_check_start(t, &start);
}

static void all_give(const struct ticket *t, struct ticket_list more, enum ticket_refusal why)
{
    for (size_t i = 0; i < more.count; i++)
        assert_why(with_variable(t, more.items[i], false), why);
}

static void another_environment_is_refused(void **state)
{
    static const char *const forbidden[] = {"LD_PRELOAD=/tmp/evil.so", "PATH=/tmp",    "BASH_ENV=/tmp/x", "",
                                            "PVM_PATH=/tmp",           "ELMER_HOST=x", "ELMER_RANK",      "HOME=/tmp"};
    struct cluster c;
    static struct ticket t;
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        assert_why(with_variable(&t, forbidden[i], false), TICKET_OTHER_ENVIRONMENT);
        assert_why(with_variable(&t, forbidden[i], true), TICKET_OTHER_ENVIRONMENT);
    }
    assert_why(with_variable(&t, "PVM_RSH=/bin/false", false), TICKET_OTHER_ENVIRONMENT); /* no PVM job */
}

static void what_elmer_adds_has_values_of_its_own(void **state)
{
    static const char *const good[] = {"ELMER_HOSTFILE=/x",  "ELMER_JOB_NAME=s",
                                       "PVM_RSH=/bin/false", "PVM_WD=/home/a",
                                       "PVMDLOGMAX=100",     "PVMSOCK=/run/elmer-rsd/jobs/12.1/pvmtmp.0",
                                       "PVM_TMP=/x"};
    static const char *const bad[] = {"ELMER_JOB_NAME=t",
                                      "ELMER_JOB_ID=$(id)",
                                      "ELMER_RANK=",
                                      "PVM_RSH=/tmp/evil",
                                      "PVM_RSH=",
                                      "PVM_WD=/tmp",
                                      "PVMDLOGMAX=x",
                                      "PVMSOCK=/tmp/pvmtmp.0",
                                      "PVMSOCK=0a000001:1234",
                                      "PVMSOCK=/run/elmer-rsd/jobs/12.1/../12.2/pvmtmp.0",
                                      "PVMSOCK=/run/elmer-rsd/jobs/12.10/pvmtmp.0",
                                      "PVMSOCK=/run/elmer-rsd/jobs/12.1/a\nb",
                                      "PVMSOCK=/run/elmer-rsd/jobs/12.1/$(id)",
                                      "PVMSOCK=/run/elmer-rsd/jobs/12.1/..",
                                      "PVM_HOSTER=/tmp/evil",
                                      "PVM_RM=/tmp/evil",
                                      "PVM_VMID=x"};
    struct cluster c;
    static struct ticket t;
    (void)state;
    cluster_init(&c);
    make(&c, &t, true);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_why(with_value(&t, good[i]), TICKET_GOOD);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_why(with_value(&t, bad[i]), TICKET_ADDED_VARIABLE);
}

/* Names of hosts and numbers are what they are called: they go into host files, and into lines of scripts. */
static void names_and_numbers_are_that(void **state)
{
    static const char *const good[] = {"ELMER_HOSTS=ws1",       "ELMER_HOSTS=ws1:ws1:a-b.example.org",
                                       "ELMER_MESH=2x2",        "ELMER_MESH=10x1",
                                       "ELMER_SUBMIT_HOST=ws9", "ELMER_SUBMIT_HOST=",
                                       "ELMER_ADDRESS=10.0.0.1"};
    static const char *const bad[] = {"ELMER_HOSTS=",
                                      "ELMER_HOSTS=:ws1",
                                      "ELMER_HOSTS=ws1:",
                                      "ELMER_HOSTS=ws1::ws2",
                                      "ELMER_HOSTS=ws1\nlocalhost",
                                      "ELMER_HOSTS=ws1:$(id)",
                                      "ELMER_HOSTS=ws1;id",
                                      "ELMER_HOSTS=-oProxyCommand=id",
                                      "ELMER_HOSTS=ws1 ws2",
                                      "ELMER_HOSTS=ws1:../x",
                                      "ELMER_MESH=",
                                      "ELMER_MESH=2",
                                      "ELMER_MESH=x2",
                                      "ELMER_MESH=2x",
                                      "ELMER_MESH=2x2x2",
                                      "ELMER_MESH=2x$(id)",
                                      "ELMER_MESH=2x2\n",
                                      "ELMER_SUBMIT_HOST=a b",
                                      "ELMER_SUBMIT_HOST=$(id)",
                                      "ELMER_SUBMIT_HOST=a\nb",
                                      "ELMER_ADDRESS=10.0.0.1;id",
                                      "ELMER_RANK=1;id",
                                      "ELMER_NPROCS=4\n",
                                      "ELMER_JOB_ID=12 "};
    struct cluster c;
    static struct ticket t;
    (void)state;
    cluster_init(&c);
    for (int helpers = 0; helpers < 2; helpers++) {
        make(&c, &t, helpers);
        all_give(&t, LIST(good), TICKET_GOOD);
        all_give(&t, LIST(bad), TICKET_ADDED_VARIABLE);
    }
}

/* Long lists of names, and a long name. */
static void long_lists_of_hosts(void **state)
{
    enum { NAMES = 10000 };
    static char entry[NAMES * 6 + 32], name[300] = "ELMER_HOSTS=";
    struct cluster c;
    static struct ticket t;
    size_t used = (size_t)snprintf(entry, sizeof(entry), "ELMER_HOSTS=ws1");
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    for (int i = 1; i < NAMES; i++)
        used += (size_t)snprintf(entry + used, sizeof(entry) - used, ":w%d", i);
    assert_why(with_variable(&t, entry, false), TICKET_GOOD);
    entry[used - 1] = '\n';
    assert_why(with_variable(&t, entry, false), TICKET_ADDED_VARIABLE);
    memset(name + strlen(name), 'a', 256);
    assert_why(with_variable(&t, name, false), TICKET_ADDED_VARIABLE);
    name[strlen(name) - 1] = 0;
    assert_why(with_variable(&t, name, false), TICKET_GOOD);
}

/* Also of a job without helpers, whose other variables of ours are not looked at. */
static void what_a_submission_has_for_itself_no_process_gets(void **state)
{
    static const char *const bad[] = {"ELMER_ARRAY_TASKS=1-3", "ELMER_ARRAY_LINES=a", "ELMER_MEMORY_BYTES=1;evil"};
    struct cluster c;
    static struct ticket t;
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    all_give(&t, LIST(bad), TICKET_ADDED_VARIABLE);
}

static void another_place_or_file_is_refused(void **state)
{
    struct cluster c;
    static struct ticket t;
    struct ticket_start start = start_of(false);
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    start.umask = 0;
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_PLACE);
    start = start_of(false);
    start.dir = "/tmp";
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_PLACE);
    start = start_of(false);
    start.output = "/home/a/.profile";
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_OUTPUT);
    start = start_of(false);
    start.errors = "s-12.2.out";
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_OUTPUT);
    start = start_of(false);
    start.output = "s-12.1.out2";
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_OUTPUT);
    start = start_of(false);
    start.truncate = true;
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_OUTPUT);
    start = start_of(false);
    start.capture = true;
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_OUTPUT);
}

static void a_rank_that_was_not_asked_for_is_refused(void **state)
{
    struct cluster c;
    static struct ticket t;
    struct ticket_start start = start_of(false);
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    start.process = 4;
    assert_why(ticket_check_start(&t, &start), TICKET_NO_SUCH_RANK);
    start.process = UINT32_MAX;
    assert_why(ticket_check_start(&t, &start), TICKET_NO_SUCH_RANK);
}

/* ---- helpers ---- */

static enum ticket_refusal daemon_with(const struct ticket *t, struct ticket_list argv)
{
    struct ticket_start start = start_of(true);
    start.environment.count--; /* its socket is not there yet */
    start.role = TICKET_DAEMON;
    start.process = 4;
    start.argv = argv;
    start.output = start.errors = "";
    start.capture = true;
    return ticket_check_start(t, &start);
}

static void daemons_are_those_of_a_virtual_machine(void **state)
{
    static const char *const master[] = {"pvmd", "-nws1"}, *const address[] = {"pvmd", "-n10.0.0.1"},
                             *const slave[] = {"pvmd",          "-s",   "-d0x0", "-nws2",         "1",
                                               "0a4d0001:c198", "4080", "2",     "0a4d0002:0000", "-f"},
                             *const hostfile[] = {"pvmd", "-nws1", "/tmp/hosts"}, *const named[] = {"pvmd", "hosts"},
                             *const hexfile[] = {"pvmd", "-nws1", "cafe"}, *const alone[] = {"pvmd"},
                             *const option[] = {"pvmd", "-x"}, *const words[] = {"pvmd", "-nws1 -x"},
                             *const line[] = {"pvmd", "-nws1\n"}, *const shell[] = {"pvmd", "-n$(id)"};
    struct cluster c;
    static struct ticket t, plain;
    (void)state;
    cluster_init(&c);
    make(&c, &t, true);
    make(&c, &plain, false);
    assert_why(daemon_with(&t, LIST(master)), TICKET_GOOD);
    assert_why(daemon_with(&t, LIST(address)), TICKET_GOOD);
    assert_why(daemon_with(&t, LIST(slave)), TICKET_GOOD);
    assert_why(daemon_with(&plain, LIST(master)), TICKET_OTHER_HELPER);
    assert_why(daemon_with(&t, LIST(hostfile)), TICKET_OTHER_HELPER);
    assert_why(daemon_with(&t, LIST(named)), TICKET_OTHER_HELPER);
    assert_why(daemon_with(&t, LIST(hexfile)), TICKET_OTHER_HELPER);
    assert_why(daemon_with(&t, LIST(alone)), TICKET_OTHER_HELPER);
    assert_why(daemon_with(&t, LIST(option)), TICKET_OTHER_HELPER);
    assert_why(daemon_with(&t, LIST(words)), TICKET_OTHER_HELPER);
    assert_why(daemon_with(&t, LIST(line)), TICKET_OTHER_HELPER);
    assert_why(daemon_with(&t, LIST(shell)), TICKET_OTHER_HELPER);
}

static void the_agent_works_where_the_job_does(void **state)
{
    static const char *const good[] = {"agent", "--wd", "/home/a", "ws2", "ws3=10.0.0.3"},
                             *const elsewhere[] = {"agent", "--wd", "/tmp", "ws2"},
                             *const option[] = {"agent", "--wd", "/home/a", "--x"},
                             *const words[] = {"",      "/x",     "ws2 dx=/tmp/evil", "ws2=10.0.0.2 dx=/tmp/evil",
                                               "ws2=",  "=1",     "ws2\nws3",         "ws2=evil",
                                               "$(id)", "ws2=1=2"};
    struct cluster c;
    static struct ticket t;
    struct ticket_start start = start_of(true);
    (void)state;
    cluster_init(&c);
    make(&c, &t, true);
    start.role = TICKET_AGENT;
    start.process = 5;
    start.output = start.errors = "s-12.0.out";
    start.argv = LIST(good);
    assert_why(ticket_check_start(&t, &start), TICKET_GOOD);
    start.process = 3;
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_HELPER);
    start.process = 5;
    start.argv = LIST(elsewhere);
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_HELPER);
    start.argv = LIST(option);
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_HELPER);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const char *const argv[] = {"agent", "--wd", "/home/a", words[i]};
        start.argv = LIST(argv);
        assert_why(ticket_check_start(&t, &start), TICKET_OTHER_HELPER);
    }
    start.argv = LIST(good);
    start.output = "/home/a/.profile";
    assert_why(ticket_check_start(&t, &start), TICKET_OTHER_HELPER);
}

/* Without the variable of that name, or with it twice. */
static enum ticket_refusal changed(const struct ticket *t, struct ticket_start start, const char *name, bool doubled)
{
    const char *all[16];
    size_t count = 0;
    for (size_t i = 0; i < start.environment.count; i++) {
        const char *entry = start.environment.items[i];
        const bool meant = strncmp(entry, name, strlen(name)) == 0 && entry[strlen(name)] == '=';
        if (!meant || doubled)
            all[count++] = entry;
        if (meant && doubled)
            all[count++] = entry;
    }
    start.environment = (struct ticket_list){all, count};
    return ticket_check_start(t, &start);
}

/* Without them PVM would have its sockets in /tmp, and start daemons by a remote shell of its own. */
static void a_virtual_machine_has_its_variables_once(void **state)
{
    static const char *const always[] = {"PVM_TMP", "PVM_WD", "PVM_RSH", "PVMDLOGMAX"},
                             *const master[] = {"pvmd", "-nws1"}, *const agent[] = {"agent", "--wd", "/home/a"};
    struct cluster c;
    static struct ticket t;
    struct ticket_start starts[3] = {start_of(true), start_of(true), start_of(true)};
    (void)state;
    cluster_init(&c);
    make(&c, &t, true);
    starts[1].role = TICKET_DAEMON;
    starts[1].process = 4;
    starts[1].argv = LIST(master);
    starts[1].output = starts[1].errors = "";
    starts[1].capture = true;
    assert_why(ticket_check_start(&t, &starts[1]), TICKET_ADDED_VARIABLE); /* it makes the socket */
    starts[1].environment.count--;
    starts[2].role = TICKET_AGENT;
    starts[2].process = 5;
    starts[2].argv = LIST(agent);
    starts[2].output = starts[2].errors = "s-12.0.out";
    for (size_t k = 0; k < 3; k++) {
        assert_why(ticket_check_start(&t, &starts[k]), TICKET_GOOD);
        for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
            assert_why(changed(&t, starts[k], always[i], false), TICKET_ADDED_VARIABLE);
            assert_why(changed(&t, starts[k], always[i], true), TICKET_ADDED_VARIABLE);
        }
    }
    assert_why(changed(&t, starts[0], "PVMSOCK", true), TICKET_ADDED_VARIABLE);
    assert_why(changed(&t, starts[0], "PVMSOCK", false), TICKET_GOOD); /* elmer has started again */
    assert_why(changed(&t, starts[2], "PVMSOCK", true), TICKET_ADDED_VARIABLE);
    assert_why(changed(&t, starts[2], "PVMSOCK", false), TICKET_ADDED_VARIABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_opened_as_it_was_asked_for),
        cmocka_unit_test(memory_is_part_of_it),
        cmocka_unit_test(a_command_is_started_as_it_was_asked_for),
        cmocka_unit_test(another_argument_is_refused),
        cmocka_unit_test(another_environment_is_refused),
        cmocka_unit_test(what_elmer_adds_has_values_of_its_own),
        cmocka_unit_test(names_and_numbers_are_that),
        cmocka_unit_test(long_lists_of_hosts),
        cmocka_unit_test(what_a_submission_has_for_itself_no_process_gets),
        cmocka_unit_test(another_place_or_file_is_refused),
        cmocka_unit_test(a_rank_that_was_not_asked_for_is_refused),
        cmocka_unit_test(daemons_are_those_of_a_virtual_machine),
        cmocka_unit_test(the_agent_works_where_the_job_does),
        cmocka_unit_test(a_virtual_machine_has_its_variables_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
