/* tls_context.c - from files to an SSL_CTX: what every session shares. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "lib/base/file.h"
#include "lib/net/tls_internal.h"
#include "lib/pki/counter.h"
#include "lib/pki/x509.h"

enum { CHAIN_BYTES_MAX = 16 * 1024, CHAIN_DEPTH_MAX = 1, PATH_BYTES = 4200 };

struct files {
    char ca_path[PATH_BYTES], cert_path[PATH_BYTES], key_path[PATH_BYTES];
    X509 *ca, *cert;
    EVP_PKEY *key;
};

static void files_fini(struct files *files)
{
    X509_free(files->ca);
    X509_free(files->cert);
    EVP_PKEY_free(files->key);
}

static int unusable(const char *path, const char *what, struct err *err)
{
    unsigned long code = ERR_get_error();
    const char *why = ERR_reason_error_string(code);

    ERR_clear_error();
    return err_set(err, -EINVAL, "%s: %s%s%s", path, what, why ? ": " : "", why ? why : "");
}

static FILE *open_file(const char *path, struct err *err)
{
    FILE *file = fopen(path, "re");

    if (!file)
        err_set(err, -errno, "%s: %s", path, strerror(errno));
    return file;
}

static int read_certificate(const char *path, X509 **certificate, struct err *err)
{
    FILE *file = open_file(path, err);

    if (!file)
        return -errno;
    *certificate = PEM_read_X509(file, NULL, NULL, NULL);
    (void)fclose(file);
    return *certificate ? 0 : unusable(path, "not a certificate in PEM form", err);
}

/* A passphrase cannot be asked for. */
static int no_passphrase(char *buf, int size, int writing, void *data)
{
    (void)buf;
    (void)size;
    (void)writing;
    (void)data;
    return -1;
}

static int read_key(const char *path, EVP_PKEY **key, struct err *err)
{
    FILE *file = open_file(path, err);
    struct stat st;

    if (!file)
        return -errno;
    if (fstat(fileno(file), &st) != 0 || (st.st_mode & 077) != 0) {
        (void)fclose(file);
        return err_set(err, -EINVAL, "%s: others than its owner may read this key: chmod 600", path);
    }
    *key = PEM_read_PrivateKey(file, NULL, no_passphrase, NULL);
    (void)fclose(file);
    return *key ? 0 : unusable(path, "not a private key in PEM form", err);
}

/* Files that do not belong together (half of a renewal, another cluster's) are refused here, once, and not by each
 * peer. */
static int check_together(const struct files *files, bool server, struct err *err)
{
    EVP_PKEY *ca_key = X509_get0_pubkey(files->ca);

    if (X509_check_private_key(files->cert, files->key) != 1)
        return unusable(files->key_path, "this key does not belong to the certificate beside it", err);
    if (!ca_key || X509_verify(files->cert, ca_key) != 1)
        return unusable(files->cert_path, "this certificate is not signed by the CA beside it", err);
    if (!tls_has_use(files->cert, server))
        return err_set(err, -EINVAL, "%s: this is not the certificate of a %s (its extended key usage lacks %s)",
                       files->cert_path, server ? "queue host" : "workstation", server ? "serverAuth" : "clientAuth");
    return 0;
}

static int read_files(const char *dir, bool server, struct files *files, struct err *err)
{
    int result;

    *files = (struct files){.ca = NULL};
    (void)snprintf(files->ca_path, sizeof(files->ca_path), "%.4000s/ca.crt", dir);
    (void)snprintf(files->cert_path, sizeof(files->cert_path), "%.4000s/host.crt", dir);
    (void)snprintf(files->key_path, sizeof(files->key_path), "%.4000s/host.key", dir);
    ERR_clear_error();
    result = read_certificate(files->ca_path, &files->ca, err);
    if (result == 0)
        result = read_certificate(files->cert_path, &files->cert, err);
    if (result == 0)
        result = read_key(files->key_path, &files->key, err);
    return result == 0 ? check_together(files, server, err) : result;
}

/* ---- the SSL_CTX ---- */

/* An application's time is the server's own business (tls_verify.c): a workstation's clock may be a year off. */
static bool set_rules(SSL_CTX *ssl)
{
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ssl);

    SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_max_cert_list(ssl, CHAIN_BYTES_MAX);
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ssl, tls_verify_chain, NULL);
    X509_VERIFY_PARAM_set_depth(param, CHAIN_DEPTH_MAX);
    return X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME) == 1 && SSL_CTX_set_num_tickets(ssl, 0) == 1 &&
           SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) == 1;
}

