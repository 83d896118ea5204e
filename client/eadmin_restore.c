/* eadmin_restore.c - a backup comes to its places, for a queue host that takes the place of a lost one.
 *
 * All of the file is checked -> nothing is in the way: no store -> the process of the user elmer that will write the
 * store (store_copier.h), before the CA's key is read -> no other CA -> the configuration; a file that says something
 * else is kept as NAME.old -> the CA, its certificate last -> the store. Where this is interrupted it can be run again:
 * what is there by then is what comes. eadmin init goes on from there: the address, and a certificate of elmer for it,
 * with a higher counter than any before. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/backup_file.h"
#include "client/common.h"
#include "client/eadmin_place.h"
#include "client/eadmin_root.h"
#include "client/store_copier.h"
#include "elmer/settings.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/pki/ca.h"
#include "lib/pki/x509.h"

/* ---- what is in the way ---- */

/* The text of a file; NULL: there is none, or it cannot be read. */
static char *text_of(const char *dir, const char *name)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *text = NULL;

    if (fd >= 0 && file_read(fd, name, BACKUP_TEXT_MAX, &text, NULL) < 0)
        text = NULL;
    if (fd >= 0)
        close(fd);
    return text;
}

/* Before anything is written; systemd makes that of elmer itself. */
static int look_for_directory(const char *store)
{
    char *copy = must(strdup(store));
    const char *dir = dirname(copy);
    struct stat st;
    int code = EXIT_DONE, result = stat(dir, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;

    if (result != 0 && (result != ENOENT || strcmp(dir, ELMER_STATEDIR) != 0)) {
        say("the store of the backup's elmer.conf is %s, and the directory %s: %s; make it, and give it to the user "
            "elmer",
            store, dir, strerror(result));
        code = EXIT_REFUSED;
    }
    free(copy);
    return code;
}

/* The CA that is here, as far as it is there, is the backup's: the same key, and a certificate of it, which may have
 * been renewed since. What cannot be read is nothing to write over. */
static bool is_same_ca(const char *key, const char *certificate, const char *key_here, const char *certificate_here)
{
    struct stat st;

    if (key_here ? strcmp(key_here, key) != 0 : lstat(CA_DIR "/ca.key", &st) == 0)
        return false;
    if (!certificate_here)
        return lstat(CA_DIR "/ca.crt", &st) < 0;
    return strcmp(certificate_here, certificate) == 0 || (key_here && pki_key_fits(key, certificate_here, NULL) == 0);
}

static int look_for_other_ca(const struct backup_in *in)
{
    char *key = NULL, *certificate = NULL, *key_here = text_of(CA_DIR, "ca.key"),
         *certificate_here = text_of(CA_DIR, "ca.crt");
    struct err err = ERR_INIT;
    int code = EXIT_DONE;

    if (backup_in_text(in, backup_in_find(in, "ca/ca.key"), BACKUP_TEXT_MAX, &key, &err) < 0 ||
        backup_in_text(in, backup_in_find(in, "ca/ca.crt"), BACKUP_TEXT_MAX, &certificate, &err) < 0)
        code = eadmin_failed(&err);
    else if (!is_same_ca(key, certificate, key_here, certificate_here)) {
        say("there is another CA on this host already (%s): if it is to be replaced by the backup's, move it away "
            "first",
            CA_DIR);
        code = EXIT_REFUSED;
    }
    pki_key_free(key);
    pki_key_free(key_here);
    free(certificate);
    free(certificate_here);
    return code;
}

static int look_for_other_queue(const struct backup_in *in)
{
    struct stat st;

    if (lstat(in->store, &st) < 0)
        return look_for_directory(in->store);
    say("there is a queue on this host already (%s): if it is to be replaced by the backup's, stop elmer and move it "
        "away first",
        in->store);
    return EXIT_REFUSED;
}

/* ---- writing ---- */

static int write_member(const struct backup_in *in, const struct backup_member *member, int dir, const char *name,
                        mode_t mode, struct err *err)
{
    char *text = NULL;
    int result = backup_in_text(in, member, BACKUP_TEXT_MAX, &text, err);

    if (result == 0)
        result = file_write(dir, name, text, mode, err);
    pki_key_free(text);
    return result;
}

static int restore_config(const struct backup_in *in, const struct backup_member *member, struct err *err)
{
    const char *name = strrchr(member->name, '/') + 1,
               *place = strstr(member->name, "conf.d/") ? ELMER_SYSCONFDIR "/elmer.conf.d" : ELMER_SYSCONFDIR;
    char *there = text_of(place, name), *wanted = NULL, *old;
    int dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result;

    result = dir < 0 ? err_set(err, -errno, "cannot open %s: %s", place, strerror(errno))
                     : backup_in_text(in, member, BACKUP_TEXT_MAX, &wanted, err);
    old = result == 0 ? place_name_for_old(dir, name) : NULL;
    if (result == 0 && (!there || strcmp(there, wanted) != 0) && faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        result = file_move(dir, name, old);
        if (result == 0)
            printf("What %s/%s said is in %s now.\n", place, name, old);
    }
    if (result == 0)
        result = file_write(dir, name, wanted, 0644, err);
    if (dir >= 0)
        close(dir);
    free(there);
    free(wanted);
    free(old);
    return result;
}

static int restore_configs(const struct backup_in *in, struct err *err)
{
    int result = 0;

    (void)mkdir(ELMER_SYSCONFDIR, 0755); /* else opening says why */
    (void)mkdir(ELMER_SYSCONFDIR "/elmer.conf.d", 0755);
    for (size_t i = 0; result == 0 && i < in->count; i++)
        if (strncmp(in->members[i].name, "etc/", 4) == 0)
            result = restore_config(in, &in->members[i], err);
    return result;
}

/* Tokens that were used, the counter, the key. */
static int restore_ca_files(const struct backup_in *in, int dir, struct err *err)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < in->count; i++) {
        const struct backup_member *member = &in->members[i];
        bool used = strncmp(member->name, "ca/used/", 8) == 0;
        int place = used ? openat(dir, "used", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : dir;

        if (strncmp(member->name, "ca/", 3) == 0 && strcmp(member->name, "ca/ca.crt") != 0)
            result = place < 0 ? err_set(err, -errno, "cannot open %s: %s", CA_DIR, strerror(errno))
                               : write_member(in, member, place, strrchr(member->name, '/') + 1, 0600, err);
        if (place >= 0 && place != dir)
            close(place);
    }
    return result;
}

