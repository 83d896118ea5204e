/* test_account.c - what elmer-account makes of PAM's answers, with a PAM that is a list of them. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <security/pam_appl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int account_main(int argc, char **argv); /* rsd/pam/main.c, whose main() is called so here */
#undef main

static const int *codes; /* of one question after the other */
static const char *complaint;
static int asked, begun;
static const struct pam_conv *conversation;

int pam_start(const char *service, const char *user, const struct pam_conv *conv, pam_handle_t **pam)
{
    assert_string_equal(service, "elmer");
    assert_string_equal(user, "alice");
    conversation = conv;
    begun++;
    *pam = (pam_handle_t *)&begun;
    return PAM_SUCCESS;
}

int pam_acct_mgmt(pam_handle_t *pam, int flags)
{
    const struct pam_message message = {.msg_style = PAM_ERROR_MSG, .msg = complaint}, *messages[] = {&message};
    struct pam_response *answers = NULL;
    assert_ptr_equal(pam, &begun);
    assert_int_equal(flags, 0);
    if (complaint)
        assert_int_equal(conversation->conv(1, messages, &answers, NULL), PAM_SUCCESS);
    free(answers);
    return codes[asked++];
}

int pam_end(pam_handle_t *pam, int status)
{
    assert_ptr_equal(pam, &begun);
    assert_int_equal(status, codes[asked - 1]);
    begun--;
    return PAM_SUCCESS;
}

const char *pam_strerror(pam_handle_t *pam, int code)
{
    (void)pam;
    return code == PAM_AUTH_ERR ? "Authentication failure" : "System error";
}

static void expect(const int *answers, int questions, const char *line)
{
    char text[200] = "", program[] = "elmer-account", user[] = "alice", *argv[] = {program, user, NULL};
    int ends[2], kept = dup(STDOUT_FILENO);
    codes = answers;
    asked = 0;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
    close(ends[1]);
    int code = account_main(2, argv);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    close(ends[0]);
    assert_int_equal(code, 0);
    assert_string_equal(text, line);
    assert_int_equal(asked, questions);
    assert_int_equal(begun, 0);
}

/* pam_unix's program was killed once: that is none of the account's. */
static void test_asked_again(void **state)
{
    (void)state;
    complaint = NULL;
    expect((int[]){PAM_AUTH_ERR, PAM_SUCCESS}, 2, "yes\n");
    expect((int[]){PAM_AUTH_ERR, PAM_SYSTEM_ERR}, 2, "System error\n");
}

static void test_verdicts(void **state)
{
    (void)state;
    complaint = NULL;
    expect((int[]){PAM_SUCCESS}, 1, "yes\n");
    expect((int[]){PAM_AUTH_ERR, PAM_AUTH_ERR}, 2, "no Authentication failure\n");
    expect((int[]){PAM_SYSTEM_ERR}, 1, "System error\n");
    complaint = "Your account has expired.\n";
    expect((int[]){PAM_ACCT_EXPIRED, PAM_ACCT_EXPIRED}, 2, "no Your account has expired\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_asked_again), cmocka_unit_test(test_verdicts)};
    return cmocka_run_group_tests_name("elmer-account", tests, NULL, NULL);
}
