/* keys.c - see keys.h. */
#include "config.h"

#include "lib/ticket/keys.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/hex.h"
#include "lib/base/str.h"

#define COUNTER_MAX (UINT64_C(1) << 62)

enum { FILE_BYTES = 1024, RESERVE = 1000 };

/* The line without its end; -EINVAL. */
static int read_line(int dir, const char *name, char **line, struct err *err)
{
    int result = file_read(dir, name, FILE_BYTES, line, err);
    char *end = result == 0 ? strchr(*line, '\n') : NULL;
    if (result == 0 && (!end || end[1])) {
        free(*line);
        *line = NULL;
        return err_set(err, -EINVAL, "%s is damaged", name);
    }
    if (end)
        *end = 0;
    return result;
}

/* ---- the key ---- */

static int make_key(struct ticket_keys *keys, struct err *err)
{
    char text[TICKET_HEX_KEY + 1];
    int result;
    if (!ticket_key_create(keys->secret, keys->key))
        return err_set(err, -EIO, "a ticket key cannot be made");
    hex_write(keys->secret, sizeof(keys->secret), text);
    text[TICKET_HEX_KEY - 1] = '\n';
    text[TICKET_HEX_KEY] = 0;
    result = file_write(keys->dir, "counter", "0\n", 0600, err); /* a key without it has lost it */
    if (result == 0)
        result = file_write(keys->dir, "key", text, 0600, err);
    explicit_bzero(text, sizeof(text));
    return result;
}

static int load_key(struct ticket_keys *keys, struct err *err)
{
    struct err none = ERR_INIT;
    char *line = NULL;
    int result = read_line(keys->dir, "key", &line, &none);
    if (result == -ENOENT)
        return make_key(keys, err);
    if (result < 0)
        return err_set(err, result, "%s", none.text);
    if (!hex_read(line, keys->secret, sizeof(keys->secret)) || !ticket_key_of(keys->secret, keys->key))
        result = err_set(err, -EINVAL,
                         "key is damaged: remove it, and join again (rsd --join, on the queue host eadmin "
                         "init)");
    explicit_bzero(line, strlen(line));
    free(line);
    return result;
}

/* ---- its certificate ---- */

static bool certificate_holds(const struct ticket_keys *keys, const uint8_t *authority, const uint8_t *certificate)
{
    uint8_t bytes[TICKET_BYTES_MAX];
    return ticket_signature_holds(authority, bytes, ticket_certified_bytes(keys->host, keys->key, bytes), certificate);
}

static void load_certificate(struct ticket_keys *keys)
{
    char *line = NULL, *rest, *word[4] = {NULL};
    struct err none = ERR_INIT;
    uint8_t key[TICKET_KEY_BYTES];
    if (read_line(keys->dir, "certificate", &line, &none) < 0)
        return;
    rest = line;
    for (size_t i = 0; i < 4 && rest; i++)
        word[i] = strsep(&rest, " ");
    keys->certified = word[3] && !rest && strcmp(word[0], keys->host) == 0 && hex_read(word[1], key, sizeof(key)) &&
                      memcmp(key, keys->key, sizeof(key)) == 0 &&
                      hex_read(word[2], keys->authority, sizeof(keys->authority)) &&
                      hex_read(word[3], keys->certificate, sizeof(keys->certificate)) &&
                      certificate_holds(keys, keys->authority, keys->certificate);
    free(line);
}

bool ticket_keys_certified(struct ticket_keys *keys)
{
    if (!keys->certified)
        load_certificate(keys);
    return keys->certified;
}

int ticket_keys_certify(struct ticket_keys *keys, const uint8_t authority[TICKET_KEY_BYTES],
                        const uint8_t certificate[TICKET_SIGNATURE_BYTES], struct err *err)
{
    char key[TICKET_HEX_KEY], of_ca[TICKET_HEX_KEY], signature[TICKET_HEX_SIGNATURE], line[FILE_BYTES];
    int result;
    if (!certificate_holds(keys, authority, certificate))
        return err_set(err, -EACCES, "the certificate of the ticket key is not of this cluster's CA");
    hex_write(keys->key, sizeof(keys->key), key);
    hex_write(authority, TICKET_KEY_BYTES, of_ca);
    hex_write(certificate, TICKET_SIGNATURE_BYTES, signature);
    snprintf(line, sizeof(line), "%s %s %s %s\n", keys->host, key, of_ca, signature);
    result = file_write(keys->dir, "certificate", line, 0600, err);
    if (result < 0)
        return result;
    keys->certified = true;
    memcpy(keys->authority, authority, sizeof(keys->authority));
    memcpy(keys->certificate, certificate, sizeof(keys->certificate));
    return 0;
}

