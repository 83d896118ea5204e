/* test_erun_plan.c - the command line of erun: where and what, in its own form and as ssh's and rsh's. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "client/erun_plan.h"

enum { WORDS = 24 };
static struct erun_job job;
static char line[400], *argv[WORDS];

/* Words with blanks between. */
static int read_line(struct erun_plan *plan, const char *words, bool terminal)
{
    int argc = 0;
    snprintf(line, sizeof(line), "erun %s", words);
    for (char *at = line, *word; (word = strsep(&at, " "));)
        argv[argc++] = word;
    argv[argc] = NULL;
    return erun_plan_read(plan, &job, argc, argv, terminal);
}

/* "HOST:RANK.CPU,..", one for each process, - for all processors; then the words. */
static void expect(const char *words, const char *expected)
{
    struct erun_plan plan;
    char text[400] = "";
    size_t used = 0;
    if (read_line(&plan, words, false) >= 0)
        fail_msg("'%s' is refused", words);
    for (size_t i = 0; i < plan.nparts; i++)
        for (size_t k = 0; k < plan.parts[i].nranks; k++) {
            const struct run_rank *rank = &plan.parts[i].ranks[k];
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%u.", used ? "," : "", plan.parts[i].host,
                                     (unsigned)rank->rank);
            used += rank->cpu == RUN_NO_CPU
                        ? (size_t)snprintf(text + used, sizeof(text) - used, "-")
                        : (size_t)snprintf(text + used, sizeof(text) - used, "%u", (unsigned)rank->cpu);
        }
    used += (size_t)snprintf(text + used, sizeof(text) - used, " %s%s%s%s", plan.like_ssh ? "shell" : "words",
                             plan.pty ? " pty" : "", plan.mpi ? " mpi" : "", plan.input ? "" : " noinput");
    for (size_t i = 0; i < plan.argc; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "|%s", plan.argv[i]);
    assert_string_equal(text, expected);
    erun_plan_fini(&plan);
}

static void refuse(const char *words)
{
    struct erun_plan plan;
    if (read_line(&plan, words, false) != EXIT_USAGE)
        fail_msg("'%s' is not refused", words);
    erun_plan_fini(&plan);
}

static void test_own_form(void **state)
{
    (void)state;
    expect("date -u", "ws1:0.- words|date|-u");
    expect("--host ws2 date", "ws2:0.- words|date");
    expect("--host=ws2 ws1", "ws2:0.- words|ws1");
    expect("--rank 2 -- -x", "ws2:2.0 words|-x");
    expect("--each a", "ws1:0.0,ws1:1.1,ws2:2.0,ws2:3.1 words|a");
    expect("-n 3 a", "ws1:0.0,ws1:1.1,ws2:2.0 words|a");
    expect("-n5 a", "ws1:0.-,ws1:1.-,ws1:4.-,ws2:2.-,ws2:3.- words|a");
    expect("-n 2 --host ws2 a", "ws2:0.0,ws2:1.1 words|a");
    expect("-n 3 --host ws2 a", "ws2:0.-,ws2:1.-,ws2:2.- words|a");
    expect("--pty --rank 0 a", "ws1:0.0 words pty|a");
    expect("/opt/python@3.11/bin/python3 x", "ws1:0.- words|/opt/python@3.11/bin/python3|x");
    expect("./a@ws2 x", "ws1:0.- words|./a@ws2|x");
    expect("-n 3 --mpi=pmi1 a", "ws1:0.0,ws1:1.1,ws2:2.0 words mpi|a");
    expect("--mpi pmi1 ws1", "ws1:0.0,ws1:1.1,ws2:2.0,ws2:3.1 words mpi|ws1"); /* as mpirun, one on each */
    expect("--mpi=pmi1 --host ws2 a", "ws2:0.0,ws2:1.1 words mpi|a");
    expect("-n 1 --mpi=pmi1 a", "ws1:0.0 words mpi|a");
    refuse("--mpi=pmix a");
    refuse("--mpi=pmi2 a");
    refuse("--mpi");
    refuse("--mpi=pmi1");
    refuse("--mpi=pmi1 --rank 1 a");
    refuse("--mpi=pmi1 --pty -n 1 a");
    refuse("--each");
    refuse("-n 2 --rank 1 a");
    refuse("--each --host ws1 a");
    refuse("--host ws3 a");
    refuse("--rank 4 a");
    refuse("-n 0 a");
    refuse("-n 4097 a");
    refuse("-n 99999999999999999999 a");
    refuse("--nowhere a");
    refuse("--host");
    refuse("--pty -n 2 a");
    refuse("-z a");
}

