/* desk_bed.h - a desk that signs, in a process of its own, and users who ask it. */
#ifndef TESTS_UNIT_RSD_TICKETS_DESK_BED_H
#define TESTS_UNIT_RSD_TICKETS_DESK_BED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libelmer/client.h"
#include "rsd/tickets/desk.h"

enum { WAIT_MS = 20000, DESK_PATH = 80 };
extern char named[DESK_PATH]; /* the socket that the caller names: tickets are beside it */
extern char socket_path[DESK_PATH + 16], rsd_path[DESK_PATH + 16];
extern uint64_t nprocs;   /* of submission() */
extern const char *tasks; /* of an array */
extern int listener;
extern pid_t desk;
extern struct ticket_keys desk_keys; /* with the secret */
extern bool accepts;                 /* jobs without a ticket: for setup() */
extern const char *denied;           /* deny_users, for setup() */

int setup(void **state);
int teardown(void **state);
struct wire_message submission(void);
void until_signed(struct client_desk *user, const struct client_signing *signing);
int submit(struct client_desk *user, int timeout_ms, uint64_t *number);
/* A question over a connection of its own: the type of the answer, and its text. */
int ask(const struct wire_message *question, char text[400]);
int listen_on(const char *path);
int connect_in_silence(void);

#endif
