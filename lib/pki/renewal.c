#include "config.h"

#include "lib/pki/renewal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/pki/pair.h"

void pki_renewal_fini(struct pki_renewal *renewal)
{
    pki_key_free(renewal->key);
    free(renewal->old);
    free(renewal->request);
    *renewal = (struct pki_renewal){.old = NULL};
}

static int prepare(int dir, struct pki_renewal *r, struct err *err)
{
    struct pki_certificate facts;
    char *old_key = NULL;
    int result = file_read(dir, "host.crt", PKI_PEM_MAX, &r->old, err);

    if (result == 0)
        result = file_read(dir, "host.key", PKI_PEM_MAX, &old_key, err);
    if (result == 0)
        result = pki_inspect(r->old, &facts, err);
    if (result == 0)
        result = pki_key_create(&r->key, err);
    if (result == 0)
        result = pki_request_create(r->key, facts.name, &r->request, err);
    if (result == 0)
        result = pki_prove(old_key, r->request, r->proof, err);
    pki_key_free(old_key);
    return result;
}

int pki_renewal_prepare(const char *path, struct pki_renewal *renewal, struct err *err)
{
    struct pki_renewal made = {.old = NULL};
    int dir = file_dir(path, 0, err), result = dir < 0 ? dir : prepare(dir, &made, err);

    if (dir >= 0)
        close(dir);
    if (result == 0)
        *renewal = made;
    else
        pki_renewal_fini(&made);
    return result;
}

static int check(int dir, const struct pki_renewal *r, const char *certificate, struct err *err)
{
    struct pki_certificate old = {0}, facts = {0};
    char *ca = NULL;
    int result = file_read(dir, "ca.crt", PKI_PEM_MAX, &ca, err);

    if (result == 0)
        result = pki_verify(certificate, ca, err);
    if (result == 0)
        result = pki_key_fits(r->key, certificate, err);
    if (result == 0)
        result = pki_inspect(r->old, &old, err);
    if (result == 0)
        result = pki_inspect(certificate, &facts, err);
    if (result == 0 && (strcmp(old.name, facts.name) != 0 || old.client != facts.client || old.server != facts.server))
        result = err_set(err, -EACCES, "the new certificate is for %s and not the same use", facts.name);
    free(ca);
    return result;
}

int pki_renewal_save(const char *path, const struct pki_renewal *renewal, const char *certificate, struct err *err)
{
    int dir = file_dir(path, 0, err), result = dir < 0 ? dir : check(dir, renewal, certificate, err);

    if (result == 0)
        result = pair_write(dir, renewal->key, certificate, err);
    if (dir >= 0)
        close(dir);
    return result;
}

int pki_renewal_recover(const char *path, struct pki_certificate *facts, struct err *err)
{
    char *certificate = NULL;
    int dir = file_dir(path, 0, err), result = dir < 0 ? dir : pair_recover(dir, err);

    if (result == 0)
        result = file_read(dir, "host.crt", PKI_PEM_MAX, &certificate, err);
    if (result == 0)
        result = pki_inspect(certificate, facts, err);
    free(certificate);
    if (dir >= 0)
        close(dir);
    return result;
}