/* A server's chain has the CA certificate in it, for those who want to join. */
static bool use_files(SSL_CTX *ssl, const struct files *files, bool server)
{
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl), files->ca) == 1 &&
           SSL_CTX_use_certificate(ssl, files->cert) == 1 && SSL_CTX_use_PrivateKey(ssl, files->key) == 1 &&
           (!server || SSL_CTX_add1_chain_cert(ssl, files->ca) == 1);
}

static void note_authority(struct tls_context *context, const struct files *files)
{
    size_t size = sizeof(context->authority);
    EVP_PKEY *key = X509_get0_pubkey(files->ca);

    context->has_authority = key && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519 &&
                             EVP_PKEY_get_raw_public_key(key, context->authority, &size) == 1 &&
                             size == sizeof(context->authority);
}

static int make_ssl(struct tls_context *context, SSL_CTX **out, struct err *err)
{
    bool server = context->role == TLS_SERVER, good;
    SSL_CTX *ssl = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    struct files files = {.ca = NULL};
    int result = 0;

    good = ssl && set_rules(ssl);
    if (good && context->dir) {
        result = read_files(context->dir, server, &files, err);
        good = result == 0 && use_files(ssl, &files, server);
        if (good && server)
            note_authority(context, &files);
    }
    files_fini(&files);
    if (good) {
        *out = ssl;
        return 0;
    }
    SSL_CTX_free(ssl);
    return result != 0 ? result : unusable(context->dir ? context->dir : "TLS", "OpenSSL refuses it", err);
}

static int read_counter(struct tls_context *context, struct err *err)
{
    struct err why = ERR_INIT;
    int dir = file_dir(context->dir, 0, err), result;

    if (dir < 0)
        return dir;
    free(context->ca);
    context->ca = NULL;
    result = file_read(dir, "ca.crt", PKI_PEM_MAX, &context->ca, &why);
    if (result == 0)
        result = counter_read(dir, context->ca, &context->counter, &why);
    (void)close(dir);
    return result < 0 ? err_set(err, result, "%s: %s", context->dir, why.text) : 0;
}

static int create(enum tls_role role, const char *dir, struct tls_context **out, struct err *err)
{
    struct tls_context *context = calloc(1, sizeof(*context));
    int result;

    if (!context || (dir && !(context->dir = strdup(dir)))) {
        free(context);
        return err_set(err, -ENOMEM, "out of memory");
    }
    context->refs = 1;
    context->role = role;
    result = make_ssl(context, &context->ssl, err);
    if (result == 0 && role == TLS_CLIENT)
        result = read_counter(context, err);
    if (result != 0) {
        tls_context_unref(context);
        return result;
    }
    *out = context;
    return 0;
}

int tls_context_server(const char *dir, tls_judge judge, void *data, struct tls_context **context, struct err *err)
{
    int result = create(TLS_SERVER, dir, context, err);

    if (result == 0) {
        (*context)->judge = judge;
        (*context)->judge_data = data;
    }
    return result;
}

int tls_context_client(const char *dir, struct tls_context **context, struct err *err)
{
    return create(TLS_CLIENT, dir, context, err);
}

int tls_context_joiner(const uint8_t ca_sha256[TLS_PIN_BYTES], struct tls_context **context, struct err *err)
{
    int result = create(TLS_JOINER, NULL, context, err);

    if (result == 0)
        memcpy((*context)->pin, ca_sha256, TLS_PIN_BYTES);
    return result;
}

int tls_context_reload(struct tls_context *context, struct err *err)
{
    SSL_CTX *ssl;
    int result = make_ssl(context, &ssl, err);

    if (result != 0)
        return result;
    SSL_CTX_free(context->ssl); /* sessions have references of their own */
    context->ssl = ssl;
    return context->role == TLS_CLIENT ? read_counter(context, err) : 0;
}

struct tls_context *tls_context_ref(struct tls_context *context)
{
    context->refs++;
    return context;
}

void tls_context_unref(struct tls_context *context)
{
    if (!context || --context->refs > 0)
        return;
    SSL_CTX_free(context->ssl);
    free(context->dir);
    free(context->ca);
    free(context);
}

bool tls_context_authority(const struct tls_context *context, uint8_t key[TLS_AUTHORITY_BYTES])
{
    memcpy(key, context->authority, TLS_AUTHORITY_BYTES);
    return context->has_authority;
}
