/* test_setting.c - the allocator and the policy, changed while the core runs. */
#include "tests/unit/elmer/core/core_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static int set_to(struct fixture *f, int setting, int value)
{
    struct event event = {.type = EVENT_SET, .host = -1, .request = 5};

    event.u.set.setting = (enum core_setting)setting;
    event.u.set.value = value;
    return fixture_step(f, event);
}

static void test_set(void **state)
{
    static const int two[] = {2, 2};
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 2, two, 2, true);
    job = fixture_submit(&f, 2, NULL, 0, false);
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    assert_int_equal(set_to(&f, SETTING_ALLOCATOR, ALLOCATOR_PACK), 0); /* counts in this step */
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    assert_int_equal(core_job(f.core, job)->processors[0].host, core_job(f.core, job)->processors[1].host);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST_SETTING), 1);
    assert_int_equal(fixture_find(&f, ACTION_PERSIST_SETTING, -1)->setting, SETTING_ALLOCATOR);
    assert_int_equal(f.actions.items[0].type, ACTION_PERSIST_SETTING); /* so the answer waits for it */
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_OK);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->request, 5);
    assert_int_equal(core_setting_value(f.core, SETTING_ALLOCATOR), ALLOCATOR_PACK);
    assert_int_equal(core_setting_default(f.core, SETTING_ALLOCATOR), ALLOCATOR_V2);
    assert_int_equal(core_setting_stored(f.core, SETTING_ALLOCATOR), ALLOCATOR_PACK);
    assert_int_equal(core_setting_stored(f.core, SETTING_POLICY), SETTING_UNSET);

    assert_int_equal(set_to(&f, SETTING_ALLOCATOR, ALLOCATOR_PACK), 0); /* it is so already: nothing to write */
    assert_int_equal(fixture_count(&f, ACTION_PERSIST_SETTING), 0);
    assert_int_equal(fixture_count(&f, ACTION_ANSWER), 1);
    assert_int_equal(set_to(&f, SETTING_ALLOCATOR, ALLOCATOR_V2), 0); /* as configured, but said: it is kept */
    assert_int_equal(core_setting_stored(f.core, SETTING_ALLOCATOR), ALLOCATOR_V2);
    assert_int_equal(set_to(&f, SETTING_ALLOCATOR, SETTING_UNSET), 0);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST_SETTING), 1);
    assert_int_equal(core_setting_value(f.core, SETTING_ALLOCATOR), ALLOCATOR_V2);
    assert_int_equal(core_setting_stored(f.core, SETTING_ALLOCATOR), SETTING_UNSET);

    assert_int_equal(set_to(&f, SETTING_ALLOCATOR, ALLOCATOR_COUNT), -EINVAL);
    assert_int_equal(set_to(&f, SETTING_ALLOCATOR, -2), -EINVAL);
    assert_int_equal(set_to(&f, SETTING_POLICY, POLICY_COUNT), -EINVAL);
    assert_int_equal(set_to(&f, SETTING_COUNT, 0), -EINVAL);
    assert_int_equal(set_to(&f, -1, 0), -EINVAL);
    fixture_fini(&f);
}

static void test_restore_setting(void **state)
{
    static const int two[] = {2};
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 2, two, 1, false);
    assert_int_equal(core_restore_setting(f.core, SETTING_ALLOCATOR, ALLOCATOR_COUNT), -EINVAL);
    assert_int_equal(core_restore_setting(f.core, SETTING_COUNT, 0), -EINVAL);
    assert_int_equal(core_restore_setting(f.core, SETTING_POLICY, SETTING_UNSET), 0);
    assert_int_equal(core_restore_setting(f.core, SETTING_ALLOCATOR, ALLOCATOR_V1), 0);
    fixture_up(&f, 0, 2, 0, NULL, 0);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST_SETTING), 0);
    assert_int_equal(fixture_state(&f, fixture_submit(&f, 2, NULL, 0, false)), JOB_STARTING);
    fixture_fini(&f);
}

static void test_setting_names(void **state)
{
    (void)state;
    assert_string_equal(core_setting_names(), "allocator policy");
    for (int i = 0; i < SETTING_COUNT; i++) {
        enum core_setting setting = (enum core_setting)i;
        assert_int_equal(core_setting_by_name(core_setting_name(setting)), i);
        assert_int_equal(core_setting_value_by_name(setting, "default"), -1); /* it is a word of its own */
        for (int value = 0; value < core_setting_count(setting); value++)
            assert_int_equal(core_setting_value_by_name(setting, core_setting_value_name(setting, value)), value);
    }
    assert_int_equal(core_setting_by_name("levels"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_restore_setting),
        cmocka_unit_test(test_setting_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
