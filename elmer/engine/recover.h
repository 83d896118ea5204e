/* recover.h - the state of the last run, from the store back into the core and the table of jobs. */
#ifndef ELMER_ENGINE_RECOVER_H
#define ELMER_ENGINE_RECOVER_H

#include "elmer/daemon.h"
#include "lib/base/err.h"

/* Blocking, before the first event; the core has its hosts. */
int recover(struct daemon *daemon, struct err *err);

#endif