void ticket_keys_trust(const struct ticket_keys *keys, struct ticket_trust *trust)
{
    *trust = (struct ticket_trust){.has_authority = keys->certified};
    memcpy(trust->authority, keys->authority, sizeof(trust->authority));
    memcpy(trust->own, keys->key, sizeof(trust->own));
    snprintf(trust->own_host, sizeof(trust->own_host), "%s", keys->host);
}

/* ---- the directory ---- */

int ticket_keys_open(struct ticket_keys *keys, const char *path, const char *host, struct err *err)
{
    int result;
    *keys = (struct ticket_keys){.dir = -1};
    if (!str_valid_hostname(host) || strlen(host) > TICKET_HOST_MAX)
        return err_set(err, -EINVAL, "\"%.80s\" is no name of a host of at most %d bytes", host, TICKET_HOST_MAX);
    snprintf(keys->host, sizeof(keys->host), "%s", host);
    keys->dir = file_dir(path, 0700, err);
    if (keys->dir < 0)
        return keys->dir;
    result = load_key(keys, err);
    if (result == 0 && mkdirat(keys->dir, "used", 0700) < 0 && errno != EEXIST)
        result = err_set(err, -errno, "cannot make used: %s", strerror(errno));
    if (result == 0)
        load_certificate(keys);
    if (result == 0)
        keys->signer = ticket_signer_create(keys->secret);
    if (result < 0) {
        err_prefix(err, "%s", path);
        ticket_keys_close(keys);
    }
    return result;
}

void ticket_keys_close(struct ticket_keys *keys)
{
    if (keys->dir >= 0 && *keys->host)
        close(keys->dir);
    ticket_signer_destroy(keys->signer);
    explicit_bzero(keys, sizeof(*keys));
    keys->dir = -1;
}

void ticket_keys_forget_secret(struct ticket_keys *keys)
{
    ticket_signer_destroy(keys->signer); /* wipes it */
    keys->signer = NULL;
    explicit_bzero(keys->secret, sizeof(keys->secret));
}

/* ---- numbers ---- */

static int reserve(const struct ticket_keys *keys, struct ticket_counter *counter, uint32_t count, struct err *err)
{
    char *line = NULL, text[32];
    struct err none = ERR_INIT;
    uint64_t begin = 0;
    int result = read_line(keys->dir, "counter", &line, &none);
    if (result == 0 && (!str_to_u64(line, &begin) || begin > COUNTER_MAX))
        result = err_set(&none, -EINVAL, "counter is damaged");
    free(line);
    if (result < 0)
        return err_set(err, result,
                       "%s, without which tickets would be the same as earlier ones: remove key and counter, and join "
                       "again (rsd --join, on the queue host eadmin init)",
                       none.text);
    if (counter->reserved && begin < counter->reserved)
        begin = counter->reserved; /* somebody has put an older one back */
    snprintf(text, sizeof(text), "%" PRIu64 "\n", begin + count + RESERVE);
    result = file_write(keys->dir, "counter", text, 0600, err);
    if (result == 0)
        *counter = (struct ticket_counter){begin, begin + count + RESERVE};
    return result;
}

/* What is left of a reserve that is too small is never used. */
int ticket_counter_next(const struct ticket_keys *keys, struct ticket_counter *counter, uint32_t count,
                        uint64_t *number, struct err *err)
{
    int result = counter->reserved - counter->next < count ? reserve(keys, counter, count, err) : 0;
    assert(count > 0 && count <= TICKET_NUMBERS_MAX);
    if (result == 0) {
        *number = counter->next;
        counter->next += count;
    }
    return result;
}
