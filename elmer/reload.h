/* reload.h - the configuration changes while elmer runs: at SIGHUP, and when a host joins that it does not name. */
#ifndef ELMER_RELOAD_H
#define ELMER_RELOAD_H

#include <stddef.h>

#include "elmer/settings.h"

struct reload_rooms {
    struct settings *settings; /* in force */
    struct engine *engine;
    struct hosts *hosts;
    struct membership *membership;
    struct requests *requests;
    void (*share)(void *data); /* settings have changed: give each room its part */
    void *data;
};

/* Read the files anew beside what runs; they count only when all of them are good. What became of it is logged, and in
 * text, which begins with ", ", for the status. */
void reload(const struct reload_rooms *rooms, char *text, size_t size);
/* This one is a host of the cluster from now on, because it has joined. */
void reload_add_joined(const struct reload_rooms *rooms, const char *name);
/* Hosts that the core has from the store and the files do not name get their places in settings. */
void reload_meet_stored(struct settings *settings, const struct engine *engine);

#endif
