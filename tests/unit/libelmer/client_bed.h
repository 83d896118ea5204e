/* client_bed.h - for tests of libelmer: a client, and the socket of an elmer that the test plays. */
#ifndef TESTS_UNIT_LIBELMER_CLIENT_BED_H
#define TESTS_UNIT_LIBELMER_CLIENT_BED_H

#include "lib/wire/channel.h"
#include "libelmer/elmer.h"

extern struct elmer *elmer;    /* has not connected yet */
extern int listener;           /* where it will */
extern struct channel channel; /* the test's end, once it has accepted */

int client_bed_setup(void **state);
int client_bed_teardown(void **state);
/* A client that waits so long for somebody who listens, in place of the other one. */
void client_bed_patience(int patience_ms);
/* Where it will have its submissions signed, if it is there. */
int client_bed_desk(void);
/* When there is something to do, or a pause is over. */
void client_bed_step(void);

#endif
