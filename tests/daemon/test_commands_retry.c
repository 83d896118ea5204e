/* test_commands_retry.c - eretry as a process: which tasks run again, and what of a job is as it was; and the lines of
 * esubmit --array-file. */
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

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

enum { PAGE = 256 };
static const char *command[] = {"./solve", "{1}"}, *hosts[] = {"ws1", "ws2"};

/* Of array 57, with five tasks. */
static struct wire_job_view array_view(const char *state)
{
    struct wire_job_view view = view_of(57, "solve", state);

    view.tasks = "2-10:2%2";
    view.ntasks = 5;
    view.tasks_failed = 2;
    view.index = -1;
    return view;
}

static struct wire_job_view task_view(unsigned number, const char *state, int status, const char *reason)
{
    struct wire_job_view view = view_of(57 + number, "solve", state);

    view.array = 57;
    view.index = 2 * (int)number;
    view.tasks = "2-10:2%2";
    view.exit_status = status;
    view.reason_code = reason;
    return view;
}

static void answer_query(struct world *w, uint64_t first, struct wire_job_view *views, size_t count)
{
    struct wire_message query = peer_expect(&w->elmer, WIRE_query);

    assert_int_equal(query.u.query.jobs.items[0], first);
    for (; count > PAGE; views += PAGE, count -= PAGE)
        answer_jobs(w, query.id, views, PAGE, true);
    answer_jobs(w, query.id, views, count, false);
    wire_message_fini(&query);
}

static void answer_asked(struct world *w, uint64_t job, const char *const *words, size_t nwords, const char *tasks,
                         const char *lines)
{
    struct wire_message query = peer_expect(&w->elmer, WIRE_query_asked);
    struct wire_message answer = {.type = WIRE_asked, .id = query.id};

    assert_int_equal(query.u.query_asked.job, job);
    answer.u.asked = (struct wire_asked){.token = "",
                                         .name = "solve",
                                         .nprocs = 4,
                                         .each = true,
                                         .command = {(const char **)(uintptr_t)words, nwords},
                                         .dir = "/home/alice/w",
                                         .comment = "a comment",
                                         .output = "o.%A.%a",
                                         .errors = "",
                                         .hosts = {hosts, 2},
                                         .umask = 027,
                                         .submit_host = "ws9",
                                         .requeue = true,
                                         .time_limit_ms = 60000,
                                         .ticket = "",
                                         .tasks = tasks,
                                         .lines = lines};
    peer_send(&w->elmer, &answer);
    wire_message_fini(&query);
}

/* All but the command's words and what is of arrays is as it was. */
static struct wire_message take_submit(struct world *w, const char *tasks, const char *lines)
{
    struct wire_message submit = peer_expect(&w->elmer, WIRE_submit);
    const struct wire_submit *s = &submit.u.submit;
    bool found = false;

    assert_string_equal(s->tasks, tasks);
    assert_string_equal(s->lines, lines);
    assert_string_equal(s->name, "solve");
    assert_int_equal(s->nprocs, 4);
    assert_true(s->each && s->requeue);
    assert_string_equal(s->dir, "/home/alice/w");
    assert_string_equal(s->comment, "a comment");
    assert_string_equal(s->output, "o.%A.%a");
    assert_int_equal(s->umask, 027);
    assert_int_equal(s->time_limit_ms, 60000);
    assert_int_equal(s->hosts.count, 2);
    assert_int_equal(s->after.count, 0);
    assert_int_equal(strlen(s->token), 32);
    for (size_t i = 0; i < s->environment.count; i++)
        found = found || strncmp(s->environment.items[i], "PATH=", 5) == 0;
    assert_true(found);
    answer_submitted(w, submit.id, "queued", -1, 3, "");
    return submit;
}

