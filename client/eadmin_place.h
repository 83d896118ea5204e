/* eadmin_place.h - where a new cluster is: the address that elmer listens on, its hosts, and the services of the queue
 * host. For eadmin init. All return the exit code; what is wrong has been said. */
#ifndef CLIENT_EADMIN_PLACE_H
#define CLIENT_EADMIN_PLACE_H

#include <stdbool.h>

struct settings;

struct place_wish {
    const char *hosts; /* names with a comma or space between; NULL: as the files say */
    bool here;         /* this host, whatever the files say of an address: they are another one's; the port is theirs */
    const char *listen; /* HOST or HOST:PORT; NULL: as the files say, or else it is found */
};

/* The fragment CONFIG.d/50-init.conf says what is wished for; elmer.conf itself is the administrator's. Nothing is
 * written before all of it is known to be good. settings are those of the files, and afterwards with it. */
int place_cluster(const struct place_wish *wish, const char *config, bool required, struct settings *settings);
/* Says it where rsd.conf names the elmer of another host: a new cluster here would take this host out of that one.
 * name: of this host. */
int place_is_free(const char *rsd_conf, const char *name);
/* What eadmin config check finds, and if that is nothing: elmer, and rsd where it is installed, now and at each boot.
 */
int place_start(const char *config, bool required);

#endif
