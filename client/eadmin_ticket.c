/* eadmin_ticket.c - the ticket key of the queue host, whose rsd joins nobody: root certifies it here. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/eadmin.h"
#include "lib/base/hex.h"
#include "lib/pki/ca.h"
#include "lib/pki/x509.h"
#include "lib/ticket/keys.h"
#include "lib/ticket/program.h"

#define PROGRAM ELMER_LIBEXECDIR "/elmer-tickets"

/* The program has the key; we have the CA's. */
static int answer(const struct ca *ca, const char *host, int from, int to, struct err *err)
{
    char key[TICKET_HEX_KEY], certificate[PKI_PROOF_SIZE];
    int result;

    if (read(from, key, sizeof(key)) != (ssize_t)sizeof(key))
        return -ECANCELED; /* it has said why */
    key[sizeof(key) - 1] = 0;
    result = ca_sign_ticket_key(ca, host, key, certificate, err);
    if (result == 0 && dprintf(to, "%s\n%s", certificate, ca->certificate) < 0)
        result = err_set(err, -errno, "%s", strerror(errno));
    return result;
}

static int certify(const struct ca *ca, const char *host, struct err *err)
{
    char pin[2 * PKI_SHA256_BYTES + 1];
    uint8_t hash[PKI_SHA256_BYTES];
    const char *const args[] = {"elmer-tickets", "key", ELMER_TICKET_DIR, host, pin, NULL};
    const struct passwd *user = getpwnam("elmer-ticket");
    int in[2], out[2], result = pki_sha256(ca->certificate, hash, err);
    pid_t pid;

    if (result < 0)
        return result;
    if (!user)
        return err_set(err, -ENOENT, "there is no user elmer-ticket: run systemd-sysusers, then eadmin init again");
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return err_set(err, -errno, "%s", strerror(errno));
    hex_write(hash, sizeof(hash), pin);
    pid = ticket_program_start(PROGRAM, args, user->pw_uid, user->pw_gid, in[0], out[1], -1, err);
    close(in[0]);
    close(out[1]);
    result = pid < 0 ? pid : answer(ca, host, out[0], in[1], err);
    close(in[1]);
    close(out[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return result;
}

void eadmin_certify_ticket_key(const struct ca *ca, const char *host)
{
    struct err err = ERR_INIT;

    if (access(PROGRAM, X_OK) < 0) {
        say("there is no rsd here, so nobody signs what is submitted on this host, and others refuse it: install it "
            "(elmer-rsd), then eadmin init again");
        return;
    }
    if (certify(ca, host, &err) < 0 && err.text[0])
        say("no ticket key for jobs that are submitted here: %s", err.text);
}
