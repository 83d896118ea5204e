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

struct place_undo {   /* what was there before */
    char *path, *old; /* of the fragments, and the text of ours; NULL: nothing was written; there was none */
    char *kept;       /* the name of its copy; NULL: it said what eadmin init writes */
    bool made_dir, told;
};

/* The fragment CONFIG.d/50-init.conf says what is wished for; elmer.conf itself is the administrator's. Nothing is
 * written before all of it is known to be good. What else the fragment said is kept beside, and that is said. settings
 * are those of the files, and afterwards with it. Where it is refused all is as before; undo is of zeros then. */
int place_cluster(const struct place_wish *wish, const char *config, bool required, struct settings *settings,
                  struct place_undo *undo);
/* A later step was refused: the files are as before. Or it was not. Of zeros: nothing. */
void place_undo(struct place_undo *undo);
void place_undo_fini(struct place_undo *undo);
/* A name for what a file of the configuration says now, which is not there yet and which no daemon reads. malloc'd. */
char *place_name_for_old(int dir, const char *name);
/* Says it where rsd.conf names the elmer of another host: a new cluster here would take this host out of that one.
 * name: of this host. */
int place_is_free(const char *rsd_conf, const char *name);
/* elmer, and rsd where it is installed, now and at each boot. */
int place_start(void);

#endif
