/* certify.c - the key is made where it is kept; its public half goes out, the certificate and the CA's come back.
 * Neither is believed: the CA's must have the hash that the administrator's token names, and have signed the other. */
#include "config.h"

#include "rsd/tickets/certify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/pki/x509.h"
#include "lib/ticket/keys.h"
#include "lib/ticket/program.h"

static int tell_key(const struct ticket_keys *keys, struct err *err)
{
    char line[TICKET_HEX_KEY + 1];
    hex_write(keys->key, sizeof(keys->key), line);
    line[TICKET_HEX_KEY - 1] = '\n';
    if (write(TICKET_FD_SECOND, line, TICKET_HEX_KEY) != TICKET_HEX_KEY)
        return err_set(err, -EIO, "it cannot be told");
    close(TICKET_FD_SECOND);
    return 0;
}

/* Until the end of file: what is cut short does not hold. */
static int read_answer(char *text, struct err *err)
{
    size_t size = 0;
    ssize_t got;
    while ((got = read(TICKET_FD_FIRST, text + size, TICKET_ANSWER_MAX - size)) > 0)
        size += (size_t)got;
    text[size] = 0;
    return strlen(text) == size && size < TICKET_ANSWER_MAX ? 0 : err_set(err, -EINVAL, "the answer is damaged");
}

static int keep(struct ticket_keys *keys, char *answer, const char *pin, struct err *err)
{
    char *ca = strchr(answer, '\n'), hash[2 * PKI_SHA256_BYTES + 1];
    uint8_t sha256[PKI_SHA256_BYTES], authority[TICKET_KEY_BYTES], certificate[TICKET_SIGNATURE_BYTES];
    int result;
    if (!ca)
        return err_set(err, -EINVAL, "the answer is damaged");
    *ca++ = 0;
    result = pki_sha256(ca, sha256, err);
    hex_write(sha256, sizeof(sha256), hash);
    if (result == 0 && strcmp(hash, pin) != 0)
        result = err_set(err, -EACCES, "the CA is not the one of the token");
    if (result == 0)
        result = pki_public_key(ca, authority, err);
    if (result < 0)
        return result;
    if (keys->certified && memcmp(keys->authority, authority, sizeof(authority)) != 0)
        (void)unlinkat(keys->dir, "certificate", 0); /* of a cluster that the host has left: believed no longer */
    if (!hex_read(answer, certificate, sizeof(certificate)))
        return err_set(err, -EINVAL, "elmer has certified no key: it is of a version without tickets");
    return ticket_keys_certify(keys, authority, certificate, err);
}

int certify(const char *dir, const char *host, const char *pin)
{
    static char answer[TICKET_ANSWER_MAX + 1];
    struct ticket_keys keys;
    struct err err = ERR_INIT;
    int result = ticket_keys_open(&keys, dir, host, &err);
    if (result == 0)
        ticket_keys_forget_secret(&keys); /* nothing is signed here */
    if (result == 0)
        result = tell_key(&keys, &err);
    if (result == 0)
        result = read_answer(answer, &err);
    if (result == 0 && !*answer)
        return 1; /* nobody has answered, and has said why */
    if (result == 0)
        result = keep(&keys, answer, pin, &err);
    ticket_keys_close(&keys);
    if (result < 0)
        log_warning(
            "the ticket key of %s is not certified: %s; its users' jobs have no ticket that other hosts believe, "
            "and are refused where rsd.conf says tickets = require",
            host, err.text);
    return result < 0;
}