static void failed_tasks(void **data)
{
    struct world *w = *data;
    struct wire_job_view array = array_view("running"),
                         tasks[] = {task_view(1, "done", 0, "exited"), task_view(2, "done", 1, "exited"),
                                    task_view(3, "running", -1, ""), task_view(4, "cancelled", -1, "cancelled"),
                                    task_view(5, "done", -1, "killed")};
    struct wire_message submit;

    RUN(w, "eretry", "57", "--failed");
    accept_command(w);
    answer_query(w, 57, &array, 1);
    answer_query(w, 58, tasks, 5);
    answer_asked(w, 57, command, 2, "2-10:2%2", "a 1\nb 2\nc 3\nd 4\ne 5");
    submit = take_submit(w, "4,10%2", "b 2\ne 5\n");
    assert_string_equal(submit.u.submit.command.items[1], "{1}");
    wire_message_fini(&submit);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "42\n");
    assert_string_equal(w->stderr_text, "array 42: 2 tasks of array 57 again, queued\n");
    RUN(w, "eretry", "-f", "57[2,6,8]");
    accept_command(w);
    answer_query(w, 57, &array, 1);
    answer_query(w, 58, (struct wire_job_view[]){tasks[0], tasks[2], tasks[3]}, 3);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "eretry: none of the tasks of array 57 that are named has failed\n");
}

/* Of tasks that the history has forgotten the array knows how many have failed. */
static void forgotten_tasks(void **data)
{
    struct world *w = *data;
    struct wire_job_view array = array_view("done"),
                         tasks[] = {task_view(1, "done", 0, "exited"), task_view(2, "done", 1, "exited")};
    struct wire_message submit;

    array.tasks_failed = 3;
    RUN(w, "eretry", "57", "--failed");
    accept_command(w);
    answer_query(w, 57, &array, 1);
    answer_query(w, 58, tasks, 2);
    answer_asked(w, 57, command, 2, "2-10:2%2", "");
    submit = take_submit(w, "4%2", "");
    wire_message_fini(&submit);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text,
                        "eretry: array 57: 2 of the 3 tasks that have failed are not in the history any more, and are "
                        "not run; name them without --failed, like 57[2]\n"
                        "array 42: 1 task of array 57 again, queued\n");
    RUN(w, "eretry", "57[2,6-10:2]", "--failed");
    accept_command(w);
    answer_query(w, 57, &array, 1);
    answer_query(w, 58, tasks, 1);
    assert_int_equal(finish(w), 3);
    assert_non_null(strstr(w->stderr_text, "array 57: of those named 3 cannot be found in the history"));
    RUN(w, "eretry", "57", "--failed");
    accept_command(w);
    answer_query(w, 57, &array, 1);
    answer_query(w, 58, tasks, 0);
    assert_int_equal(finish(w), 3);
    assert_non_null(strstr(w->stderr_text, "3 of the 3 tasks that have failed are not in the history any more"));
    assert_null(strstr(w->stderr_text, "none of the tasks"));
}

static void tasks_that_are_named(void **data)
{
    struct world *w = *data;
    struct wire_job_view array = array_view("running"), ended = array_view("done"),
                         one = task_view(3, "done", 0, "exited"),
                         two[] = {task_view(2, "done", 0, "exited"), task_view(4, "cancelled", -1, "cancelled")},
                         runs[] = {task_view(2, "done", 0, "exited"), task_view(3, "running", -1, "")};
    struct wire_message submit;

    RUN(w, "eretry", "57[4,8]");
    accept_command(w);
    answer_query(w, 57, &array, 1);
    answer_query(w, 59, two, 2);
    answer_asked(w, 57, command, 2, "2-10:2%2", "a\nb\nc\nd\ne\n");
    submit = take_submit(w, "4,8%2", "b\nd\n");
    wire_message_fini(&submit);
    assert_int_equal(finish(w), 0);
    RUN(w, "eretry", "57[4-6:2]");
    accept_command(w);
    answer_query(w, 57, &array, 1);
    answer_query(w, 59, runs, 2);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "eretry: task 57[6] is running: only what has ended runs again\n");
    RUN(w, "eretry", "57[5]");
    accept_command(w);
    answer_query(w, 57, &array, 1);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "eretry: array 57 has no task 5\n");
    RUN(w, "eretry", "57");
    accept_command(w);
    answer_query(w, 57, &ended, 1);
    answer_asked(w, 57, command, 2, "2-10:2%2", "");
    submit = take_submit(w, "2-10:2%2", "");
    wire_message_fini(&submit);
    assert_int_equal(finish(w), 0);
    RUN(w, "eretry", "60"); /* a task by its own id */
    accept_command(w);
    answer_query(w, 60, &one, 1);
    answer_query(w, 57, &ended, 1);
    answer_asked(w, 57, command, 2, "2-10:2%2", "");
    submit = take_submit(w, "6%2", "");
    wire_message_fini(&submit);
    assert_int_equal(finish(w), 0);
}

