/* test_sign.c - what elmer-signer answers to a request, and what it says in its log; with a CA that is none. That the
 * program signs with a real one is tests/daemon/test_signer. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/pki/x509.h"
#include "signer/sign.h"

enum { NOW_MS = 1234567 };

/* What the CA was asked for, what it answers, and the lines of the log. */
static struct {
    char asked[400], said[1600];
    int result;
    const char *why;
} f;

static struct ca ca;

/* ---- fakes of lib/pki and of the log ---- */

static int answer(char **certificate, struct err *err)
{
    if (f.result < 0)
        return err_set(err, f.result, "%s", f.why);
    *certificate = strdup("CERTIFICATE");
    return 0;
}

int ca_sign_join(struct ca *of, const char *host, const char *token, const char *proof, const char *request,
                 int64_t now_ms, char **certificate, struct err *err)
{
    assert_ptr_equal(of, &ca);
    assert_int_equal(now_ms, NOW_MS);
    snprintf(f.asked, sizeof(f.asked), "join %s %s %s %s", host, token, proof, request);
    return answer(certificate, err);
}

int ca_sign_rejoin(struct ca *of, const char *host, const char *token, const char *proof, const char *request,
                   int64_t now_ms, char **certificate, struct err *err)
{
    assert_ptr_equal(of, &ca);
    assert_int_equal(now_ms, NOW_MS);
    snprintf(f.asked, sizeof(f.asked), "rejoin %s %s %s %s", host, token, proof, request);
    return answer(certificate, err);
}

int ca_sign_host(struct ca *of, const char *host, bool taken, const char *token, const char *proof, const char *request,
                 const char *ticket_key, int64_t now_ms, char **certificate, char *ticket_certificate, struct err *err)
{
    assert_ptr_equal(of, &ca);
    assert_int_equal(now_ms, NOW_MS);
    snprintf(f.asked, sizeof(f.asked), "host %s %d %s %s %s %s", host, taken, token, proof, request, ticket_key);
    snprintf(ticket_certificate, PKI_PROOF_SIZE, "%s", "TICKET");
    return answer(certificate, err);
}

int ca_sign_renew(struct ca *of, const char *old, const char *proof, const char *request, int64_t now_ms,
                  char **certificate, struct err *err)
{
    assert_ptr_equal(of, &ca);
    assert_int_equal(now_ms, NOW_MS);
    snprintf(f.asked, sizeof(f.asked), "renew %s %s %s", old, proof, request);
    return answer(certificate, err);
}

int pki_inspect(const char *certificate, struct pki_certificate *facts, struct err *err)
{
    (void)err;
    assert_string_equal(certificate, "CERTIFICATE");
    *facts = (struct pki_certificate){.name = "ws2", .serial = "0A"};
    return 0;
}

#define SAY(level)                                                                                                     \
    size_t used = strlen(f.said);                                                                                      \
    va_list list;                                                                                                      \
    va_start(list, format);                                                                                            \
    used += (size_t)snprintf(f.said + used, sizeof(f.said) - used, level " ");                                         \
    vsnprintf(f.said + used, sizeof(f.said) - used, format, list);                                                     \
    va_end(list)

void __wrap_log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_log_notice(const char *format, ...)
{
    SAY("notice");
}

void __wrap_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_log_warning(const char *format, ...)
{
    SAY("warning");
}

/* ---- requests ---- */

static int begin(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    return 0;
}

static struct wire_message request_of(enum wire_type type, const char *host)
{
    struct wire_message message = {.type = type, .id = 7};
    if (type == WIRE_sign_join)
        message.u.sign_join =
            (struct wire_sign_join){.host = host, .token = "TOKEN", .proof = "PROOF", .request = "REQUEST"};
    else if (type == WIRE_sign_rejoin)
        message.u.sign_rejoin =
            (struct wire_sign_rejoin){.host = host, .token = "TOKEN", .proof = "PROOF", .request = "REQUEST"};
    else if (type == WIRE_sign_host)
        message.u.sign_host = (struct wire_sign_host){
            .host = host, .taken = true, .token = "TOKEN", .proof = "PROOF", .request = "REQUEST", .ticket_key = "KEY"};
    else if (type == WIRE_sign_renew)
        message.u.sign_renew = (struct wire_sign_renew){.certificate = "OLD", .proof = "PROOF", .request = "REQUEST"};
    return message;
}