/* A renewed one that is here stays: the backup's ends before it. */
static int restore_ca_certificate(const struct backup_in *in, int dir, struct err *err)
{
    char *here = text_of(CA_DIR, "ca.crt"), *wanted = NULL;
    struct pki_certificate renewed, old;
    int result = backup_in_text(in, backup_in_find(in, "ca/ca.crt"), BACKUP_TEXT_MAX, &wanted, err);

    if (result == 0 && !(here && pki_inspect(here, &renewed, NULL) == 0 && pki_inspect(wanted, &old, NULL) == 0 &&
                         renewed.end_s > old.end_s))
        result = file_write(dir, "ca.crt", wanted, 0644, err);
    free(here);
    free(wanted);
    return result;
}

static int restore_ca(const struct backup_in *in, struct err *err)
{
    int dir = file_dir(CA_DIR, 0700, err), result;

    if (dir < 0)
        return dir;
    result = fchmod(dir, 0700) < 0 || (mkdirat(dir, "tokens", 0700) < 0 && errno != EEXIST) ||
                     (mkdirat(dir, "used", 0700) < 0 && errno != EEXIST)
                 ? err_set(err, -errno, "cannot make %s: %s", CA_DIR, strerror(errno))
                 : restore_ca_files(in, dir, err);
    if (result == 0)
        result = restore_ca_certificate(in, dir, err);
    close(dir);
    return result;
}

/* It waits until the store comes, and writes nothing if none does. */
static int start_copier(struct store_copier *copier, const struct backup_in *in)
{
    const struct passwd *user = eadmin_elmer_user();
    int code = user ? eadmin_make_state_dir(user) : EXIT_REFUSED;

    if (code == EXIT_DONE)
        code = store_copier_in(copier, user, in->store, backup_in_find(in, BACKUP_STORE)->size, in->made_ms);
    return code;
}

static int restore_all(const struct backup_in *in, struct store_copier *copier)
{
    struct err err = ERR_INIT;
    int result = restore_configs(in, &err), code;

    if (result == 0)
        result = restore_ca(in, &err);
    fflush(stdout); /* the copier speaks next */
    if (result == 0)
        result = backup_in_copy(in, backup_in_find(in, BACKUP_STORE), copier->fd, &err);
    code = store_copier_end(copier);
    if (code != EXIT_DONE && result == -EPIPE) /* it has said why */
        err_clear(&err);
    if (err.text[0])
        say("%s", err.text);
    return result == 0 ? code : EXIT_REFUSED;
}

int eadmin_restore(const char *file)
{
    struct err err = ERR_INIT;
    struct store_copier copier;
    struct backup_in in;
    char made[32];
    int code;

    if (backup_in_open(&in, file, &err) < 0)
        return eadmin_failed(&err);
    code = look_for_other_queue(&in);
    if (code == EXIT_DONE)
        code = start_copier(&copier, &in);
    if (code == EXIT_DONE && (code = look_for_other_ca(&in)) != EXIT_DONE)
        (void)store_copier_end(&copier);
    else if (code == EXIT_DONE) {
        wall_format((struct wall){in.made_ms}, made, sizeof(made));
        printf("The backup is of %s, made on %s.\n", made, in.host);
        code = restore_all(&in, &copier);
    }
    backup_in_close(&in);
    return code;
}