/* More ranges than one list of tasks has. */
static void several_arrays(void **data)
{
    enum { TASKS = 1200 };
    static struct wire_job_view views[TASKS];
    struct world *w = *data;
    struct wire_job_view array = array_view("done");
    struct wire_message submit;
    size_t got = 0, arrays = 0;

    array.tasks = "1-1200";
    array.ntasks = TASKS;
    for (unsigned i = 0; i < TASKS; i++) {
        views[i] = view_of(58 + i, "x", "done");
        views[i].exit_status = i % 2;
        views[i].reason_code = "exited";
    }
    RUN(w, "eretry", "--failed", "57");
    accept_command(w);
    answer_query(w, 57, &array, 1);
    answer_query(w, 58, views, TASKS);
    answer_asked(w, 57, command, 2, "1-1200", "");
    while (got < TASKS / 2) {
        submit = peer_expect(&w->elmer, WIRE_submit);
        assert_true(strlen(submit.u.submit.tasks) <= 1000);
        for (const char *c = submit.u.submit.tasks; c; c = strchr(c + 1, ','))
            got++;
        arrays++;
        answer_submitted(w, submit.id, "queued", -1, 3, "");
        wire_message_fini(&submit);
    }
    assert_int_equal(finish(w), 0);
    assert_int_equal(got, TASKS / 2);
    assert_in_range(arrays, 3, 4);
}

static void one_job(void **data)
{
    struct world *w = *data;
    struct wire_job_view failed = done_view(41, 1, -1, "exited", ""), well = done_view(41, 0, -1, "exited", ""),
                         runs = view_of(41, "x", "running");
    struct wire_message submit;

    RUN(w, "eretry", "-v", "A=b", "41");
    accept_command(w);
    answer_query(w, 41, &failed, 1);
    answer_asked(w, 41, command, 2, "", "");
    submit = take_submit(w, "", "");
    wire_message_fini(&submit);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "job 42: job 41 again, queued\n");
    RUN(w, "eretry", "--failed", "41");
    accept_command(w);
    answer_query(w, 41, &well, 1);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "eretry: job 41 has not failed\n");
    RUN(w, "eretry", "41");
    accept_command(w);
    answer_query(w, 41, &runs, 1);
    assert_int_equal(finish(w), 3);
    RUN(w, "eretry", "41[2]");
    accept_command(w);
    answer_query(w, 41, &failed, 1);
    assert_int_equal(finish(w), 3);
    RUN(w, "eretry");
    assert_int_equal(finish(w), 2);
    RUN(w, "eretry", "-h");
    assert_int_equal(finish(w), 0);
}

static char *file_of(struct world *w, const char *name, const char *text)
{
    static char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Its text is not kept, so it is asked for. */
static void a_script(void **data)
{
    struct world *w = *data;
    char *path = file_of(w, "s.sh", "#!/bin/sh\n#ELMER -n 2\necho hello\n");
    const char *words[7];
    struct wire_job_view failed = done_view(41, 1, -1, "exited", "");
    struct wire_message submit, again;
    bool found = false;

    RUN(w, "esubmit", path, "7");
    accept_command(w);
    submit = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, submit.id, "queued", -1, 0, "");
    assert_int_equal(finish(w), 0);
    assert_int_equal(submit.u.submit.command.count, 7);
    for (size_t i = 0; i < 7; i++)
        words[i] = submit.u.submit.command.items[i];
    RUN(w, "eretry", "41");
    accept_command(w);
    answer_query(w, 41, &failed, 1);
    answer_asked(w, 41, words, 7, "", "");
    assert_int_equal(finish(w), 2);
    assert_non_null(strstr(w->stderr_text, "it ran the script 's.sh', and the text of a script is not kept"));
    words[2] = "printf %s \"$ELMER_SCRIPT\" >s; sh s"; /* of another version */
    RUN(w, "eretry", "--script", path, "41");
    accept_command(w);
    answer_query(w, 41, &failed, 1);
    answer_asked(w, 41, words, 7, "", "");
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "it ran a script that another version of esubmit has sent"));
    words[2] = submit.u.submit.command.items[2];
    (void)file_of(w, "s.sh", "#!/bin/bash\necho changed\n");
    RUN(w, "eretry", "--script", path, "41");
    accept_command(w);
    answer_query(w, 41, &failed, 1);
    answer_asked(w, 41, words, 7, "", "");
    again = take_submit(w, "", "");
    assert_string_equal(again.u.submit.command.items[4], "/bin/bash");
    assert_string_equal(again.u.submit.command.items[6], "7");
    for (size_t i = 0; i < again.u.submit.environment.count; i++)
        found = found || strcmp(again.u.submit.environment.items[i], "ELMER_SCRIPT=#!/bin/bash\necho changed\n") == 0;
    assert_true(found);
    wire_message_fini(&again);
    wire_message_fini(&submit);
    assert_int_equal(finish(w), 0);
    unlink(path);
}

