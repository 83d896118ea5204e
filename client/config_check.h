/* config_check.h - eadmin config check: what is wrong with a configuration, all of it. */
#ifndef CLIENT_CONFIG_CHECK_H
#define CLIENT_CONFIG_CHECK_H

#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/config/ini.h"

struct config_given;

struct config_check {
    const char *path; /* the main file */
    const struct ini_key *keys;
    struct config_given *given; /* [count] what the files say */
    size_t count, problems;
    bool by_root; /* who started it, see config_as_user() */
};

void config_check_init(struct config_check *check, const char *path, const struct ini_key *keys);
void config_check_fini(struct config_check *check);
/* For the functions that read the files. */
struct ini_watch config_check_watch(struct config_check *check);

bool config_given(const struct config_check *check, const char *name);
/* The files say nothing that could be used: what is found out about it would be about the default. */
bool config_refused(const struct config_check *check, const char *name);
/* What is in force, as text; NULL: nothing that could be used. */
const char *config_value(const struct config_check *check, const struct ini_key *key);
/* One line: where the key stands, its value, and the sentence, which says what to do. value may be NULL. */
void config_problem(struct config_check *check, const char *name, const char *value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- what both daemons need (config_look.c) ---- */

enum name_kind { NAME_GOOD, NAME_LOOPBACK, NAME_UNKNOWN };
/* What host stands for on this machine; the loopback address, or why it is not known, in text. */
enum name_kind config_look_up(const char *host, char *text, size_t size);
/* Is that one of this machine's addresses? */
bool config_is_own_address(const char *text);
/* An address of this machine that others may reach it by; "" if there is none. */
void config_own_address(char *text, size_t size);
/* The directory of path (or path itself) is there and the present user may write to it. Of the directory made, which
 * systemd makes before the daemon starts, it is enough that it can be made. */
void config_check_directory(struct config_check *check, const char *key, const char *value, const char *path,
                            const char *made);
/* Warns where dir is not below state and the unit lets its daemon write nowhere else: no problem, because the daemon
 * may be started without it. key: what is in dir. */
void config_check_unit(const char *key, const char *dir, const char *state, const char *unit);
/* ca.crt, host.crt and host.key of a directory: there, readable for the present user, together, and valid today.
 * server: of the queue host. name: that it must be for; dialled: another name that it should be good for, or NULL.
 * *until: when host.crt ends, in seconds; 0: something is wrong. */
void config_check_pki(struct config_check *check, const char *pki, bool server, const char *name, const char *dialled,
                      long long *until);
void config_date(long long seconds, char text[16]);

/* ---- the daemons ---- */

/* Does an elmer serve that socket here? Of which user it is. */
bool config_elmer_runs(const char *socket_path, uid_t *user);
/* Who listens at the address of elmer.conf, where that or part of it can be had once only; elmer: its user. Returns an
 * enum config_listens, or a negative errno with a sentence: the name stands for no address of a host. */
enum config_listens { LISTENS_NOBODY, LISTENS_ELMER, LISTENS_OTHER };
int config_who_listens(const char *listen, uid_t elmer, struct err *err);
/* Tries whether elmer could listen there, as the present user. NULL: yes, also where the elmer of that socket does
 * already; or why not, and what to do, malloc'd. */
char *config_try_listen(const char *listen, const char *socket_path);

/* Prints all problems, or the line that all is well. user: that the daemon runs as, NULL: as usual. Returns the exit
 * code. */
int config_check_elmer(const char *path, bool required, const char *user);
int config_check_rsd(const char *path, bool required, const char *user);
/* Run work(data) in a process that is the user (root only; else here). Returns what it returns: an exit code. */
int config_as_user(const struct passwd *user, int (*work)(void *data), void *data);

#endif
