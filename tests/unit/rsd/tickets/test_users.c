/* test_users.c - uids with and without a name, and how often somebody is asked for those. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/tickets/users.h"

enum { KNOWN = 1000, NAMELESS = 100000 };

static struct desk_users users;
static int64_t now_ms = 1000000, takes_ms;
static int asked;
static int says; /* the errno of who has no name */

struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    return (struct mono){.ns = now_ms * 1000000};
}

/* Below NAMELESS everybody has a name. */
struct passwd *__wrap_getpwuid(uid_t uid);
struct passwd *__wrap_getpwuid(uid_t uid)
{
    static char name[] = "anna";
    static struct passwd entry = {.pw_name = name};
    asked++;
    now_ms += takes_ms;
    errno = says;
    return uid < NAMELESS ? &entry : NULL;
}

static int set_up(void **state)
{
    (void)state;
    log_open("test_users", LOG_LEVEL_ERROR);
    users = (struct desk_users){.users = {{.uid = 0}}};
    now_ms += 1000000;
    takes_ms = 0;
    asked = 0;
    says = 0;
    return 0;
}

static struct desk_user *ask(uint32_t uid)
{
    return desk_user_of(&users, uid, now_ms);
}

static void expect_named(uint32_t uid)
{
    struct desk_user *user = ask(uid);
    assert_non_null(user);
    assert_int_equal(user->uid, uid);
    assert_string_equal(user->name, "anna");
}

static void expect_nameless(uint32_t uid, bool unsure)
{
    struct desk_user *user = ask(uid);
    assert_non_null(user);
    assert_string_equal(user->name, "");
    assert_int_equal(user->unsure, unsure);
}

static void one_without_a_name_is_remembered(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        expect_nameless(NAMELESS, false);
    assert_int_equal(asked, 1);
    says = EAGAIN;
    for (int i = 0; i < 1000; i++)
        expect_nameless(NAMELESS + 1, true);
    assert_int_equal(asked, 2);
    now_ms += 5001; /* he may have been made meanwhile, or the name service may be back */
    says = 0;
    expect_nameless(NAMELESS + 1, false);
    assert_int_equal(asked, 3);
}

static void many_without_a_name_wait(void **state)
{
    int refused = 0;
    (void)state;
    for (uint32_t i = 0; i < 200; i++)
        expect_named(KNOWN + i);
    assert_int_equal(asked, 200);
    for (uint32_t i = 0; i < 65536; i++)
        refused += !ask(NAMELESS + i);
    assert_in_range(asked, 200 + 9990, 200 + 10010);
    assert_int_equal(refused, 65536 - (asked - 200));
    asked = 0;
    for (uint32_t i = 0; i < 200; i++) /* none of them had to make room */
        expect_named(KNOWN + i);
    assert_int_equal(asked, 0);
    now_ms += 1000;
    for (uint32_t i = 0; i < 65536; i++)
        (void)ask(NAMELESS + i);
    assert_in_range(asked, 490, 510);
    now_ms += 60000; /* who is known is looked up whatever others do */
    expect_named(KNOWN);
}

/* The name service does not answer, and each takes two seconds. */
static void slow_ones_do_not_take_all_the_time(void **state)
{
    int64_t begin, served = 0;
    (void)state;
    expect_named(KNOWN);
    says = EAGAIN;
    takes_ms = 2000;
    begin = now_ms;
    for (uint32_t i = 0; now_ms - begin < 50000; i++) {
        (void)ask(NAMELESS + i);
        expect_named(KNOWN);
        served++;
        now_ms += 100;
    }
    assert_true(served > 300); /* of 500 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_without_a_name_is_remembered, set_up),
        cmocka_unit_test_setup(many_without_a_name_wait, set_up),
        cmocka_unit_test_setup(slow_ones_do_not_take_all_the_time, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
