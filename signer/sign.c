#include "config.h"

#include "signer/sign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/pki/x509.h"

static int ask_ca(struct ca *ca, const struct wire_message *request, int64_t now_ms, struct sign_answer *answer)
{
    const struct wire_sign_join *join = &request->u.sign_join;
    const struct wire_sign_rejoin *rejoin = &request->u.sign_rejoin;
    const struct wire_sign_renew *renew = &request->u.sign_renew;
    const struct wire_sign_host *host = &request->u.sign_host;

    if (request->type == WIRE_sign_join)
        return ca_sign_join(ca, join->host, join->token, join->proof, join->request, now_ms, &answer->certificate,
                            &answer->err);
    if (request->type == WIRE_sign_rejoin)
        return ca_sign_rejoin(ca, rejoin->host, rejoin->token, rejoin->proof, rejoin->request, now_ms,
                              &answer->certificate, &answer->err);
    if (request->type == WIRE_sign_renew)
        return ca_sign_renew(ca, renew->certificate, renew->proof, renew->request, now_ms, &answer->certificate,
                             &answer->err);
    if (request->type == WIRE_sign_host)
        return ca_sign_host(ca, host->host, host->taken, host->token, host->proof, host->request, host->ticket_key,
                            now_ms, &answer->certificate, answer->ticket_certificate, &answer->err);
    return err_set(&answer->err, -EINVAL, "%s is no request to sign", wire_type_name(request->type));
}

static void log_issued(const struct wire_message *request, const char *certificate)
{
    struct pki_certificate facts;

    if (pki_inspect(certificate, &facts, NULL) == 0)
        log_notice("host=%s certificate %s signed, %s", facts.name, facts.serial,
                   request->type == WIRE_sign_renew ? "to follow an older one" : "for a token");
}

static void log_refused(const struct wire_message *request, const char *text)
{
    const char *host = request->type == WIRE_sign_join     ? request->u.sign_join.host
                       : request->type == WIRE_sign_rejoin ? request->u.sign_rejoin.host
                       : request->type == WIRE_sign_host   ? request->u.sign_host.host
                                                           : "";
    char printable_host[100], printable[1100];

    str_printable(printable_host, sizeof(printable_host), host, strlen(host));
    str_printable(printable, sizeof(printable), text, strlen(text));
    log_warning("%s%s%sno certificate: %s", *host ? "host=" : "", printable_host, *host ? " " : "", printable);
}

void sign(struct ca *ca, const struct wire_message *request, int64_t now_ms, struct sign_answer *answer)
{
    int result;

    *answer = (struct sign_answer){.message = {.id = request->id}};
    result = ask_ca(ca, request, now_ms, answer);
    if (result == 0) {
        if (request->type == WIRE_sign_host) {
            answer->message.type = WIRE_issued_host;
            answer->message.u.issued_host.certificate = answer->certificate;
            answer->message.u.issued_host.ticket_certificate = answer->ticket_certificate;
        } else {
            answer->message.type = WIRE_issued;
            answer->message.u.issued.certificate = answer->certificate;
        }
        log_issued(request, answer->certificate);
        return;
    }
    answer->message.type = WIRE_error;
    answer->message.u.error.code = result == -EACCES ? WIRE_CODE_NOT_PERMITTED : WIRE_CODE_REFUSED;
    answer->message.u.error.text = answer->err.text;
    log_refused(request, answer->err.text);
}

void sign_answer_fini(struct sign_answer *answer)
{
    free(answer->certificate);
}
