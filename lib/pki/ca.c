#include "config.h"

#include "lib/pki/ca.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/pki/counter.h"
#include "lib/pki/tokens.h"
#include "lib/pki/x509.h"

#define YEAR_S INT64_C(31536000)

enum { CA_YEARS = 25 };

static int64_t seconds(int64_t ms)
{
    return ms / 1000;
}

/* ---- making and opening ---- */

/* Who has the key in his memory is not looked into by others of his user, and leaves no core. */
static int guard_memory(struct err *err)
{
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : err_set(err, -errno, "cannot guard the CA's key in memory");
}

static int make_parts(int dir, struct err *err)
{
    static const char *const parts[] = {"tokens", "used"};

    for (size_t i = 0; i < 2; i++)
        if (mkdirat(dir, parts[i], 0700) < 0 && errno != EEXIST)
            return err_set(err, -errno, "cannot make the CA's directory %s: %s", parts[i], strerror(errno));
    return 0;
}

/* The key first: before ca.crt is there nothing is signed, and the next try begins anew. */
static int make_ca(int dir, const char *name, int64_t now_ms, struct err *err)
{
    char common[PKI_NAME_MAX + 1], *key = NULL, *certificate = NULL;
    int64_t begin = seconds(now_ms) - PKI_BACKDATE_S;
    int result;

    snprintf(common, sizeof(common), "Elmer CA of %.30s %" PRId64, name,
             seconds(now_ms)); /* a CA that is made anew has another name */
    result = pki_ca_create(common, begin, begin + CA_YEARS * YEAR_S, &key, &certificate, err);
    if (result == 0)
        result = make_parts(dir, err);
    if (result == 0)
        result = file_write(dir, "ca.key", key, 0600, err);
    if (result == 0)
        result = file_write(dir, "ca.crt", certificate, 0644, err);
    pki_key_free(key);
    free(certificate);
    return result;
}

/* ---- half a CA ---- */

#define KEY_BACK "put it back from a backup, where it is elmer-backup/ca/ca.key"
#define CERTIFICATE_BACK                                                                                               \
    "put it back from " ELMER_STATEDIR "/pki/ca.crt here, from " ELMER_RSD_STATEDIR                                    \
    "/pki/ca.crt of a host that has joined, or from a backup"

