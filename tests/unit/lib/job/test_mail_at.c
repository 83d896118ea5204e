/* test_mail_at.c - the words of mail_at. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "lib/job/mail_at.h"

static void words(void **state)
{
    static const char *const lists[][2] = {{"begin", "begin"},
                                           {"end", "end"},
                                           {"fail", "fail"},
                                           {"fail,begin", "begin,fail"},
                                           {"end,begin", "begin,end"},
                                           {"fail,end", "end,fail"},
                                           {"end,fail,end,begin", "begin,end,fail"}};
    char text[MAIL_AT_TEXT], why[MAIL_AT_WHY];
    struct mail_at at;

    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        assert_int_equal(mail_at_parse(lists[i][0], &at, why), 0);
        mail_at_text(&at, text);
        assert_string_equal(text, lists[i][1]);
    }
    mail_at_text(&(struct mail_at){.begin = false}, text);
    assert_string_equal(text, "");
}

static void no_words(void **state)
{
    static const char *const lists[] = {"", "start", "end,", ",end", "end, fail", "END", "ends", "en"};
    static const char *const wrong[] = {"''", "'start'", "''", "''", "' fail'", "'END'", "'ends'", "'en'"};
    char why[MAIL_AT_WHY];
    struct mail_at at;

    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        assert_int_equal(mail_at_parse(lists[i], &at, why), -1);
        if (strncmp(why, wrong[i], strlen(wrong[i])) != 0)
            fail_msg("%s", why);
        assert_non_null(strstr(why, " is none of begin, end, fail; several are separated by commas"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(no_words)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
