/* rsd_net_lab.h - the network half in a directory of its own, between a root half and an elmer that the test plays. */
#ifndef TESTS_DAEMON_RSD_NET_LAB_H
#define TESTS_DAEMON_RSD_NET_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>

#include "lib/wire/channel.h"
#include "rsd/net/net.h"
#include "rsd/net/plan.h"

enum { HEARTBEAT_MS = 150, REPORT_MS = 100, LINE = 4096 };

struct world {
    char dir[64];
    int elmer_listen;
    pid_t rsd;
    struct channel root, elmer; /* our ends */
    struct rsd_config config;
    struct net_plan plan; /* set_up_unit(): what is written for it */
};

void path_in(const struct world *w, const char *name, char *path);

/* Replaced in one step: a reader sees the old or the new text. */
void write_file(const struct world *w, const char *name, const char *text);
int connect_to(const struct world *w, const char *name);
void accept_elmer(struct world *w);
void say_state(struct world *w);
void say_welcome(struct world *w);
void greet(struct world *w);

static const char *const stat_text =
    "cpu  300 0 0 500 0 0 0 0 0 0\ncpu0 100 0 0 300 0 0 0 0 0 0\ncpu1 200 0 0 200 0 0 0 0 0 0\nintr 1\n";

/* elmer: NULL: the socket elmer.sock of the directory; +NAME: the socket NAME there, and that one; else as it is. */
int set_up_with(void **data, const char *elmer);
int set_up(void **data);
/* As a unit of its own, which waits for the root half. */
int set_up_unit(void **data);
/* The root half joins it. False: it has closed the connection without an answer. */
bool join(struct world *w);

/* The exit status, -1 if it does not end in time. */
int wait_for_rsd(struct world *w);
int tear_down(void **data);
void client_connect(struct world *w, struct channel *client);
void client_kill(struct channel *client, uint64_t id, uint64_t job);

/* The request of a local program as elmer gets it; returns the program's number. */
uint64_t expect_relay(struct world *w, uint64_t id, uint64_t job);
void answer_relay(struct world *w, uint64_t client, const struct wire_message *inner);

/* A whole request of a local program works. */
void check_request(struct world *w);

#endif
