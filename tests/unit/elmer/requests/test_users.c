/* test_users.c - who a uid is: asked in a worker thread, one question at a time, and kept for a minute. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "elmer/requests/users.h"
#include "tests/unit/elmer/requests/bed.h"

static struct users *users;
static char told[300]; /* "1001 alice; 1003 carol admin" */

static int setup(void **state)
{
    (void)state;
    fake_time_begin();
    fake_work_begin();
    *told = 0;
    users = users_create(NULL, "admins");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    users_destroy(users);
    fake_work_run();
    return 0;
}

static void on_answer(const struct request_user *user, void *data)
{
    size_t used = strlen(told);
    (void)data;
    snprintf(told + used, sizeof(told) - used, "%s%u %s%s%s", used ? "; " : "", (unsigned)user->uid, user->name,
             user->admin ? " admin" : "", user->another ? " another" : "");
}

static void ask(uint32_t uid, const char *vouched)
{
    assert_true(users_ask(users, uid, -1, vouched, on_answer, NULL));
}

static void expect(const char *answers)
{
    assert_string_equal(told, answers);
    *told = 0;
}

static void test_one_at_a_time(void **state)
{
    (void)state;
    ask(ALICE, "");
    ask(CAROL, "");
    ask(ALICE, ""); /* of one uid, one question to name services */
    assert_int_equal(fake_work_count(), 1);
    expect("");
    fake_work_run();
    expect("1001 alice; 1001 alice; 1003 carol admin");
    assert_true(users_known_admin(users, CAROL));
    assert_false(users_known_admin(users, ALICE));
    assert_false(users_known_admin(users, BOB)); /* as far as is known without asking */
}

static void test_kept(void **state)
{
    (void)state;
    ask(ALICE, "");
    fake_work_run();
    expect("1001 alice");
    fake_time_skip(59999);
    ask(ALICE, "whoever"); /* for a uid that is known any name will do */
    expect("1001 alice");
    fake_time_skip(1);
    ask(ALICE, "");
    expect("");
    fake_work_run();
    expect("1001 alice");
}

/* A uid that is not known: whether the name is another's here depends on the name. */
static void test_vouched(void **state)
{
    char text[300];
    (void)state;
    ask(NOBODY, "bob");
    fake_work_run();
    expect("1009  another");
    ask(NOBODY, "bob");
    expect("1009  another");
    ask(NOBODY, "dora");
    assert_int_equal(fake_work_count(), 1);
    fake_work_run();
    expect("1009 ");
    struct request_user nobody = {.uid = NOBODY}, alice = {.uid = ALICE, .name = "alice"};
    assert_null(users_conflict(&nobody, "dora", "ws1", text, sizeof(text)));
    assert_null(users_conflict(&alice, "alice", "ws1", text, sizeof(text)));
    assert_non_null(strstr(users_conflict(&alice, "al", "ws1", text, sizeof(text)), "user al has uid 1001 on ws1"));
    nobody.another = true;
    snprintf(nobody.vouched, sizeof(nobody.vouched), "bob");
    assert_non_null(strstr(users_conflict(&nobody, "bob", "ws1", text, sizeof(text)), "another one on the queue host"));
}

/* However many others ask. */
static void test_administrators_are_kept(void **state)
{
    (void)state;
    ask(CAROL, "");
    for (uint32_t i = 0; i < 10000; i++) {
        ask(100000 + i, "");
        fake_work_run();
    }
    assert_true(users_known_admin(users, CAROL));
}

static void on_nothing(const struct request_user *user, void *data)
{
    (void)user;
    ++*(int *)data;
}

/* The lookups of one host, as many as are not answered yet; those of others go on. */
static void test_many_of_a_host(void **state)
{
    enum { MANY = 64 };
    int answers = 0;
    (void)state;
    for (uint32_t i = 0; i < MANY; i++)
        assert_true(users_ask(users, 100000 + i, WS1, "x", on_nothing, &answers));
    for (uint32_t i = MANY; i < 10000; i++)
        assert_false(users_ask(users, 100000 + i, WS1, "x", on_nothing, &answers));
    assert_true(users_ask(users, 100000, WS1, "x", on_nothing, &answers)); /* one question to name services */
    assert_true(users_ask(users, ALICE, WS2, "alice", on_nothing, &answers));
    ask(BOB, "");
    fake_work_run();
    assert_int_equal(answers, MANY + 2);
    expect("1002 bob");
    assert_true(users_ask(users, 100000 + MANY, WS1, "x", on_nothing, &answers));
    fake_work_run();
    assert_int_equal(answers, MANY + 3);
}

/* What has not been answered never is; the thread that asks may end later. */
static void test_destroy(void **state)
{
    (void)state;
    ask(ALICE, "");
    ask(BOB, "");
    users_destroy(users);
    fake_work_run();
    expect("");
    users = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_one_at_a_time),  TEST(test_kept),
                                       TEST(test_vouched),        TEST(test_administrators_are_kept),
                                       TEST(test_many_of_a_host), TEST(test_destroy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
