/* test_admission.c - what supervisors are told about who may run jobs, and how long PAM's verdicts are kept. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "rsd/root/admission.h"

static const char *account(const struct admission *admission, const char *user, uid_t uid, int64_t now_ms)
{
    return admission_recall(admission, user, uid, now_ms).account;
}

static void test_verdicts_are_kept(void **state)
{
    struct admission admission = {0};
    (void)state;
    assert_null(account(&admission, "alice", 2001, 0));
    admission_keep_account(&admission, "alice", 2001, "", 1000);
    admission_keep_account(&admission, "bob", 2002, "expired", 2000);
    assert_string_equal(account(&admission, "alice", 2001, 1000 + ADMISSION_KEPT_MS - 1), "");
    assert_null(account(&admission, "alice", 2001, 1000 + ADMISSION_KEPT_MS));
    assert_string_equal(account(&admission, "bob", 2002, 1000 + ADMISSION_KEPT_MS), "expired");
    assert_null(account(&admission, "bob", 2001, 2000)); /* both count */
    assert_null(account(&admission, "robert", 2002, 2000));
    admission_keep_account(&admission, "bob", 2002, "", 3000); /* the latest counts */
    assert_string_equal(account(&admission, "bob", 2002, 3000), "");
    admission_fini(&admission);
    assert_null(account(&admission, "bob", 2002, 3000));
}

/* Each has its own time. */
static void test_lists_and_accounts(void **state)
{
    struct admission admission = {0};
    (void)state;
    admission_keep_account(&admission, "alice", 2001, "", 1000);
    assert_false(admission_recall(&admission, "alice", 2001, 1000).lists);
    admission_keep_lists(&admission, "alice", 2001, 5000);
    assert_string_equal(account(&admission, "alice", 2001, 5000), "");
    assert_null(account(&admission, "alice", 2001, 1000 + ADMISSION_KEPT_MS));
    assert_true(admission_recall(&admission, "alice", 2001, 1000 + ADMISSION_KEPT_MS).lists);
    assert_false(admission_recall(&admission, "alice", 2001, 5000 + ADMISSION_KEPT_MS).lists);
    admission_keep_lists(&admission, "bob", 2002, 5000);
    assert_null(account(&admission, "bob", 2002, 5000));
    assert_false(admission_recall(&admission, "alias", 2002, 5000).lists);
    admission_fini(&admission);
}

static void test_not_too_many(void **state)
{
    struct admission admission = {0};
    char name[32];
    (void)state;
    for (uid_t uid = 0; uid < 2 * ADMISSION_USERS; uid++) {
        snprintf(name, sizeof(name), "user%u", (unsigned)uid);
        if (uid < ADMISSION_USERS)
            admission_keep_lists(&admission, name, uid, uid);
        else
            admission_keep_account(&admission, name, uid, "", uid);
    }
    for (uid_t uid = 0; uid < 2 * ADMISSION_USERS; uid++) {
        snprintf(name, sizeof(name), "user%u", (unsigned)uid);
        assert_int_equal(account(&admission, name, uid, 1000) != NULL, uid >= ADMISSION_USERS);
        assert_false(admission_recall(&admission, name, uid, 1000).lists); /* of whoever was there before */
    }
    admission_fini(&admission);
}

static const char *told(const struct admission_words *words)
{
    static char all[8000];
    all[0] = 0;
    for (size_t i = 0; i < words->count; i++)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s;", words->items[i]);
    return all;
}

static void test_what_supervisors_are_told(void **state)
{
    struct admission_words words;
    struct rsd_config config;
    (void)state;
    rsd_config_default(&config);
    snprintf(config.name, sizeof(config.name), "ws1");
    snprintf(config.account, sizeof(config.account), "/a");
    assert_true(admission_is_local(&config, "ws1"));
    assert_false(admission_is_local(&config, "ws11"));
    assert_false(admission_is_local(&config, "")); /* an elmer that does not say where it was */
    admission_tell(&words, &config, true, true);
    assert_string_equal(told(&words), "ELMER_DENY_GROUPS=sudo wheel docker lxd disk libvirt adm;ELMER_ACCOUNT=/a;");
    admission_tell(&words, &config, false, true);
    assert_string_equal(told(&words), "ELMER_ACCOUNT=/a;");
    admission_tell(&words, &config, false, false);
    assert_string_equal(told(&words), "");
    snprintf(config.deny_users, sizeof(config.deny_users), "alice");
    config.deny_groups[0] = config.account[0] = 0;
    admission_tell(&words, &config, true, true);
    assert_string_equal(told(&words), "ELMER_DENY_USERS=alice;");
    config.name[0] = 0;
    assert_false(admission_is_local(&config, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts_are_kept),
        cmocka_unit_test(test_lists_and_accounts),
        cmocka_unit_test(test_not_too_many),
        cmocka_unit_test(test_what_supervisors_are_told),
    };
    return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
