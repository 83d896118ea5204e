/* pair.h - a key and its certificate, which change together. */
#ifndef LIB_PKI_PAIR_H
#define LIB_PKI_PAIR_H

#include "lib/base/err.h"

/* Write host.key and host.crt into the directory; a crash between leaves what pair_recover() completes or throws away.
 */
int pair_write(int dir, const char *key, const char *certificate, struct err *err);
/* The same with two files of the directory, which are whole and on disk: it takes no room. */
int pair_move(int dir, const char *key, const char *certificate, struct err *err);
int pair_recover(int dir, struct err *err);

#endif
