/* test_view.c - what users see of a job follows job.def: every field that is shown, to its owner, to others and as
 * JSON. It goes over the table, so that a field which is forgotten somewhere fails. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/requests/view.h"
#include "lib/job/variables.h"
#include "lib/wire/json_out.h"

/* ---- a job with a value of its own in each field ---- */

static const char *words[] = {"one", "two \"quoted\""};
static char texts[80][16];

static void fill_number(void *value, size_t size, int number)
{
    const uint64_t wide = (uint64_t)number;
    if (size == 8)
        memcpy(value, &wide, size);
    else if (size == 4)
        memcpy(value, &number, size);
    else
        *(bool *)value = true;
}

static void fill_text(void *value, size_t size, int number)
{
    (void)size;
    assert_in_range(number, 0, 79);
    snprintf(texts[number], sizeof(texts[number]), "text %d", number);
    *(const char **)value = texts[number];
}

static void fill_words(void *value, size_t size, int number)
{
    (void)size;
    (void)number;
    *(struct wire_strs *)value = (struct wire_strs){words, 2};
}

#define FILL(of)                                                                                                       \
    _Generic((of), const char *: fill_text, struct wire_strs: fill_words, default: fill_number)(&(of), sizeof(of),     \
                                                                                                ++number);
#define IS_VALUE_VALUE(ctype)            YES
#define IS_VALUE_OWN                     NO
#define FILL_ASKED(name, type, ...)      FILL(submit->name)
#define FILL_KEPT(name, type, cell, ...) JOB_IF_(IS_VALUE_##cell, FILL(r->name))

static const struct record_processor processors[] = {{"ws1", 0}, {"ws1", 3}, {"ws2", 1}};
static const struct record_usage usage[] = {{"ws2", 2, 9, 9}, {"ws2", 3, 2.5, -1}, {"ws1", 3, 1.5, 4096}};

static void fill(struct record *r, struct wire_submit *submit)
{
    int number = 0;
    *r = (struct record){0};
    *submit = (struct wire_submit){0};
    JOB_FIELDS(FILL_ASKED, FILL_KEPT, JOB_NONE)
    r->submit = submit;
    submit->tasks = "1-99";
    r->task = 5;
    r->state = JOB_DONE;
    r->reason = REASON_START_FAILED;
    r->attempt = 3;
    r->exits = 1;
    r->level = 2;
    r->processors = processors;
    r->nprocessors = 3;
    r->usage = usage;
    r->nusage = 3;
    r->level_ms[1] = 1500;
}

/* ---- comparing ---- */

static bool same_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
}

static bool same_words(const void *a, const void *b)
{
    const struct wire_strs *x = a, *y = b;
    return x->count == y->count && x->items == y->items;
}

static bool same_uint(const void *a, const void *b)
{
    return *(const uint64_t *)a == *(const uint64_t *)b;
}

static bool same_bool(const void *a, const void *b)
{
    return *(const bool *)a == *(const bool *)b;
}

#define SAME(a, b)                                                                                                     \
    _Generic(*(a), const char * : same_text, struct wire_strs : same_words, bool : same_bool, default : same_uint)(a, b)
