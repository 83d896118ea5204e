/* watch.h - something that is shown again and again on a terminal, as top(1) does. */
#ifndef CLIENT_WATCH_H
#define CLIENT_WATCH_H

/* draw() writes to stdout and stderr, and returns an exit code: other than 0 the first time it ends at once. Until q,
 * Ctrl-C or a signal. Returns the exit code. */
int watch(int interval_ms, int (*draw)(void *data), void *data);

#endif
