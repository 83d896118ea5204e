/* tokens.c - the life of a token.
 *
 * `eadmin token` writes tokens/ID: the secret, until when it is good, and for whom. A join comes: the proof is checked
 * first, so that only whoever has the token learns anything about it; then time and host; then tokens/ID is moved to
 * used/ID and the move is brought to disk. Of two joins at once the rename lets one through. Only then is anything
 * signed: after a crash in between the token is lost, never used twice. used/ID then says by whom.
 *
 * A token that is good for N hosts stays where it is, and each use makes the first of used/ID.1 .. used/ID.N that is
 * not there, one after the other (flock). None is for a host that has used it: others know the token, and that one may
 * have been removed since. */
#include "config.h"

#include "lib/pki/tokens.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/pki/x509.h"

#define KEPT_MS (INT64_C(30) * 86400 * 1000)

struct stored {
    char *text; /* the lines, taken apart; the others point into it */
    uint8_t secret[TOKEN_SECRET_BYTES];
    int64_t end_ms, used_ms; /* used_ms 0: not known */
    const char *hosts;       /* "a,b"; "": any */
    const char *user;        /* who has used it */
    int64_t uses;            /* that it is good for; 1: it is moved, see above */
};

static void stored_fini(struct stored *stored)
{
    pki_key_free(stored->text);
}

/* ---- files ---- */

