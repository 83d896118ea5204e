/* notify.h - the adapter of libsystemd: ready, status, watchdog. All of it does nothing outside systemd. */
#ifndef ELMER_NOTIFY_H
#define ELMER_NOTIFY_H

#include "elmer/engine/deadline.h"

struct notify;
/* status() writes a line about the present state; it is asked now and then. */
struct notify *notify_create(struct deadlines *deadlines, void (*status)(char *text, size_t size, void *data),
                             void *data);
void notify_ready(struct notify *notify);
void notify_reloading(struct notify *notify);
void notify_reloaded(struct notify *notify); /* with the status of now */
void notify_stopping(struct notify *notify);
void notify_destroy(struct notify *notify);

enum { NOTIFY_WAIT_S = 5 };
/* Without a loop: say why elmer has not begun yet, and wait. The service counts as started meanwhile, because what it
 * waits for may take long, and units that come after it need not. Returns true at once after SIGTERM or SIGINT. Of
 * SIGHUP it says that a restart is needed: the files have been read, and nothing runs that could be reloaded. */
bool notify_wait(const char *why);

#endif
