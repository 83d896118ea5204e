/* eadmin_root.h - what the verbs of root on the queue host share (eadmin_ca.c). */
#ifndef CLIENT_EADMIN_ROOT_H
#define CLIENT_EADMIN_ROOT_H

#include <pwd.h>
#include <stdbool.h>

#define EADMIN_CA_CONFIG ELMER_SYSCONFDIR "/ca.conf"

struct err;
struct settings;

/* Says it and returns EXIT_REFUSED. */
int eadmin_failed(const struct err *err);
/* By which name other hosts reach elmer, as rsd --join takes it. malloc'd. */
char *eadmin_address(const struct settings *settings);

/* The exit code. */
int eadmin_need_root(void);
/* config: of option -c; NULL: elmer.conf, which need not be there. */
const char *eadmin_config_path(const char *config);
/* The same. False, NULL: it has been said why. */
bool eadmin_load_settings(const char *config, struct settings *settings);
const struct passwd *eadmin_elmer_user(void);
/* The directory of elmer's files; systemd makes it when elmer starts, which comes later. The exit code. */
int eadmin_make_state_dir(const struct passwd *user);

/* What is in the backup comes to its places: the configuration, the CA and the store, where none is (eadmin_restore.c).
 * The exit code. */
int eadmin_restore(const char *file);

#endif
