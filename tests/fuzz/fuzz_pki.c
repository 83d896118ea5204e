/* fuzz_pki.c - certificates and requests that somebody else has made: read, looked at, checked, and signed again. The
 * input is the DER form, or a text. What is accepted says what we say it says; what is made of it is never more than
 * was wished. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/pki/x509.h"
#include "tests/fuzz/pem.h"

enum { BEGIN_S = 1700000000, END_S = BEGIN_S + 86400 };

static struct {
    char *ca_key, *ca, *key;
} ours;

static void make_ours(void)
{
    struct err err = ERR_INIT;

    if (ours.key)
        return;
    FUZZ_CHECK(pki_ca_create("Elmer CA", BEGIN_S, END_S, &ours.ca_key, &ours.ca, &err) == 0, "%s", err.text);
    FUZZ_CHECK(pki_key_create(&ours.key, &err) == 0, "%s", err.text);
}

static void check_refusal(int result, const struct err *err)
{
    FUZZ_CHECK((result == -EINVAL || result == -EACCES) && err->text[0] != '\0', "%d \"%s\"", result, err->text);
}

static void check_facts(const struct pki_certificate *facts)
{
    FUZZ_CHECK(facts->name[0] == '\0' || str_valid_hostname(facts->name), "name %s", facts->name);
    FUZZ_CHECK(strlen(facts->serial) >= 1 && strlen(facts->serial) % 2 == (strcmp(facts->serial, "0") == 0),
               "serial %s", facts->serial);
    for (const char *c = facts->serial; *c != '\0'; c++)
        FUZZ_CHECK(isxdigit((unsigned char)*c) && !islower((unsigned char)*c), "serial %s", facts->serial);
    (void)pki_renewal_s(facts);
}

/* It says nothing but what was wished. */
static void check_made(const char *certificate, const char *name, bool server)
{
    struct pki_certificate facts;
    struct err err = ERR_INIT;

    FUZZ_CHECK(pki_inspect(certificate, &facts, &err) == 0, "what we have signed: %s", err.text);
    FUZZ_CHECK(strcmp(facts.name, name) == 0, "%s instead of %s", facts.name, name);
    FUZZ_CHECK(!facts.ca && facts.server == server && facts.client == !server, "another use");
    FUZZ_CHECK(facts.begin_s == BEGIN_S && facts.end_s == END_S, "other dates");
    pem_signatures_hold(false);
    FUZZ_CHECK(pki_verify(certificate, ours.ca, &err) == 0, "not signed by us: %s", err.text);
}

static void renew(const char *old, const struct pki_certificate *facts)
{
    struct err err = ERR_INIT;
    char *request = NULL, *certificate = NULL;
    int result;

    if (facts->name[0] == '\0' || pki_request_create(ours.key, facts->name, &request, &err) != 0)
        return;
    result = pki_reissue(ours.ca_key, ours.ca, request, old, BEGIN_S, END_S, &certificate, &err);
    if (result == 0)
        check_made(certificate, facts->name, facts->server);
    else
        FUZZ_CHECK(err.text[0] != '\0', "no reason for %d", result);
    free(request);
    free(certificate);
}

/* thorough: also what takes long and is not expected to succeed. */
static void a_certificate(const char *text, bool thorough)
{
    struct pki_certificate facts;
    struct err err = ERR_INIT;
    uint8_t hash[PKI_SHA256_BYTES];
    int result = pki_inspect(text, &facts, &err), verified;

    if (result != 0) {
        check_refusal(result, &err);
        return;
    }
    check_facts(&facts);
    err_clear(&err);
    verified = pki_verify(text, ours.ca, &err);
    if (verified != 0)
        FUZZ_CHECK(err.text[0] != '\0', "no reason for %d", verified);
    FUZZ_CHECK(pki_sha256(text, hash, NULL) == 0, "no hash");
    if (verified == 0 || thorough) {
        FUZZ_CHECK(pki_key_fits(ours.key, text, NULL) != 0, "our key fits to a certificate of somebody else");
        renew(text, &facts);
    }
}

static void a_request(const char *text, bool thorough)
{
    static const char *const names[] = {"ws2", "10.0.0.2"};
    const struct pki_terms terms = {.names = names, .count = 2, .begin_s = BEGIN_S, .end_s = END_S};
    struct err err = ERR_INIT;
    char *certificate = NULL;
    int result = pki_request_check(text, names[0], &err);

    if (result != 0) {
        check_refusal(result, &err);
        FUZZ_CHECK(!thorough || pki_issue(ours.ca_key, ours.ca, text, &terms, &certificate, NULL) != 0,
                   "signs what is refused");
        return;
    }
    FUZZ_CHECK(pki_issue(ours.ca_key, ours.ca, text, &terms, &certificate, &err) == 0, "%s", err.text);
    check_made(certificate, "ws2", false);
    free(certificate);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    uint8_t how = input_byte(&input);
    bool request = how & 1;
    char *text;

    make_ours();
    pem_signatures_hold(how & 4);
    text =
        how & 2 ? input_rest(&input) : pem_wrap(request ? "CERTIFICATE REQUEST" : "CERTIFICATE", input.at, input.left);
    if (request)
        a_request(text, (how & 0x18) == 0x18);
    else
        a_certificate(text, (how & 0x18) == 0x18);
    free(text);
    pem_signatures_hold(false);
    return 0;
}
