/* daemon.h - the queue daemon, whole. */
#ifndef ELMER_DAEMON_H
#define ELMER_DAEMON_H

#include <stdbool.h>

#include "elmer/settings.h"
#include "lib/base/err.h"

/* Run until SIGTERM or SIGINT. What keeps it from beginning and may pass (the store is on a disk that is not there yet,
 * a socket is another elmer's) it waits for. 0, or negative with the text of err when it could not begin or go on
 * (-EUCLEAN: the store is damaged). SIGHUP reads the files again, all or nothing; settings follow. */
int daemon_run(struct settings *settings, struct err *err);
/* Neither waiting nor starting again helps with this error: somebody has to change something. */
bool daemon_is_hopeless(int result);

#endif
