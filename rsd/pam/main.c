/* main.c - elmer-account USER: asks PAM whether this account may be used on this host, and ends.
 *
 * Started by elmer-spawn, as the user, with little time. One line on its standard output is the answer: `yes`; `no
 * WHY`; anything else says why there is no verdict. Only the account lines of the service elmer are asked: nobody is
 * there to be authenticated, and what a session would be is the business of supervisors. */
#include "config.h"

#include <security/pam_appl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* The last complaint of a module, in one line. It says more than the result: that of Debian's common-account is
 * "Authentication failure", whatever the reason. */
static char said[300];

static void keep(const char *text)
{
    size_t length = strlen(text);
    while (length > 0 && strchr(" .\n", text[length - 1]))
        length--;
    if (length >= sizeof(said))
        length = sizeof(said) - 1;
    memcpy(said, text, length);
    said[length] = 0;
    for (char *at = said; (at = strchr(at, '\n'));)
        *at = ' ';
}

/* Modules may say something to somebody, or ask; nobody is there. */
static int converse(int count, const struct pam_message **messages, struct pam_response **answers, void *data)
{
    (void)data;
    for (int i = 0; i < count; i++) {
        if (messages[i]->msg_style != PAM_TEXT_INFO && messages[i]->msg_style != PAM_ERROR_MSG)
            return PAM_CONV_ERR;
        if (messages[i]->msg_style == PAM_ERROR_MSG && messages[i]->msg)
            keep(messages[i]->msg);
    }
    *answers = count > 0 ? calloc((size_t)count, sizeof(**answers)) : NULL; /* the module frees them */
    return *answers ? PAM_SUCCESS : PAM_BUF_ERR;
}

/* What is said of the account; all else is said of PAM, its modules or their servers. */
static int is_verdict(int code)
{
    static const int verdicts[] = {PAM_PERM_DENIED, PAM_ACCT_EXPIRED, PAM_NEW_AUTHTOK_REQD, PAM_AUTHTOK_EXPIRED,
                                   PAM_AUTH_ERR,    PAM_USER_UNKNOWN, PAM_CRED_EXPIRED};
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
        if (code == verdicts[i])
            return 1;
    }
    return 0;
}

/* The module's own program may have been killed, or may not have started: that of pam_unix leaves a refusal then, which
 * Debian's common-account cannot tell from one of the account, and which would be kept for a minute. Who is refused is
 * asked about once more; what holds is refused again. */
enum { ASKED_MAX = 2 };

/* *pam: of the last time; NULL: PAM has not begun. */
static int ask(const char *user, pam_handle_t **pam)
{
    const struct pam_conv conversation = {.conv = converse};
    int code = PAM_SYSTEM_ERR;
    for (int asked = 0; asked < ASKED_MAX; asked++) {
        if (*pam)
            pam_end(*pam, code);
        *pam = NULL;
        said[0] = 0;
        code = pam_start("elmer", user, &conversation, pam);
        if (code == PAM_SUCCESS)
            code = pam_acct_mgmt(*pam, 0);
        if (!is_verdict(code))
            break;
    }
    return code;
}

int main(int argc, char **argv)
{
    pam_handle_t *pam = NULL;
    int code;
    if (argc != 2 || !argv[1][0]) {
        fprintf(stderr, "usage: elmer-account USER: elmer-spawn starts it\n");
        return 2;
    }
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    code = ask(argv[1], &pam);
    if (code == PAM_SUCCESS)
        printf("yes\n");
    else
        printf("%s%s\n", is_verdict(code) ? "no " : "", said[0] ? said : pam_strerror(pam, code));
    fflush(stdout);
    if (pam)
        pam_end(pam, code);
    return 0;
}