static void issued(enum wire_type type, const char *asked, const char *said)
{
    struct wire_message request = request_of(type, "ws2");
    struct sign_answer got;
    begin(NULL);
    sign(&ca, &request, NOW_MS, &got);
    assert_string_equal(f.asked, asked);
    assert_string_equal(f.said, said);
    assert_int_equal(got.message.type, type == WIRE_sign_host ? WIRE_issued_host : WIRE_issued);
    assert_int_equal(got.message.id, 7);
    if (type == WIRE_sign_host) {
        assert_string_equal(got.message.u.issued_host.certificate, "CERTIFICATE");
        assert_string_equal(got.message.u.issued_host.ticket_certificate, "TICKET");
    } else {
        assert_string_equal(got.message.u.issued.certificate, "CERTIFICATE");
    }
    sign_answer_fini(&got);
}

static void each_request_reaches_the_ca_as_it_is(void **state)
{
    (void)state;
    issued(WIRE_sign_join, "join ws2 TOKEN PROOF REQUEST", "notice host=ws2 certificate 0A signed, for a token");
    issued(WIRE_sign_rejoin, "rejoin ws2 TOKEN PROOF REQUEST", "notice host=ws2 certificate 0A signed, for a token");
    issued(WIRE_sign_host, "host ws2 1 TOKEN PROOF REQUEST KEY", "notice host=ws2 certificate 0A signed, for a token");
    issued(WIRE_sign_renew, "renew OLD PROOF REQUEST", "notice host=ws2 certificate 0A signed, to follow an older one");
}

static void refused(enum wire_type type, const char *host, int result, const char *why, const char *word,
                    const char *said)
{
    struct wire_message request = request_of(type, host);
    struct sign_answer got;
    begin(NULL);
    f.result = result;
    f.why = why;
    sign(&ca, &request, NOW_MS, &got);
    assert_int_equal(got.message.type, WIRE_error);
    assert_int_equal(got.message.id, 7);
    assert_string_equal(got.message.u.error.code, word);
    assert_null(got.certificate);
    assert_string_equal(f.said, said);
    if (*f.asked)
        assert_string_equal(got.message.u.error.text, why);
    sign_answer_fini(&got);
}

/* Who may try again with another token is told apart from what is wrong with the request or here. */
static void a_refusal_has_its_code(void **state)
{
    (void)state;
    refused(WIRE_sign_join, "ws2", -EACCES, "the token was used", WIRE_CODE_NOT_PERMITTED,
            "warning host=ws2 no certificate: the token was used");
    refused(WIRE_sign_rejoin, "ws2", -EINVAL, "no such name", WIRE_CODE_REFUSED,
            "warning host=ws2 no certificate: no such name");
    refused(WIRE_sign_host, "ws2", -EACCES, "the token was used", WIRE_CODE_NOT_PERMITTED,
            "warning host=ws2 no certificate: the token was used");
    refused(WIRE_sign_renew, NULL, -EIO, "the disk", WIRE_CODE_REFUSED, "warning no certificate: the disk");
}

/* elmer is not trusted, nor who speaks through it: the log has one line, of printable characters. */
static void a_host_cannot_write_lines_into_the_log(void **state)
{
    (void)state;
    refused(WIRE_sign_join, "a\nhost=ws1 certificate 0B signed", -EACCES, "not\x1b[1m so", WIRE_CODE_NOT_PERMITTED,
            "warning host=a\\x0Ahost=ws1 certificate 0B signed no certificate: not\\x1B[1m so");
    assert_null(strchr(f.said, '\n'));
}

static void a_long_name_is_cut(void **state)
{
    char name[256];
    struct wire_message request;
    struct sign_answer got;
    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    f.result = -EINVAL;
    f.why = "no";
    request = request_of(WIRE_sign_join, name);
    sign(&ca, &request, NOW_MS, &got);
    assert_true(strlen(f.said) < 150);
    assert_non_null(strstr(f.said, "no certificate: no"));
    sign_answer_fini(&got);
}

static void what_is_no_request_does_not_reach_the_ca(void **state)
{
    (void)state;
    for (int type = 0; type < WIRE_TYPE_COUNT; type++) {
        char said[200];
        if (type == WIRE_sign_join || type == WIRE_sign_rejoin || type == WIRE_sign_host || type == WIRE_sign_renew)
            continue;
        snprintf(said, sizeof(said), "warning no certificate: %s is no request to sign",
                 wire_type_name((enum wire_type)type));
        refused((enum wire_type)type, NULL, 0, NULL, WIRE_CODE_REFUSED, said);
        assert_string_equal(f.asked, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_request_reaches_the_ca_as_it_is, begin),
        cmocka_unit_test_setup(a_refusal_has_its_code, begin),
        cmocka_unit_test_setup(a_host_cannot_write_lines_into_the_log, begin),
        cmocka_unit_test_setup(a_long_name_is_cut, begin),
        cmocka_unit_test_setup(what_is_no_request_does_not_reach_the_ca, begin),
    };
    return cmocka_run_group_tests_name("sign", tests, NULL, NULL);
}