#define EXPECT(shown, seen, name, type, from)                                                                          \
    JOB_IF(VALUE, shown, {                                                                                             \
        __typeof__(view->name) wanted = JOB_SEEN_##seen(all, from->name, JOB_EMPTY(type));                             \
        if (!SAME(&view->name, &wanted))                                                                               \
            fail_msg("%s is not shown to %s as it should be", #name, all ? "its owner" : "others");                    \
    })
#define VIEW_ASKED(name, type, core, since, shown, line, seen, ...)       EXPECT(shown, seen, name, type, r->submit)
#define VIEW_KEPT(name, type, cell, core, column, shown, line, seen, ...) EXPECT(shown, seen, name, type, r)
#define LINE_ASKED(name, type, core, since, shown, line, seen, ...)       EXPECT(line, seen, name, type, r->submit)
#define LINE_KEPT(name, type, cell, core, column, shown, line, seen, ...) EXPECT(line, seen, name, type, r)

static void expect_made(const struct wire_job_view *view, const struct record *r, bool all)
{
    assert_int_equal(view->job, r->id);
    assert_string_equal(view->state, "done");
    assert_string_equal(view->reason_code, "start-failed");
    assert_string_equal(view->reason, all ? r->text : "it could not be started");
    assert_int_equal(view->exit_status, r->exit_status);
    assert_int_equal(view->signal, r->signal);
    assert_int_equal(view->processors.count, 3);
    assert_int_equal(view->usage.count, 2); /* of this attempt, in the order of its hosts */
    assert_string_equal(view->usage.items[0].host, "ws1");
    assert_string_equal(view->usage.items[1].host, "ws2");
    assert_int_equal(view->level_seconds.count, 3);
    assert_true(view->level_seconds.items[1] > 1.4);
    assert_int_equal(view->hidden, !all);
    assert_string_equal(view->output, all ? r->submit->output : ""); /* without patterns as it was asked */
    assert_string_equal(view->errors, all ? r->submit->errors : "");
    assert_int_equal(view->index, r->task); /* from 1 on */
}

static void each_field_is_shown_to_whom_it_should(void **state)
{
    (void)state;
    for (int who = 0; who < 2; who++) {
        const bool all = who == 0;
        struct arena memory = {0};
        struct wire_submit submit;
        struct wire_job_view shown, *view = &shown;
        struct record record, *r = &record;
        fill(r, &submit);
        view_of(r, 3, all, &memory, view);
        JOB_FIELDS(VIEW_ASKED, VIEW_KEPT, JOB_NONE)
        expect_made(view, r, all);
        arena_fini(&memory);
    }
}

static void a_line_shows_the_same(void **state)
{
    (void)state;
    for (int who = 0; who < 2; who++) {
        const bool all = who == 0;
        struct arena memory = {0};
        struct wire_submit submit;
        struct wire_running_line shown, *view = &shown;
        struct record record, *r = &record;
        fill(r, &submit);
        view_running(r, all, &memory, view);
        JOB_FIELDS(LINE_ASKED, LINE_KEPT, JOB_NONE)
        assert_int_equal(view->job, r->id);
        assert_string_equal(view->state, "done");
        assert_int_equal(view->processors.count, 3);
        assert_int_equal(view->hidden, !all);
        arena_fini(&memory);
    }
}

/* ---- JSON ---- */

static void expect_key(const char *json, const char *key, bool is_null)
{
    char text[80];
    snprintf(text, sizeof(text), "%s\"%s\":", strcmp(key, "id") != 0 ? "," : "{", key);
    const char *at = strstr(json, text);
    if (!at)
        fail_msg("JSON has no \"%s\": %s", key, json);
    if ((strncmp(at + strlen(text), "null", 4) == 0) != is_null)
        fail_msg("\"%s\" is %snull: %s", key, is_null ? "not " : "", json);
}

#define KEY_JSON(form, key)                                                    YES, #key
#define KEY_NO                                                                 NO, ""
#define KEY_IS_OWNER                                                           !all
#define KEY_IS_ALL                                                             false
#define KEY(...)                                                               KEY_(__VA_ARGS__)
#define KEY_(answer, key, is_null)                                             JOB_CODE(answer, expect_key(json, key, is_null); count++;)
#define KEY_ASKED(name, type, core, since, shown, line, seen, json, ...)       KEY(KEY_##json, KEY_IS_##seen)
#define KEY_KEPT(name, type, cell, core, column, shown, line, seen, json, ...) KEY(KEY_##json, KEY_IS_##seen)
#define KEY_MADE(name, type, shown, line, seen, json, ...)                     KEY(KEY_##json, KEY_IS_##seen)

/* The way of a view: made, sent, received, and written for programs. */
static void json_has_each_field(void **state)
{
    (void)state;
    for (int who = 0; who < 2; who++) {
        const bool all = who == 0;
        struct arena memory = {0};
        struct wire_submit submit;
        struct wire_job_view view;
        struct wire_message sent = {.type = WIRE_jobs, .u.jobs.jobs = {&view, 1}}, received;
        struct record r;
        struct err err = ERR_INIT;
        size_t size;
        char *text, *json;
        int count = 0;
        fill(&r, &submit);
        view_of(&r, 3, all, &memory, &view);
        if (wire_encode(&sent, WIRE_MINOR, &text, &size, &err) || wire_decode(text, size, WIRE_MINOR, &received, &err))
            fail_msg("%s", err.text);
        assert_true(view_cost(&view) >= size - 30);
        const struct wire_job_view *const views[] = {&received.u.jobs.jobs.items[0]};
        json = json_out_jobs(views, 1);
        assert_non_null(json);
        JOB_FIELDS(KEY_ASKED, KEY_KEPT, KEY_MADE)
        expect_key(strstr(json, "{\"id\""), "id", false);
        assert_true(count >= 20);
        free(json);
        free(text);
        wire_message_fini(&received);
        arena_fini(&memory);
    }
}

/* Of the head of the queue: what the allocator that is in force has against each processor. */
static void the_head_knows_who_refuses_it(void **state)
{
    struct record r;
    struct wire_submit submit;
    char text[VIEW_TEXT];
    (void)state;
    fill(&r, &submit);
    r.state = JOB_QUEUED;
    r.reason = REASON_WAITING;
    r.refused = true;
    r.ahead = 0;
    r.next_task = 0;
    r.text = "";
    submit.nprocs = 4;
    submit.notice = false;
    r.survey =
        (struct core_survey){.up = 10, .full = 1, .busy = 2, .unheard = 3, .unmeasured = 4, .allocator = ALLOCATOR_V2};
    assert_string_equal(view_reason(&r, text, sizeof(text)),
                        "waits for 4 processors: of 10 that it may use, 1 full, 2 too busy, 3 on hosts that are not "
                        "heard now and not yet given up, 4 not measured since the last change there (allocator v2)");
    submit.notice = true;
    assert_string_equal(view_reason(&r, text, sizeof(text)),
                        "waits until its host is up, and runs fewer notices than it may at a time");
    submit.notice = false;
    submit.nprocs = 1;
    r.survey = (struct core_survey){.up = 2, .full = 2, .allocator = ALLOCATOR_PACK};
    assert_string_equal(view_reason(&r, text, sizeof(text)),
                        "waits for 1 processor: of 2 that it may use, 2 full (allocator pack)");
}

/* Some of its tasks run, and what waits is the next one. */
static void an_array_tells_of_its_next_task(void **state)
{
    struct wire_submit submit = {.nprocs = 1, .tasks = "1-200%4", .name = "x"};
    struct record r = {.submit = &submit,
                       .user = "alice",
                       .text = "",
                       .state = JOB_QUEUED,
                       .reason = REASON_TASK_LIMIT,
                       .ntasks = 200};
    char text[VIEW_TEXT];
    (void)state;
    assert_string_equal(view_reason(&r, text, sizeof(text)),
                        "4 tasks of the array run at a time (%4): the next starts when one ends");
    submit.tasks = "1-200%1";
    assert_string_equal(view_reason(&r, text, sizeof(text)),
                        "1 task of the array runs at a time (%1): the next starts when it ends");
    r.reason = REASON_WAITING;
    r.refused = true;
    r.survey = (struct core_survey){.up = 2, .full = 2, .allocator = ALLOCATOR_PACK};
    assert_string_equal(view_reason(&r, text, sizeof(text)),
                        "waits for 1 processor: of 2 that it may use, 2 full (allocator pack)");
    r.next_task = 4;
    assert_string_equal(view_reason(&r, text, sizeof(text)),
                        "the next task waits for 1 processor: of 2 that it may use, 2 full (allocator pack)");
}

/* The list of the queue has numbers of processors only, so the shape stands before the reason. */
static void a_queued_mesh_has_its_shape(void **state)
{
    struct wire_submit submit = {.nprocs = 24, .mesh_rows = 4, .name = "x"};
    struct record r = {.submit = &submit, .user = "alice", .text = "", .state = JOB_QUEUED, .reason = REASON_WAITING};
    struct arena memory = {0};
    struct queued_line line;
    (void)state;
    r.ahead = 3;
    view_queued(&r, false, &memory, &line);
    assert_string_equal(line.reason, "mesh 4x6, waits: 3 ahead");
    r.reason = REASON_TOO_FEW_UP;
    view_queued(&r, true, &memory, &line);
    assert_non_null(strstr(line.reason, "mesh 4x6, asks for more processors than are up"));
    submit.mesh_rows = 0;
    r.reason = REASON_WAITING;
    view_queued(&r, true, &memory, &line);
    assert_string_equal(line.reason, ""); /* the reader says it */
    arena_fini(&memory);
}

/* In a cube a number of processors is a mesh, too; of one that has ended, which is read from the store, it is known no
 * more. */
static void a_job_in_a_cube_has_its_shape(void **state)
{
    struct wire_submit submit;
    struct record r;
    struct wire_job_view view;
    struct wire_running_line line;
    struct arena memory = {0};
    (void)state;
    fill(&r, &submit);
    submit.mesh_rows = 0;
    r.mesh_rows = 2;
    view_of(&r, 1, false, &memory, &view);
    view_running(&r, false, &memory, &line);
    assert_int_equal(view.mesh_rows, 2);
    assert_int_equal(line.mesh_rows, 2);
    r.mesh_rows = 0;
    view_of(&r, 1, false, &memory, &view);
    assert_int_equal(view.mesh_rows, 0);
    submit.mesh_rows = 3;
    view_of(&r, 1, false, &memory, &view);
    view_running(&r, false, &memory, &line);
    assert_int_equal(view.mesh_rows, 3);
    assert_int_equal(line.mesh_rows, 3);
    arena_fini(&memory);
}

/* It has a command that does nothing, and nobody is to read of that. */
static void a_machine_was_halted(void **state)
{
    const char *command[] = {JOB_MACHINE};
    struct wire_submit submit = {.nprocs = 2, .pvm = true, .name = "pvm", .command = {command, 1}};
    struct record r = {
        .submit = &submit, .user = "alice", .text = "", .state = JOB_DONE, .reason = REASON_EXITED, .exits = 1};
    char text[VIEW_TEXT];
    (void)state;
    assert_string_equal(view_reason(&r, text, sizeof(text)), "its virtual machine was halted");
    r.exit_status = 2;
    assert_string_equal(view_reason(&r, text, sizeof(text)), "the command ended with status 2");
    command[0] = "/bin/true";
    r.exit_status = 0;
    assert_string_equal(view_reason(&r, text, sizeof(text)), "the command ended with status 0");
    r.reason = REASON_MEMORY_LIMIT;
    assert_string_equal(view_reason(&r, text, sizeof(text)),
                        "its processes on a host needed more memory than was asked for (-m)");
    r.text = "ws1: its processes there used 4 GiB";
    assert_string_equal(view_reason(&r, text, sizeof(text)), r.text);
    r = (struct record){.submit = &submit, .text = "", .state = JOB_QUEUED, .reason = REASON_WAITING, .refused = true};
    submit.memory_bytes = 1 << 20;
    r.survey = (struct core_survey){.up = 4, .beyond = 2, .full = 1, .allocator = ALLOCATOR_V1};
    assert_string_equal(view_reason(&r, text, sizeof(text)), "waits for 2 processors: of 4 that it may use, 1 full, 2 "
                                                             "without memory for it (allocator v1)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_is_shown_to_whom_it_should),
        cmocka_unit_test(a_line_shows_the_same),
        cmocka_unit_test(json_has_each_field),
        cmocka_unit_test(the_head_knows_who_refuses_it),
        cmocka_unit_test(an_array_tells_of_its_next_task),
        cmocka_unit_test(a_queued_mesh_has_its_shape),
        cmocka_unit_test(a_job_in_a_cube_has_its_shape),
        cmocka_unit_test(a_machine_was_halted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