/* ---- esubmit --array-file ---- */

static void expect_lines(struct world *w, const char *tasks, const char *lines)
{
    struct wire_message submit;

    accept_command(w);
    submit = peer_expect(&w->elmer, WIRE_submit);
    assert_string_equal(submit.u.submit.tasks, tasks);
    assert_string_equal(submit.u.submit.lines, lines);
    answer_submitted(w, submit.id, "queued", -1, 0, "");
    wire_message_fini(&submit);
    assert_int_equal(finish(w), 0);
}

static void lines_of_a_file(void **data)
{
    struct world *w = *data;
    char *path = file_of(w, "cases", "a 1\nb\t2\nc 3 x\n"), limited[160];

    (void)snprintf(limited, sizeof(limited), "%s%%8", path);
    RUN(w, "esubmit", "--array-file", path, "./run", "{1}", "{2}");
    expect_lines(w, "1-3", "a 1\nb\t2\nc 3 x\n");
    RUN(w, "esubmit", "-a", "1-9", "--array-file", limited, "./run", "{}");
    expect_lines(w, "1-3%8", "a 1\nb\t2\nc 3 x\n");
    RUN(w, "esubmit", "--array-file", limited, "-a", "1-9", "./run", "{}");
    expect_lines(w, "1-9", "");
    unlink(path);
}

static void bad_files(void **data)
{
    static const char *const texts[][2] = {{"", "is empty: the array would have no task"},
                                           {"a 1\n\n", ":2: the line is empty: each line is a task, take it out"},
                                           {"a 1\nb\n", ":2: the line has only 1 column, and the command has {2}"},
                                           {"a 1\nb 2\r\n", ":2: the line has a carriage return"},
                                           {"a 1\nb \xff\n", ":2: the line is not valid UTF-8"}};
    struct world *w = *data;
    char *path = NULL;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        path = file_of(w, "cases", texts[i][0]);
        RUN(w, "esubmit", "--array-file", path, "./run", "{2}");
        assert_int_equal(finish(w), 2);
        if (!strstr(w->stderr_text, texts[i][1]))
            fail_msg("%s", w->stderr_text);
    }
    unlink(path);
    RUN(w, "esubmit", "--array-file", path, "./run", "{2}");
    assert_int_equal(finish(w), 2);
    assert_non_null(strstr(w->stderr_text, "cannot be read: No such file or directory"));
    RUN(w, "esubmit", "--array-file", "x%0", "./run");
    assert_int_equal(finish(w), 2);
    RUN(w, "esubmit", "--array-file", "x%08", "./run");
    assert_int_equal(finish(w), 2);
    assert_non_null(strstr(w->stderr_text, "--array-file x%08: want how many tasks may run at a time behind %, without "
                                           "zeros in front, like x%8"));
    RUN(w, "esubmit", "--array-file", "-", "-");
    assert_int_equal(finish(w), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(failed_tasks),    TEST(forgotten_tasks), TEST(tasks_that_are_named),
                                       TEST(several_arrays),  TEST(one_job),         TEST(a_script),
                                       TEST(lines_of_a_file), TEST(bad_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
