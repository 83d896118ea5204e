/* prepare.h - what root does before rsd hears anybody: the configuration, users, run directories, plans of the units.
 * For rsd where it is root itself, and for elmer-rsd-begin where it is not. */
#ifndef RSD_PREPARE_H
#define RSD_PREPARE_H

#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/ticket/program.h"
#include "rsd/config.h"

enum { PREPARE_EXIT_CONFIG = 2, PREPARE_AGAIN_S = 5 };

/* path NULL: that of the system, which need not be there. Each problem is logged. *given: what was in the files, in
 * their form, which is the caller's; also of wrong ones. 0 or -errno. */
int prepare_config(struct rsd_config *config, const char *path, char **given, struct err *err);
/* elmer-ticket, elmer-jobs and elmer-sup, as far as they are there: jobs must start also between an upgrade and
 * systemd-sysusers. */
void prepare_users(struct rsd_config *config);
/* For elmer-rsd-admin, which compares it with new files. */
void prepare_remember(const struct rsd_config *config, const char *given);

/* next: what follows, 0 or more, or -errno with a sentence. waits: PREPARE_AGAIN_S long, because of this, each time
 * before it is tried again; NULL: no more. */
struct prepare_then {
    int (*next)(void *data, struct err *err);
    void (*waits)(void *data, const char *why);
    void *data;
};
/* The user of the network half, programs, run directories, and what is next. What may pass is waited for here, and said
 * once, instead of being started again and again. -EPERM: it will not. Else what `next` has returned. */
int prepare_in_time(const struct rsd_config *config, uid_t *uid, gid_t *gid, const struct prepare_then *then,
                    struct err *err);
/* A socket for users in the run directory, where only root writes; served by others. */
int prepare_socket(const struct rsd_config *config, const char *name, struct err *err);
/* What elmer-tickets is to serve; without grants. */
struct ticket_serve prepare_serve(const struct rsd_config *config);
/* What the units are to do, in files of root's (service_plan_write()): the network half, and elmer-tickets. */
int prepare_plans(const struct rsd_config *config, struct err *err);

#endif
