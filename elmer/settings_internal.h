/* settings_internal.h - what the files that read elmer.conf share. */
#ifndef ELMER_SETTINGS_INTERNAL_H
#define ELMER_SETTINGS_INTERNAL_H

#include "elmer/settings.h"
#include "lib/config/ini.h"

/* "hosts" says which there are and in which order; a section "host NAME" may come before it, so its values wait in a
 * list of their own. */
struct loading {
    struct settings settings; /* first: the setters take it for the whole */
    struct settings sections;
    bool hosts_given;  /* and there is one */
    char *admin_hosts; /* for settings_mark_admin_hosts(), when all hosts are known */
};

void settings_replace(char **text, const char *value); /* by a copy */
/* Of a key that is not there yet. */
void settings_remember(struct settings *settings, const struct ini_key *key, const char *sub, const char *value);
void settings_forget_given(struct settings *settings);
struct host_settings *settings_add_host(struct settings *settings, const char *name);

/* Setters of keys; config is a struct loading. */
int settings_set_hosts(void *config, const char *sub, const char *value, struct err *err);
int settings_set_admin_hosts(void *config, const char *sub, const char *value, struct err *err);
int settings_set_host_cpus(void *config, const char *sub, const char *value, struct err *err);
int settings_set_host_address(void *config, const char *sub, const char *value, struct err *err);

/* When all lines have been read: what admin_hosts and the sections say, to the hosts. */
void settings_mark_admin_hosts(struct loading *loading, struct ini_reading *reading);
void settings_merge_sections(struct loading *loading, struct ini_reading *reading);

#endif
