#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/libelmer/client_bed.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

struct elmer *elmer;
int listener;
struct channel channel;

static char dir[64];

/* NAME in dir. */
static int listen_at(const char *name)
{
    char path[sizeof(dir) + 20];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return peer_listen(path);
}

static void open_client(int patience_ms)
{
    char path[sizeof(dir) + 20];
    const struct elmer_options options = {.socket = path, .patience_ms = patience_ms};
    snprintf(path, sizeof(path), "%s/elmer.sock", dir);
    assert_int_equal(elmer_open(&options, &elmer, NULL), ELMER_OK);
}

void client_bed_patience(int patience_ms)
{
    elmer_close(elmer);
    open_client(patience_ms);
}

int client_bed_setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/client_bed.XXXXXX");
    assert_non_null(scratch_dir(dir));
    listener = listen_at("elmer.sock");
    open_client(0);
    return 0;
}

int client_bed_desk(void)
{
    return listen_at("ticket.sock");
}

int client_bed_teardown(void **state)
{
    (void)state;
    elmer_close(elmer);
    channel_fini(&channel);
    if (listener >= 0)
        close(listener);
    return 0;
}

void client_bed_step(void)
{
    struct pollfd pollfd = {.fd = elmer_fd(elmer), .events = POLLIN};
    int left = elmer_timeout_ms(elmer);
    bool pause = left >= 0 && left < PEER_DEADLINE_MS;
    int ready = poll(&pollfd, 1, pause ? left : PEER_DEADLINE_MS);
    assert_true(pause || ready == 1);
    elmer_step(elmer);
}
