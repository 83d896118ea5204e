/* config.h - what rsd.conf says. Read once by the root half's main; both halves have a copy. */
#ifndef RSD_CONFIG_H
#define RSD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/config/ini.h"

enum rsd_mode { RSD_MODE_AUTO, RSD_MODE_RT, RSD_MODE_IDLE, RSD_MODE_NONE, RSD_MODE_COUNT };

enum { RSD_ELMER_MAX = 4 }; /* addresses that elmer may have, one after the other */

struct rsd_config {
    char elmer[RSD_ELMER_MAX * 272]; /* HOST:PORT of the queue daemon, or several with a space between; or its /path */
    char pki[4000];                  /* directory of ca.crt, host.crt, host.key */
    char name[256];                  /* of this host, as elmer.conf calls it */
    enum rsd_mode mode;
    unsigned rt_reserve;     /* percent of the time that the kernel keeps from real time; 0: as it has it */
    unsigned rt_reserve_ms;  /* of each so many milliseconds; 0: as it has it */
    unsigned tmpdir_percent; /* of the memory: the size of the file system of the jobs' directories; 0: tmpdir_bytes */
    uint64_t tmpdir_bytes;   /* 0 too: it has none of its own */
    unsigned memory_percent; /* of the memory: what jobs may ask for here; 0: memory_bytes */
    uint64_t memory_bytes;
    bool tickets_required;               /* nothing is started without a ticket */
    char ticket_dir[1024];               /* directory of this host's ticket key */
    char ticket_program[4096];           /* the program elmer-tickets */
    char vouch[1024], vouch_users[1024]; /* names, "all" and "!NAME" with a space between: ticket_is_among() */
    uint32_t ticket_uid, ticket_gid;     /* of the user elmer-ticket, which main() looks up; 0: there is none */
    uint32_t minimum_uid;                /* nothing is started for users below */
    /* names with a space between: whose jobs, if they come from another host, are not run here; "": nobody's */
    char deny_users[1024], deny_groups[1024];
    /* of one user, by the socket for commands: connections; requests in a second, and at once */
    long user_connections, user_requests, user_requests_burst;
    char cgroup_root[4096];                   /* "": find it */
    char user_slice[4096];                    /* "": find it */
    char user[64];                            /* of the network half */
    uint32_t supervisor_uid;                  /* of the user elmer-sup, which main() looks up */
    uint32_t jobs_uid, jobs_gid;              /* of the user elmer-jobs, likewise */
    uint32_t network_uid, rsd_uid, elmer_uid; /* of `user`, elmer-rsd and elmer; 0: there is none */
    char
        rundir[80]; /* sup/ jobs/ rsd.sock are below it; the path of a job's tmpdir must leave room for PVM's sockets */
    char proc_stat[4096];         /* the processors' times; another file in tests */
    char supervisor[4096];        /* the program elmer-supervisor; the build's own in tests */
    char network[1024];           /* the program elmer-rsd-net */
    char spawn[4096];             /* the program elmer-spawn; the build's own in tests */
    char escapes[4096];           /* the program elmer-escapes; the build's own in tests */
    char pvmd[1024], agent[1024]; /* PVM's daemon, and elmer-pvm-agent */
    char account[1024];           /* the program elmer-account, which asks PAM; "": nobody is asked */
};

/* The values that hold without a file; name is the host's, up to the first dot. */
void rsd_config_default(struct rsd_config *config);
/* What rsd.conf may contain, with the defaults. */
extern const struct ini_key rsd_config_keys[];
/* Read path and its fragments path.d/NAME.conf over the defaults. missing_ok: no such file is no error. 0 or a negative
 * errno with a sentence; watch (may be NULL) hears of all problems and values, see lib/config/ini.h. */
int rsd_config_read(struct rsd_config *config, const char *path, bool missing_ok, const struct ini_watch *watch,
                    struct err *err);
/* Is this one of the addresses of elmer? */
bool rsd_config_has_elmer(const struct rsd_config *config, const char *address);
/* Where the programs of helpers are, as a supervisor finds it in its environment: NAME=PATH. */
enum { RSD_HELPERS = 2, RSD_HELPER_BYTES = 1024 + 20 };
void rsd_config_helpers(const struct rsd_config *config, char text[RSD_HELPERS][RSD_HELPER_BYTES]);
/* In the run directory: what a running rsd has been given, in the form of its files. */
#define RSD_RUNNING_CONF "rsd.conf"
const char *rsd_mode_name(enum rsd_mode mode); /* auto rt idle none */

#endif
