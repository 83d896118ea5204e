/* daemon.h - the queue daemon, whole. */
#ifndef ELMER_DAEMON_H
#define ELMER_DAEMON_H

#include "elmer/settings.h"
#include "lib/base/err.h"

/* Run until SIGTERM or SIGINT. 0, or negative with the text of err when it could not start or go on (-EUCLEAN: the
 * store is damaged). */
int daemon_run(const struct settings *settings, struct err *err);

#endif
