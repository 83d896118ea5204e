/* settings.h - what elmer.conf says, with defaults for everything. */
#ifndef ELMER_SETTINGS_H
#define ELMER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elmer/core/core.h"
#include "elmer/hosts/hosts.h"
#include "lib/base/err.h"
#include "lib/config/ini.h"

struct settings_given { /* a key that a file gives; "" or the name of a host */
    const struct ini_key *key;
    char *sub, *value;
};

struct settings {
    char *path; /* of the file; fragments come after it */
    bool required;
    struct settings_given *given; /* [ngiven] */
    size_t ngiven;
    struct core_options core;
    struct host_settings *hosts; /* [nhosts] in the order of the file; then, while elmer runs, those that came later */
    size_t nhosts;
    char *configured;  /* the names of those of the file */
    char *listen;      /* HOST:PORT for the rsds of other hosts; NULL: none */
    char *pki;         /* directory of ca.crt, host.crt, host.key */
    char *name;        /* of the host that elmer runs on */
    char *store;       /* file */
    char *socket;      /* of the clients */
    char *host_socket; /* of the local rsd */
    char *host_user;   /* who beside root may be the local rsd */
    char *admin_group;
    char *jobs_dir; /* where the rsds make the jobs' directories */
    char *signer;   /* socket of elmer-signer */
    /* for each user, see limits.h and submit.c */
    long user_queued, user_memory, user_connections, user_request_bytes, user_requests, user_requests_burst;
    long host_messages, host_messages_burst; /* that a host may send in a second, and at once */
    bool private_jobs;                       /* other users are not shown what a job is */
    long report_ms, heartbeat_ms, host_timeout_ms, kill_grace_ms, fresh_intervals, max_nprocs, minimum_uid;
    long history_jobs, history_age_ms; /* ended jobs beyond either are forgotten */
};

/* What elmer.conf may contain, with the defaults. */
extern const struct ini_key settings_keys[];

/* Reads path and its fragments path.d/NAME.conf. A file that is not there means the defaults unless required. 0 or
 * negative with the text of err. */
int settings_load(struct settings *settings, const char *path, bool required, struct err *err);
/* The same for who wants to hear of all problems and values. With watch->problem settings are filled in any case, with
 * the defaults in place of what was refused. */
int settings_load_watched(struct settings *settings, const char *path, bool required, const struct ini_watch *watch,
                          struct err *err);
struct settings_change {
    const char *name, *host; /* "" of a key in [elmer] */
    const char *was, *is;    /* texts as in a file, or words for a default */
    bool live;               /* it counts now; else it needs a restart */
};
typedef void (*settings_changed)(const struct settings_change *change, void *data);
/* Takes over from next, which was loaded without an error, the keys that may change while elmer runs, and tells each
 * difference in the order of the table. What needs a restart stays as it is in running, and is told each time. Hosts:
 * settings_take_hosts(). */
void settings_adopt(struct settings *running, struct settings *next, settings_changed changed, void *data);
/* Hosts of next that running has not get a place behind all others; all take over who is an administrator. Without
 * topology. */
void settings_take_hosts(struct settings *running, const struct settings *next);
/* One more; its index is nhosts of before. */
void settings_new_host(struct settings *settings, const char *name);
void settings_forget_hosts(struct settings *settings, size_t nhosts); /* the last ones, beyond so many */
const struct host_settings *settings_host(const struct settings *settings, const char *name); /* NULL: none */
void settings_fini(struct settings *settings);

#endif
