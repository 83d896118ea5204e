/* eadmin_backup.c - all that a cluster is, in one file.
 *
 * A file beside FILE is made -> a process of the user elmer sends a copy of the store (store_copier.h) -> the
 * configuration -> the CA -> sums -> on disk -> it gets its name. Tokens that wait are left out: one that is used after
 * the backup could be used a second time after a restore. However this ends before, the file beside is removed, also by
 * a signal. */
#include "config.h"

#include "client/eadmin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/backup_file.h"
#include "client/eadmin_root.h"
#include "client/store_copier.h"
#include "elmer/settings.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/pki/ca.h"

struct backup {
    const char *config, *file; /* config: NULL: elmer.conf, which need not be there */
    bool force;
    struct backup_out out;
};

static char *draft; /* for on_signal() */

static void on_signal(int signal)
{
    (void)signal;
    unlink(draft);
    _exit(EXIT_REFUSED);
}

/* ---- what goes into it ---- */

/* One that is not there is left out. */
static int add_file(struct backup_out *out, const char *path, const char *name, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
    result = backup_out_add(out, name, fd, err);
    close(fd);
    return result;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int only_fragments(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return not_hidden(entry) && length > 5 && strcmp(entry->d_name + length - 5, ".conf") == 0;
}

/* Its files, by their names. A directory that is not there has none. */
static int add_files(struct backup_out *out, const char *dir, const char *name,
                     int (*which)(const struct dirent *entry), struct err *err)
{
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, which, alphasort), result = 0;

    if (count < 0)
        return errno == ENOENT ? 0 : err_set(err, -errno, "cannot read %s: %s", dir, strerror(errno));
    for (int i = 0; i < count; i++) {
        char *path = must(str_format("%s/%s", dir, entries[i]->d_name)),
             *member = must(str_format("%s/%s", name, entries[i]->d_name));

        if (result == 0)
            result = add_file(out, path, member, err);
        free(path);
        free(member);
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int add_about(struct backup_out *out, const struct settings *settings, struct err *err)
{
    char *text = must(str_format("elmer backup 1\nhost %s\nmade_ms %" PRId64 "\nversion " PACKAGE_VERSION "\nstore %s\n"
                                 "restore: eadmin init --restore FILE; see eadmin(8)\n",
                                 settings->name, wall_now().ms, settings->store));
    int result = backup_out_text(out, BACKUP_ABOUT, text, err);

    free(text);
    return result;
}

static int add_store(struct backup_out *out, const struct settings *settings, struct err *err)
{
    const struct passwd *user = eadmin_elmer_user();
    struct store_copier copier;
    int result, code;

    if (!user || store_copier_out(&copier, user, settings->store) != EXIT_DONE)
        return -ECANCELED;
    result = backup_out_add(out, BACKUP_STORE, copier.fd, err);
    code = store_copier_end(&copier);
    return result == 0 && code != EXIT_DONE ? -ECANCELED : result;
}

static int add_all(struct backup *backup, const struct settings *settings, struct err *err)
{
    struct backup_out *out = &backup->out;
    const char *config = eadmin_config_path(backup->config);
    char *fragments = must(str_format("%s.d", config));
    int result = add_about(out, settings, err);

    if (result == 0)
        result = add_store(out, settings, err);
    if (result == 0)
        result = add_file(out, config, "etc/elmer.conf", err);
    if (result == 0)
        result = add_files(out, fragments, "etc/elmer.conf.d", only_fragments, err);
    if (result == 0)
        result = add_file(out, EADMIN_CA_CONFIG, "etc/ca.conf", err);
    if (result == 0)
        result = add_files(out, CA_DIR "/used", "ca/used", not_hidden, err);
    if (result == 0)
        result = add_file(out, CA_DIR "/elmer.counter", "ca/elmer.counter", err);
    if (result == 0)
        result = add_file(out, CA_DIR "/" CA_ELMER, "ca/" CA_ELMER, err);
    if (result == 0)
        result = add_file(out, CA_DIR "/ca.key", "ca/ca.key", err);
    if (result == 0)
        result = add_file(out, CA_DIR "/ca.crt", "ca/ca.crt", err);
    free(fragments);
    return result == 0 ? backup_out_end(out, err) : result;
}

/* ---- the file ---- */

/* Without --force: only where there is none. Some file systems have no links, others no such rename. */
static int give_new_name(const char *file)
{
    if (link(draft, file) == 0)
        return 0;
    return errno == EPERM || errno == EOPNOTSUPP ? renameat2(AT_FDCWD, draft, AT_FDCWD, file, RENAME_NOREPLACE) : -1;
}

static int give_name(const struct backup *backup, struct err *err)
{
    char *copy = must(strdup(backup->file));
    int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC), result;

    free(copy);
    result = backup->force ? rename(draft, backup->file) : give_new_name(backup->file);
    if (result < 0 && errno == EINVAL && !backup->force)
        result = err_set(err, -EINVAL, "cannot make %s: its file system may only replace a file; say --force for that",
                         backup->file);
    else if (result < 0 || (dir >= 0 && fsync(dir) < 0))
        result = err_set(err, -errno, "cannot make %s: %s", backup->file, strerror(errno));
    if (dir >= 0)
        close(dir);
    return result;
}

static void note(const char *file)
{
    char *path = realpath(file, NULL);

    eadmin_note("backed-up", "", path ? path : file);
    free(path);
}

static int make_file(struct backup *backup, const struct settings *settings)
{
    struct err err = ERR_INIT;
    int result;

    backup->out = (struct backup_out){.fd = mkostemp(draft, O_CLOEXEC), .made_s = wall_now().ms / 1000};
    if (backup->out.fd < 0) {
        say("cannot make a file beside %s: %s", backup->file, strerror(errno));
        return EXIT_REFUSED;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGHUP, on_signal);
    result = add_all(backup, settings, &err);
    if (result == 0)
        result = give_name(backup, &err);
    unlink(draft);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    close(backup->out.fd);
    if (err.text[0])
        say("%s", err.text);
    if (result < 0)
        return EXIT_REFUSED;
    note(backup->file);
    printf("%s has the queue, the configuration and the CA. It has the CA's key: keep it where nobody else reads it.\n",
           backup->file);
    return EXIT_DONE;
}

static int make_backup(struct backup *backup)
{
    struct settings settings = {0};
    struct err err = ERR_INIT;
    struct stat st;
    int code, result;

    result = ca_look(CA_DIR, &err);
    if (result == -ENOENT) {
        say("there is no CA here (%s): this is not the queue host, or eadmin init was not run yet: run this "
            "there, or eadmin init first",
            CA_DIR);
        return EXIT_REFUSED;
    }
    if (result < 0)
        return eadmin_failed(&err);
    if (!backup->force && lstat(backup->file, &st) == 0) {
        say("%s is there already: name another file, or say --force to replace it", backup->file);
        return EXIT_REFUSED;
    }
    draft = must(str_format("%s.XXXXXX", backup->file));
    code = eadmin_load_settings(backup->config, &settings) ? make_file(backup, &settings) : EXIT_REFUSED;
    backup_out_fini(&backup->out);
    settings_fini(&settings);
    free(draft);
    return code;
}

int eadmin_backup(int argc, char **argv)
{
    static const int takes[] = {'c', OPTION_FORCE, 0};
    struct backup backup = {.config = NULL};
    int c, code;

    while ((c = eadmin_option(argc, argv, "", takes)) != -1) {
        if (c == 'c')
            backup.config = optarg;
        else if (c == OPTION_FORCE)
            backup.force = true;
        else
            return common_option(c, argv);
    }
    if (optind + 1 != argc)
        return usage_error(optind == argc ? "the name of the file is missing" : "one file at a time");
    backup.file = argv[optind];
    code = eadmin_need_root();
    if (code == EXIT_DONE)
        code = make_backup(&backup);
    return code == EXIT_DONE ? finish_output(code) : code;
}
