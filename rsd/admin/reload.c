/* reload.c - `systemctl reload rsd`, before rsd hears of it.
 *
 * The new files are read -> what the running rsd was given, which it has written into its run directory, is read as
 * well -> both are compared over the table of keys, and each difference is a line. Then systemd sends SIGHUP, rsd ends
 * and is started again, and adopts its jobs, as after an upgrade. All or nothing: a wrong file, or another value of a
 * key by which rsd finds its jobs, and this ends with an error, so that no SIGHUP is sent. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/str.h"
#include "rsd/admin/reload.h"
#include "rsd/config.h"

enum { KEYS_MAX = 64 };

/* Under another of these the jobs that run would not be found, or be those of another host. */
static const char *const fixed[] = {"name", "user", "rundir", "cgroup_root", "user_slice", "proc_stat"};

struct files {
    struct rsd_config config;
    char *values[KEYS_MAX]; /* by the row of rsd_config_keys; NULL: not given */
    bool runs;              /* those of the running rsd */
    bool told;
};

static void on_problem(const char *text, void *data)
{
    struct files *files = data;
    files->told = true;
    if (files->runs)
        log_error("reload: what runs cannot be told: %s", text);
    else
        log_error("reload: %s", text);
}

static void on_given(const struct ini_value *value, void *data)
{
    struct files *files = data;
    size_t row = (size_t)(value->key - rsd_config_keys);
    if (value->refused || row >= KEYS_MAX)
        return;
    free(files->values[row]);
    files->values[row] = strdup(value->value);
}

static bool read_files(struct files *files, const char *path, bool required)
{
    const struct ini_watch watch = {.problem = on_problem, .given = on_given, .data = files};
    struct err err = ERR_INIT;
    rsd_config_default(&files->config);
    if (rsd_config_read(&files->config, path, !required, &watch, &err) == 0)
        return true;
    if (!files->told)
        on_problem(err.text, files);
    return false;
}

static void forget(struct files *files)
{
    for (size_t i = 0; i < KEYS_MAX; i++)
        free(files->values[i]);
    free(files);
}

static bool is_fixed(const char *name)
{
    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
        if (strcmp(name, fixed[i]) == 0)
            return true;
    return false;
}

/* malloc'd; NULL: the key has none, or there is no memory. What follows from the host is what rsd makes of it, so
 * writing that down is no change. */
static char *value_of(const struct files *files, size_t row)
{
    const struct ini_key *key = &rsd_config_keys[row];
    const char *text = files->values[row] ? files->values[row] : key->normal;
    if (key->made)
        return key->made(&files->config);
    return text ? strdup(text) : NULL;
}

static bool is_other(const char *name, const char *is, const char *was)
{
    if (strcmp(was, is) == 0)
        return false;
    if (is_fixed(name))
        log_error("reload: %s = %s, was %s: needs a restart, which would lose the jobs that run here: eadmin drain "
                  "this host, and systemctl restart rsd when it has none",
                  name, is, was);
    else
        log_notice("reload: %s = %s, was %s", name, is, was);
    return true;
}

/* Returns how many keys have changed; *refused: how many of them may not. */
static unsigned compare(const struct files *running, const struct files *next, unsigned *refused)
{
    unsigned changed = 0;
    *refused = 0;
    for (size_t i = 0; i < KEYS_MAX && rsd_config_keys[i].name; i++) {
        char *was = value_of(running, i), *is = value_of(next, i);
        if (was && is && is_other(rsd_config_keys[i].name, is, was)) {
            changed++;
            *refused += is_fixed(rsd_config_keys[i].name);
        }
        free(was);
        free(is);
    }
    return changed;
}

/* If rundir is another now, nothing is there yet: then the one before counts, which was the standard one or cannot be
 * told. malloc'd; NULL: no memory. */
static char *running_file(const char *rundir)
{
    static struct rsd_config normal;
    char *file = str_format("%s/" RSD_RUNNING_CONF, rundir), *other;
    rsd_config_default(&normal);
    other = str_format("%s/" RSD_RUNNING_CONF, normal.rundir);
    if (!file || !other || access(file, F_OK) == 0 || access(other, F_OK) < 0) {
        free(other);
        return file;
    }
    free(file);
    return other;
}

int rsd_reload_main(const char *path, bool given)
{
    struct files *running = calloc(1, sizeof(*running)), *next = calloc(1, sizeof(*next));
    unsigned changed, refused;
    char *file;
    bool good;
    if (!running || !next)
        return 1;
    running->runs = true;
    good = read_files(next, path, given);
    file = running_file(next->config.rundir);
    good = good && file && read_files(running, file, true);
    if (good) {
        changed = compare(running, next, &refused);
        good = refused == 0;
        if (good)
            log_notice("reload: %u changed; rsd begins again with them, jobs live on", changed);
    }
    if (!good)
        log_error("reload: refused, nothing has changed: correct the files, and reload again");
    free(file);
    forget(running);
    forget(next);
    return good ? 0 : 1;
}