static void test_as_ssh(void **state)
{
    const struct passwd *entry = getpwuid(getuid());
    char words[200];
    struct erun_plan plan;
    (void)state;
    expect("ws2 date -u", "ws2:0.- shell|date -u");
    expect("ws2.example.org date", "ws2:0.- shell|date");
    expect("-x -q -o BatchMode=yes ws2 a  b", "ws2:0.- shell|a  b");
    expect("-xoBatchMode=yes ws2 a", "ws2:0.- shell|a");
    expect("-p 22 -i /k -F /f ws2 -- a", "ws2:0.- shell|a");
    expect("-S none -P tag -J ws1 -oX=1 ws2 a", "ws2:0.- shell|a");
    refuse("-L 80:ws1:80 ws2 a"); /* what it cannot do */
    refuse("-s ws2 ftp");
    refuse("-s ws2 sftp more");
    refuse("ws2 -s");
    expect("-n ws2 a", "ws2:0.- shell noinput|a"); /* ssh's, not a number */
    expect("ws2 -n a", "ws2:0.- shell noinput|a");
    expect("-tt ws2 a", "ws2:0.- shell pty|a");
    expect("-t -T ws2", "ws2:0.- shell");
    expect("ws2  orted -mca ess \"env\"", "ws2:0.- shell| orted -mca ess \"env\""); /* as Open MPI calls it */
    snprintf(words, sizeof(words), "-l %s ws2 a", entry->pw_name);
    expect(words, "ws2:0.- shell|a");
    snprintf(words, sizeof(words), "%s@ws2 a", entry->pw_name);
    expect(words, "ws2:0.- shell|a");
    assert_int_equal(read_line(&plan, "-x -oBatchMode=yes -s -- ws2 sftp", false), -1); /* as scp and sftp call it */
    assert_non_null(strstr(plan.argv[0], "/sftp-server"));
    erun_plan_fini(&plan);
    assert_int_equal(read_line(&plan, "ws2", true), -1); /* a shell to type into has a terminal */
    assert_true(plan.pty && plan.argc == 0);
    erun_plan_fini(&plan);
    refuse("-l nobody-else ws2 a");
    refuse("nobody-else@ws2 a");
    refuse("-x ws3 a"); /* no command of ours has ssh's options */
    refuse("someone@ws3 a");
    refuse("-l");
    refuse("-o");
}

/* Which would have no effect there. What launchers write behind a host has. */
static void test_own_behind_a_host(void **state)
{
    (void)state;
    refuse("ws2 -n 4 ./a");
    refuse("ws2 -n4 ./a");
    refuse("ws2 --nprocs 4 ./a");
    refuse("-x ws2 -q -n 4 ./a");
    refuse("ws2 --host ws1 a");
    refuse("ws2 --rank 1 a");
    refuse("ws2 --each a");
    refuse("ws2 --mpi=pmi1 a");
    refuse("ws2 -n 2 --mpi=pmi1 a");
    expect("ws2 -x -n a -n 4", "ws2:0.- shell noinput|a -n 4"); /* the command's */
    expect("-n ws2 -q a --each", "ws2:0.- shell noinput|a --each");
    expect("ws2 -- -n 4", "ws2:0.- shell|-n 4");
    expect("ws2 --pty a", "ws2:0.- shell pty|a");
}

/* Whose first word may have been meant as a host. */
static void test_bare(void **state)
{
    static const struct {
        const char *words;
        bool bare;
    } rows[] = {
        {"ws9 date", true}, {"date", false}, {"./ws9 date", false}, {"--each ws9 date", false}, {"ws2 a", false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct erun_plan plan;
        assert_int_equal(read_line(&plan, rows[i].words, false), -1);
        assert_int_equal(plan.bare, rows[i].bare);
        erun_plan_fini(&plan);
    }
}

static void test_the_job(void **state)
{
    struct erun_job read;
    (void)state;
    unsetenv("ELMER_JOB_ID");
    assert_false(erun_job_read(&read));
    erun_job_fini(&read);
    setenv("ELMER_JOB_ID", "7x", 1);
    assert_false(erun_job_read(&read));
    erun_job_fini(&read);
    setenv("ELMER_JOB_ID", "7", 1);
    unsetenv("ELMER_HOSTS");
    setenv("ELMER_HOSTFILE", "/nowhere/hostfile", 1);
    assert_false(erun_job_read(&read));
    erun_job_fini(&read);
    setenv("ELMER_HOSTS", "", 1);
    assert_false(erun_job_read(&read));
    erun_job_fini(&read);
}

static int setup(void **state)
{
    static const struct command command = {.name = "erun", .help = ""};
    (void)state;
    command_begin(&command);
    setenv("ELMER_JOB_ID", "7", 1);
    setenv("ELMER_HOSTS", "ws1:ws1:ws2:ws2", 1);
    return erun_job_read(&job) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    erun_job_fini(&job);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_form), cmocka_unit_test(test_as_ssh),  cmocka_unit_test(test_own_behind_a_host),
        cmocka_unit_test(test_bare),     cmocka_unit_test(test_the_job),
    };
    return cmocka_run_group_tests_name("erun_plan", tests, setup, teardown);
}
