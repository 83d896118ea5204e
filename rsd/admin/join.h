/* join.h - rsd --join: this host gets its certificate, and a fragment of rsd.conf says where elmer is. */
#ifndef RSD_ADMIN_JOIN_H
#define RSD_ADMIN_JOIN_H

#include <stdbool.h>

#include "lib/base/err.h"

#define JOIN_CONF "50-join.conf"

struct rsd_join {
    const char *config; /* rsd.conf */
    bool config_given;  /* then it must be there */
    const char *elmer;  /* HOST:PORT, or HOST */
    const char *name;   /* NULL: as rsd.conf says, or the host's */
    bool force;         /* also if rsd.conf names another elmer */
    bool now;           /* start rsd, now and at each boot */
};

/* The token is a line of the standard input. Returns the exit status; said why. */
int rsd_join_main(const struct rsd_join *join);

/* The fragment that it writes: elmer, and name unless NULL. malloc'd, NULL when out of memory. */
char *join_conf_text(const char *elmer, const char *name);
/* Write it into the directory. What an administrator has put into it beside is kept in a file that no daemon reads, and
 * said. 0, or negative: the fragment is as it was. */
int join_conf_write(const char *path, const char *elmer, const char *name, struct err *err);

#endif