static bool is_there(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool has_files(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    bool found = false;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (const struct dirent *entry; !found && (entry = readdir(dir));)
        found = entry->d_name[0] != '.';
    closedir(dir);
    return found;
}

/* 0: both files are there. -ENOENT: there is no CA; a key with which nothing was signed is of a making that was
 * interrupted. -EUCLEAN: one of them is gone, with what to do. */
static int look_whole(int dir, struct err *err)
{
    bool key = is_there(dir, "ca.key"), certificate = is_there(dir, "ca.crt");

    if (key && certificate)
        return 0;
    if (certificate)
        return err_set(err, -EUCLEAN,
                       "ca.key, the CA's key, is gone, and without it nothing can be signed: " KEY_BACK
                       "; if there is none, move this directory away and make a new CA with eadmin init, which all "
                       "hosts have to join");
    if (key && (is_there(dir, "elmer.counter") || has_files(dir, "used")))
        return err_set(err, -EUCLEAN,
                       "ca.crt, the CA's certificate, is gone, and another one would be another CA, which no host "
                       "knows: " CERTIFICATE_BACK);
    return -ENOENT;
}

int ca_look(const char *path, struct err *err)
{
    int dir = file_dir(path, 0, err), result;

    if (dir < 0)
        return dir;
    result = look_whole(dir, err);
    if (result == -EUCLEAN && err)
        err_prefix(err, "%s", path);
    close(dir);
    return result;
}

/* Both were read: are they what they should be? */
static int check_whole(const struct ca *ca, struct err *err)
{
    struct pki_certificate facts;
    struct err why = ERR_INIT;

    if (pki_inspect(ca->certificate, &facts, &why) < 0)
        return err_set(err, -EUCLEAN, "ca.crt, the CA's certificate, is damaged (%s): " CERTIFICATE_BACK, why.text);
    if (pki_key_fits(ca->key, ca->certificate, &why) < 0)
        return err_set(err, -EUCLEAN, "ca.key, the CA's key, is damaged, or not that of ca.crt (%s): " KEY_BACK,
                       why.text);
    return 0;
}

/* ---- making and opening, as others see it ---- */

int ca_create(const char *path, const char *name, int64_t now_ms, struct err *err)
{
    int result, dir = file_dir(path, 0700, err);

    if (dir < 0)
        return dir;
    result = fchmod(dir, 0700) < 0 ? err_set(err, -errno, "cannot set the mode of %s: %s", path, strerror(errno)) : 0;
    if (result == 0) {
        result = look_whole(dir, err);
        if (result == -EUCLEAN && err)
            err_prefix(err, "%s", path);
        result = result == 0 ? 1 : result == -ENOENT ? 0 : result;
    }
    if (result == 0)
        result = guard_memory(err);
    if (result == 0)
        result = make_ca(dir, name, now_ms, err);
    close(dir);
    return result;
}

int ca_open(const char *path, struct ca *ca, struct err *err)
{
    struct stat st;
    int result = 0;

    *ca = (struct ca){.dir = file_dir(path, 0, err), .valid_ms = CA_VALID_MS};
    if (ca->dir < 0)
        result = ca->dir;
    else if (fstat(ca->dir, &st) < 0 || (st.st_mode & 077))
        result = err_set(err, -EPERM, "%s is open to others: chmod 700 %s", path, path);
    if (result == 0 && look_whole(ca->dir, err) == -EUCLEAN)
        result = -EUCLEAN;
    if (result == 0)
        result = file_read(ca->dir, "ca.crt", PKI_PEM_MAX, &ca->certificate, err);
    if (result == 0)
        result = guard_memory(err);
    if (result == 0)
        result = file_read(ca->dir, "ca.key", PKI_PEM_MAX, &ca->key, err);
    if (result == 0)
        result = check_whole(ca, err);
    if (result < 0) {
        if (err)
            err_prefix(err, "%s", path);
        ca_close(ca);
    }
    return result;
}

/* The counter belongs to the certificate that stands beside it. Without it, after a crash between, none is known, and
 * the next one is greater all the same, as the time is in it. */
static int put_renewed(struct ca *ca, char *certificate, struct err *err)
{
    uint64_t counter = 0;
    int result = ca_counter(ca, &counter, err);

    if (result == 0)
        result = file_write(ca->dir, "ca.crt", certificate, 0644, err);
    if (result == 0 && counter > 0)
        result = counter_write(ca->dir, certificate, counter, err);
    if (result < 0) {
        free(certificate);
        return result;
    }
    free(ca->certificate);
    ca->certificate = certificate;
    return 0;
}

int ca_renew(struct ca *ca, int64_t now_ms, struct err *err)
{
    struct pki_certificate facts;
    char *certificate = NULL;
    int64_t begin = seconds(now_ms) - PKI_BACKDATE_S;
    int result = pki_inspect(ca->certificate, &facts, err);

    if (result == 0 && seconds(now_ms) < pki_renewal_s(&facts))
        return 1;
    if (result == 0)
        result = pki_ca_renew(ca->key, ca->certificate, begin, begin + CA_YEARS * YEAR_S, &certificate, err);
    return result < 0 ? result : put_renewed(ca, certificate, err);
}

void ca_close(struct ca *ca)
{
    if (ca->valid_ms && ca->dir >= 0) /* else it was never opened */
        close(ca->dir);
    pki_key_free(ca->key);
    free(ca->certificate);
    *ca = (struct ca){.dir = -1};
}

/* ---- tokens ---- */

int ca_token(struct ca *ca, const char *const *hosts, size_t count, int uses, int64_t now_ms, int64_t valid_ms,
             char *text, struct err *err)
{
    struct token token = {0};
    uint8_t pin[PKI_SHA256_BYTES];
    int result = pki_sha256(ca->certificate, pin, err);

    tokens_tidy(ca->dir, now_ms);
    if (result == 0)
        result = token_create(pin, &token, err);
    if (result == 0)
        result = tokens_put(ca->dir, &token, hosts, count, uses, now_ms, now_ms + valid_ms, err);
    if (result == 0)
        token_encode(&token, text);
    return result;
}

/* ---- signing ---- */

static struct pki_terms terms_of(const struct ca *ca, bool server, const char *const *names, size_t count,
                                 int64_t now_ms)
{
    return (struct pki_terms){.server = server,
                              .names = names,
                              .count = count,
                              .begin_s = seconds(now_ms) - PKI_BACKDATE_S,
                              .end_s = seconds(now_ms + ca->valid_ms)};
}

int ca_counter(const struct ca *ca, uint64_t *counter, struct err *err)
{
    return counter_read(ca->dir, ca->certificate, counter, err);
}

/* Greater than all before. The time is in it for a directory that was restored from a backup: it does not know what
 * came after. */
static int next_counter(struct ca *ca, int64_t now_ms, uint64_t *counter, struct err *err)
{
    int result = ca_counter(ca, counter, err);

    if (result < 0)
        return result;
    *counter = seconds(now_ms) > 0 && (uint64_t)seconds(now_ms) > *counter ? (uint64_t)seconds(now_ms) : *counter + 1;
    return counter_write(ca->dir, ca->certificate, *counter, err);
}

int ca_issue_elmer(struct ca *ca, const char *request, const char *const *names, size_t count, int64_t now_ms,
                   char **certificate, struct err *err)
{
    struct pki_terms terms = terms_of(ca, true, names, count, now_ms);
    char *made = NULL;
    int result = next_counter(ca, now_ms, &terms.counter, err);

    if (result == 0)
        result = pki_issue(ca->key, ca->certificate, request, &terms, &made, err);
    if (result == 0)
        result = file_write(ca->dir, CA_ELMER, made, 0600, err);
    if (result == 0)
        *certificate = made;
    else
        free(made);
    return result;
}

/* proven: what the proof is of. */
static int sign_join(struct ca *ca, const char *host, bool taken, const char *token, const char *proof,
                     const char *proven, const char *request, int64_t now_ms, char **certificate, struct err *err)
{
    struct pki_terms terms = terms_of(ca, false, &host, 1, now_ms);
    int result = str_valid_hostname(host) ? pki_request_check(request, host, err)
                                          : err_set(err, -EINVAL, "this is not the name of a host");

    if (result == 0)
        result = tokens_use(ca->dir, token, host, taken, proven, proof, now_ms, err);
    if (result == 0)
        result = pki_issue(ca->key, ca->certificate, request, &terms, certificate, err);
    return result;
}

int ca_sign_join(struct ca *ca, const char *host, const char *token, const char *proof, const char *request,
                 int64_t now_ms, char **certificate, struct err *err)
{
    return sign_join(ca, host, false, token, proof, request, request, now_ms, certificate, err);
}

int ca_sign_rejoin(struct ca *ca, const char *host, const char *token, const char *proof, const char *request,
                   int64_t now_ms, char **certificate, struct err *err)
{
    return sign_join(ca, host, true, token, proof, request, request, now_ms, certificate, err);
}

int ca_sign_host(struct ca *ca, const char *host, bool taken, const char *token, const char *proof, const char *request,
                 const char *ticket_key, int64_t now_ms, char **certificate, char *ticket_certificate, struct err *err)
{
    char *proven = str_format("%s%s", request, ticket_key);
    int result = proven ? ca_sign_ticket_key(ca, host, ticket_key, ticket_certificate, err)
                        : err_set(err, -ENOMEM, "out of memory");

    if (result == 0) /* before it nothing is given away */
        result = sign_join(ca, host, taken, token, proof, proven, request, now_ms, certificate, err);
    free(proven);
    return result;
}

static int check_dates(const struct pki_certificate *facts, int64_t now_ms, struct err *err)
{
    char now[32], end[32];

    if (seconds(now_ms) < facts->end_s)
        return 0;
    wall_format((struct wall){now_ms}, now, sizeof(now));
    wall_format((struct wall){facts->end_s * 1000}, end, sizeof(end));
    return err_set(err, -EACCES,
                   "the certificate of %s ended at %s (the queue host's clock says %s): it cannot be renewed, only a "
                   "new token helps",
                   facts->name, end, now);
}

static int check_counter(const struct ca *ca, const struct pki_certificate *facts, struct err *err)
{
    uint64_t latest;
    int result = facts->server ? ca_counter(ca, &latest, err) : 0;

    if (result < 0 || !facts->server || facts->counter >= latest)
        return result;
    return err_set(
        err, -EACCES,
        "this certificate of elmer was replaced by `eadmin init`: restart elmer, which then uses the new one");
}

int ca_sign_renew(struct ca *ca, const char *old, const char *proof, const char *request, int64_t now_ms,
                  char **certificate, struct err *err)
{
    struct pki_certificate facts;
    struct pki_terms terms = terms_of(ca, false, NULL, 0, now_ms);
    int result = pki_inspect(old, &facts, err);

    if (result == 0)
        result = pki_verify(old, ca->certificate, err);
    if (result == 0)
        result = check_dates(&facts, now_ms, err);
    if (result == 0)
        result = check_counter(ca, &facts, err);
    if (result == 0)
        result = pki_proof_check(old, request, proof, err);
    if (result == 0)
        result = pki_reissue(ca->key, ca->certificate, request, old, terms.begin_s, terms.end_s, certificate, err);
    return result;
}