static int open_part(int ca_dir, const char *name)
{
    int fd = openat(ca_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static bool parse_number(const char *text, int64_t *out)
{
    uint64_t number;
    bool valid = text && str_to_u64(text, &number) && number <= INT64_MAX;

    *out = valid ? (int64_t)number : 0;
    return valid;
}

/* Lines KEY VALUE: secret end hosts, uses unless it is 1, and of a used one: used host. */
static bool parse(struct stored *stored)
{
    enum { KEYS = 6 };
    const char *values[KEYS] = {NULL};
    static const char *const keys[KEYS] = {"secret", "end", "hosts", "used", "host", "uses"};
    char *rest = stored->text;

    for (char *line; (line = strsep(&rest, "\n"));) {
        char *space = strchr(line, ' ');

        if (!space)
            continue;
        *space = 0;
        for (size_t i = 0; i < KEYS; i++)
            if (strcmp(line, keys[i]) == 0)
                values[i] = space + 1;
    }
    stored->hosts = values[2];
    stored->user = values[4];
    parse_number(values[3], &stored->used_ms);
    stored->uses = 1;
    if (values[5] && (!parse_number(values[5], &stored->uses) || stored->uses < 1 || stored->uses > TOKEN_USES_MAX))
        return false;
    return values[0] && hex_read(values[0], stored->secret, sizeof(stored->secret)) &&
           parse_number(values[1], &stored->end_ms) && stored->hosts;
}

static int load(int dir, const char *id, struct stored *stored, struct err *err)
{
    int result = file_read(dir, id, PKI_PEM_MAX, &stored->text, err);

    return result == 0 && !parse(stored) ? err_set(err, -EINVAL, "the file of token %s is damaged: remove it", id)
                                         : result;
}

static char *join_hosts(const char *const *hosts, size_t count)
{
    char *all = strdup("");

    for (size_t i = 0; all && i < count; i++) {
        char *longer = str_format("%s%s%s", all, i ? "," : "", hosts[i]);

        free(all);
        all = longer;
    }
    return all;
}

int tokens_put(int ca_dir, const struct token *token, const char *const *hosts, size_t count, int uses, int64_t now_ms,
               int64_t end_ms, struct err *err)
{
    char id[TOKEN_ID_SIZE], secret[2 * TOKEN_SECRET_BYTES + 1], *all, *text;
    int result = 0, dir = open_part(ca_dir, "tokens");

    assert(uses >= 1 && uses <= TOKEN_USES_MAX);
    for (size_t i = 0; i < count && result == 0; i++)
        if (!str_valid_hostname(hosts[i]))
            result = err_set(err, -EINVAL, "\"%s\" is not the name of a host", hosts[i]);
    token_id(token, id);
    hex_write(token->secret, sizeof(token->secret), secret);
    all = join_hosts(hosts, count);
    text = all ? str_format("secret %s\nmade %" PRId64 "\nend %" PRId64 "\nuses %d\nhosts %s\n", secret, now_ms, end_ms,
                            uses, all)
               : NULL;
    if (result == 0 && dir < 0)
        result = err_set(err, dir, "the CA has no directory tokens: %s", strerror(-dir));
    else if (result == 0 && (!text || strlen(text) > PKI_PEM_MAX))
        result = err_set(err, -EINVAL, "too many hosts for one token: make several, or one for any host");
    else if (result == 0)
        result = file_write(dir, id, text, 0600, err);
    free(all);
    pki_key_free(text);
    if (dir >= 0)
        close(dir);
    return result;
}

/* ---- using ---- */

static bool named(const char *hosts, const char *host)
{
    size_t length = strlen(host);

    for (const char *at = hosts; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, host, length) == 0 && (at[length] == ',' || at[length] == 0))
            return true;
    return false;
}

#define AGAIN "make another with `eadmin token` on the queue host"

static int check_terms(const struct stored *stored, const char *host, bool taken, int64_t now_ms, struct err *err)
{
    char end[32], now[32];

    wall_format((struct wall){stored->end_ms}, end, sizeof(end));
    wall_format((struct wall){now_ms}, now, sizeof(now));
    if (now_ms >= stored->end_ms)
        return err_set(err, -EACCES, "the token expired at %s (the queue host's clock says %s): " AGAIN, end, now);
    if (*stored->hosts && !named(stored->hosts, host))
        return err_set(err, -EACCES,
                       "the token is for %.200s, not for %s: " AGAIN " for that name, or join under another (--name)",
                       stored->hosts, host);
    if (!*stored->hosts && taken)
        return err_set(
            err, -EACCES,
            "there is a host %s in the cluster already, or it is not in the configuration, and this token names none: "
            "make a token for it (`eadmin token --hosts %s`), or `eadmin remove %s` first",
            host, host, host);
    return 0;
}

static int refuse_used(const struct stored *stored, struct err *err)
{
    char when[32];

    wall_format((struct wall){stored->used_ms}, when, sizeof(when));
    if (!stored->user)
        return err_set(err, -EACCES, "the token was used before, and is good for once: " AGAIN);
    return err_set(
        err, -EACCES,
        "the token was used by %s at %s, and is good for once: if that was not you, `eadmin remove %s`; " AGAIN,
        stored->user, when, stored->user);
}

/* From here on it is used, on disk. */
static int move_to_used(int tokens, int used, const char *id, struct err *err)
{
    struct stored winner = {.user = NULL};

    if (renameat(tokens, id, used, id) < 0)
        return errno == ENOENT ? refuse_used(&winner, err)
                               : err_set(err, -errno, "the token cannot be used up: %s", strerror(errno));
    if (fsync(used) < 0 || fsync(tokens) < 0)
        return err_set(err, -errno, "the token cannot be used up: %s", strerror(errno));
    return 0;
}

enum { SLOT_SIZE = TOKEN_ID_SIZE + 12 };

static void slot_name(const char *id, int64_t number, char name[SLOT_SIZE])
{
    snprintf(name, SLOT_SIZE, "%s.%" PRId64, id, number);
}

static int refuse_all_used(int used, const char *id, int64_t uses, struct err *err)
{
    char by[300] = "", name[SLOT_SIZE];

    for (int64_t i = 1; i <= uses && strlen(by) < 200; i++) {
        struct stored slot = {.user = NULL};

        slot_name(id, i, name);
        if (load(used, name, &slot, NULL) == 0 && slot.user) {
            size_t length = strlen(by);

            snprintf(by + length, sizeof(by) - length, "%s%.64s", length ? ", " : " by ", slot.user);
        }
        stored_fini(&slot);
    }
    return err_set(err, -EACCES,
                   "the token is good for %" PRId64 " hosts, and so many have used it%s: if one of them is not yours, "
                   "`eadmin remove` it; " AGAIN,
                   uses, by);
}

static int refuse_twice(const struct stored *slot, struct err *err)
{
    char when[32];

    wall_format((struct wall){slot->used_ms}, when, sizeof(when));
    return err_set(err, -EACCES,
                   "the token was used by %s at %s, and is good for each host once: if that was not you, "
                   "`eadmin remove %s`; " AGAIN,
                   slot->user, when, slot->user);
}

static int check_not_used_by(int used, const char *id, const char *host, int64_t uses, struct err *err)
{
    int result = 0, loaded = 0;

    for (int64_t i = 1; i <= uses && result == 0 && loaded != -ENOENT; i++) {
        struct stored slot = {.user = NULL};
        char name[SLOT_SIZE];

        slot_name(id, i, name);
        loaded = load(used, name, &slot, NULL);
        if (loaded == 0 && slot.user && strcmp(slot.user, host) == 0)
            result = refuse_twice(&slot, err);
        stored_fini(&slot);
    }
    return result;
}

/* The same for one that is good for several hosts; name: of the file that says by whom. */
static int take_slot(int used, const char *id, const char *host, int64_t uses, char name[SLOT_SIZE], struct err *err)
{
    if (flock(used, LOCK_EX) < 0) /* until it is closed, when it is noted by whom */
        return err_set(err, -errno, "the token cannot be used up: %s", strerror(errno));
    if (check_not_used_by(used, id, host, uses, err) < 0)
        return -EACCES;
    for (int64_t i = 1; i <= uses; i++) {
        slot_name(id, i, name);
        int fd = openat(used, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd >= 0) {
            close(fd);
            if (fsync(used) == 0)
                return 0;
            err_set(err, -EIO, "the token cannot be used up: %s", strerror(errno));
            unlinkat(used, name, 0); /* nothing is signed, and the lock is ours: else each try would be a use */
            return -EIO;
        }
        if (errno != EEXIST)
            return err_set(err, -errno, "the token cannot be used up: %s", strerror(errno));
    }
    return refuse_all_used(used, id, uses, err);
}

static int note_user(int used, const char *name, const struct stored *stored, const char *host, int64_t now_ms)
{
    char secret[2 * TOKEN_SECRET_BYTES + 1], *text;
    int result;

    hex_write(stored->secret, sizeof(stored->secret), secret);
    text = str_format("secret %s\nend %" PRId64 "\nhosts %s\nused %" PRId64 "\nhost %s\n", secret, stored->end_ms,
                      stored->hosts, now_ms, host);
    result = text ? file_write(used, name, text, 0600, NULL) : -ENOMEM;
    pki_key_free(text);
    return result;
}

static int use(int tokens, int used, const char *id, const char *host, bool taken, const char *request,
               const char *proof, int64_t now_ms, struct err *err)
{
    struct stored stored = {0};
    char name[SLOT_SIZE];
    bool waits = true;
    int result = load(tokens, id, &stored, NULL);

    snprintf(name, sizeof(name), "%s", id);
    if (result == -ENOENT) {
        waits = false;
        result = load(used, id, &stored, NULL);
    }
    if (result < 0 || !pki_join_proof_check(stored.secret, sizeof(stored.secret), host, request, proof))
        result = err_set(err, -EACCES,
                         "the token is not known here: it is not of this cluster, or it expired long ago; " AGAIN);
    else if (!waits)
        result = refuse_used(&stored, err);
    else
        result = check_terms(&stored, host, taken, now_ms, err);
    if (result == 0)
        result =
            stored.uses > 1 ? take_slot(used, id, host, stored.uses, name, err) : move_to_used(tokens, used, id, err);
    if (result == 0 && note_user(used, name, &stored, host, now_ms) < 0 && stored.uses > 1) {
        unlinkat(used, name, 0); /* as above */
        result = err_set(err, -EIO, "it cannot be noted who has used the token: is the disk of the queue host full?");
    }
    stored_fini(&stored);
    return result;
}

int tokens_use(int ca_dir, const char *id, const char *host, bool taken, const char *request, const char *proof,
               int64_t now_ms, struct err *err)
{
    uint8_t bytes[TOKEN_ID_BYTES];
    int result, tokens = open_part(ca_dir, "tokens"), used = open_part(ca_dir, "used");

    if (!hex_read(id, bytes, sizeof(bytes)))
        result = err_set(err, -EACCES, "this is not the id of a token");
    else if (tokens < 0 || used < 0)
        result = err_set(err, tokens < 0 ? tokens : used, "the CA has no directory of tokens");
    else
        result = use(tokens, used, id, host, taken, request, proof, now_ms, err);
    if (tokens >= 0)
        close(tokens);
    if (used >= 0)
        close(used);
    return result;
}

/* ---- forgetting ---- */

static void tidy_part(int ca_dir, const char *name, int64_t now_ms)
{
    int fd = open_part(ca_dir, name);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;

    if (!list) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(list));) {
        struct stored stored = {0};

        if (strspn(entry->d_name, "0123456789abcdef") == TOKEN_ID_SIZE - 1 &&
            load(fd, entry->d_name, &stored, NULL) == 0 && stored.end_ms + KEPT_MS < now_ms)
            unlinkat(fd, entry->d_name, 0);
        stored_fini(&stored);
    }
    closedir(list);
}

void tokens_tidy(int ca_dir, int64_t now_ms)
{
    tidy_part(ca_dir, "tokens", now_ms);
    tidy_part(ca_dir, "used", now_ms);
}
