/* fuzz_root.c - the root half of rsd, whole: verbs of a network half that has been taken over, supervisors that say
 * anything or nothing, groups that fill and empty, children that end, calls that fail, time that passes. What is
 * dangerous is replaced: groups, ranks, directories and the scope (root_fakes.c), sockets, processes and signals
 * (world.c). */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "rsd/root/order.h"
#include "rsd/root/root.h"
#include "tests/fuzz/root_fakes.h"
#include "tests/fuzz/world.h"

enum { MAX_TURNS = 300 };

static int net_fd, net_pid;
static unsigned turns;

/* ---- what happens ---- */

static void from_net(struct input *input)
{
    static const enum wire_type verbs[] = {WIRE_order, WIRE_open,  WIRE_open,        WIRE_start,
                                           WIRE_start, WIRE_taken, WIRE_end,         WIRE_forget,
                                           WIRE_ping,  WIRE_order, WIRE_pvm_spawned, WIRE_pvm_finish,
                                           WIRE_open,  WIRE_end,   WIRE_resync,      WIRE_TYPE_COUNT};
    enum wire_type type = verbs[input_below(input, 16)];
    struct wire_message message;

    input_message(input, type == WIRE_TYPE_COUNT ? input_type(input, WIRE_FROM_ANY) : type, &message);
    world_feed_message(net_fd, &message);
    wire_message_fini(&message);
}

static int pick_supervisor(struct input *input)
{
    int fd = world_pick(WORLD_SOCKET, input_byte(input));

    return fd == net_fd ? world_pick(WORLD_SOCKET, 1) : fd;
}

static void from_supervisor(struct input *input)
{
    int fd = pick_supervisor(input);
    struct wire_message message;

    input_message(input, input_type(input, WIRE_FROM_SUPERVISOR), &message);
    if (fd != net_fd)
        world_feed_message(fd, &message);
    wire_message_fini(&message);
}

static void garbage(struct input *input)
{
    size_t size = input_below(input, 32);
    int fd = world_pick(WORLD_SOCKET, input_byte(input));

    size = size < input->left ? size : input->left;
    world_feed(fd, input->at, size);
    input->at += size;
    input->left -= size;
}

static void group_changes(struct input *input)
{
    root_fakes_change_group(world_pick(WORLD_OTHER, input_byte(input)));
}

static void terminate(void)
{
    struct signalfd_siginfo info = {.ssi_signo = SIGTERM};

    world_feed(world_pick(WORLD_SIGNALS, 0), &info, sizeof(info));
}

static void happen(struct input *input, int timeout_ms)
{
    uint8_t what = input_byte(input);

    if (what < 0x60)
        from_net(input);
    else if (what < 0xA0)
        from_supervisor(input);
    else if (what < 0xC0)
        world_pass_ms(timeout_ms);
    else if (what < 0xD0)
        world_pass_ms(200 * (int64_t)input_byte(input));
    else if (what < 0xE0)
        group_changes(input);
    else if (what < 0xE8)
        world_child_ends(1000 + (int)input_below(input, 32), 0, true);
    else if (what < 0xF4)
        world_feed_end(pick_supervisor(input));
    else if (what < 0xF8)
        world_clog(world_pick(WORLD_SOCKET, input_byte(input)), input_byte(input) & 1);
    else if (what < 0xFC)
        garbage(input);
    else if (what == 0xFE)
        terminate();
    else
        world_child_ends(net_pid, 0, true);
}

int world_poll(struct pollfd *fds, size_t count, int timeout_ms)
{
    int ready = 0;

    FUZZ_CHECK(timeout_ms >= 0, "waits for ever");
    if (world_input()->left > 0 && ++turns < MAX_TURNS) {
        happen(world_input(), timeout_ms);
    } else {
        world_feed_end(net_fd);
        world_pass_ms(timeout_ms);
    }
    for (size_t i = 0; i < count; i++) {
        if ((fds[i].events & POLLIN) && fds[i].fd >= 0 && world_readable(fds[i].fd))
            fds[i].revents |= POLLIN;
        if (fds[i].events & (POLLOUT | POLLPRI))
            fds[i].revents |= (short)(fds[i].events & (POLLOUT | POLLPRI));
        ready += fds[i].revents != 0;
    }
    return ready;
}

void world_heard(int fd, const struct wire_message *message)
{
    if (message->type == WIRE_start)
        FUZZ_CHECK(fd != net_fd, "a start for the network half");
    if (message->type == WIRE_rank)
        FUZZ_CHECK(message->u.rank.priority < ORDER_DYING && message->u.rank.helper_priority < ORDER_DYING, "a rank");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rsd_config config;
    struct input input = {data, size};

    root_fakes_begin();
    rsd_config_default(&config);
    config.tmpdir_percent = 0; /* nothing is mounted */
    (void)snprintf(config.rundir, sizeof(config.rundir), "/fuzz");
    (void)snprintf(config.name, sizeof(config.name), "ws1");
    world_begin(&input, WIRE_FROM_ROOT);
    turns = 0;
    net_fd = world_open(WORLD_SOCKET);
    net_pid = world_new_pid();
    (void)rsd_root_main(net_fd, net_pid, &config, NULL, NULL);
    world_end();
    return 0;
}
