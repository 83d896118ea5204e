#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/ticket/pass.h"
#include "lib/ticket/warrant.h"
#include "libelmer/client.h"
#include "rsd/tickets/desk.h"
#include "tests/unit/rsd/tickets/desk_bed.h"
#include "tests/unit/scratch.h"

char named[DESK_PATH];
char socket_path[DESK_PATH + 16], rsd_path[DESK_PATH + 16];
uint64_t nprocs = 1;
const char *tasks = "";
int listener = -1;
pid_t desk;
struct ticket_keys desk_keys;
bool accepts;
const char *denied = "";

int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

static void listen_at(const char *dir)
{
    snprintf(socket_path, sizeof(socket_path), "%s/ticket.sock", dir);
    snprintf(rsd_path, sizeof(rsd_path), "%s/rsd.sock", dir);
    snprintf(named, sizeof(named), "%s/elmer.sock", dir);
    listener = listen_on(socket_path);
}

int setup(void **state)
{
    char dir[64] = "/tmp/test_desk.XXXXXX";
    struct ticket_keys keys;
    struct err err = ERR_INIT;
    (void)state;
    assert_non_null(scratch_dir(dir));
    assert_int_equal(ticket_keys_open(&keys, dir, "ws1", &err), 0);
    listen_at(dir);
    desk_keys = keys;
    desk = desk_start(&keys, &(struct desk_believes){"all", "all", denied, "", !accepts}, listener);
    assert_true(desk > 0);
    ticket_keys_close(&keys);
    return 0;
}

int teardown(void **state)
{
    (void)state;
    if (desk > 0) {
        kill(desk, SIGKILL);
        waitpid(desk, NULL, 0);
    }
    close(listener);
    return 0;
}

struct wire_message submission(void)
{
    static const char *command[] = {"/bin/true"};
    return (struct wire_message){.type = WIRE_submit,
                                 .id = 1,
                                 .u.submit = {.token = "t",
                                              .name = "x",
                                              .nprocs = nprocs,
                                              .command = {command, 1},
                                              .dir = "/d",
                                              .output = "",
                                              .errors = "",
                                              .tasks = tasks,
                                              .submit_host = "",
                                              .comment = "",
                                              .ticket = ""}};
}

void until_signed(struct client_desk *user, const struct client_signing *signing)
{
    while (signing->state != SIGNING_DONE) {
        struct pollfd pollfd = {.fd = client_desk_events(user) ? user->channel.fd : -1,
                                .events = client_desk_events(user)};
        int64_t left = client_desk_until_ms(user) - mono_ms(mono_now());
        int ready = poll(&pollfd, 1, left > 0 ? (int)left : 0);
        client_desk_step(user, ready > 0);
    }
}

/* What became of it; the number of its ticket goes into *number. */
int submit(struct client_desk *user, int timeout_ms, uint64_t *number)
{
    int64_t deadline = mono_ms(mono_now()) + timeout_ms;
    struct client_signing signing = {.state = SIGNING_NONE};
    struct wire_message m = submission();
    struct ticket ticket;
    int result;
    client_ticket_begin(user, &signing, &m, deadline);
    until_signed(user, &signing);
    result = client_ticket_take(&signing, &m, NULL);
    if (number && result == ELMER_OK) {
        assert_int_equal(signing.answer.type, WIRE_ticket);
        assert_int_equal(ticket_decode(m.u.submit.ticket, &ticket), TICKET_GOOD);
        *number = ticket.counter;
    } else if (result == ELMER_OK) {
        assert_string_equal(m.u.submit.ticket, "");
    }
    client_signing_drop(user, &signing);
    return result;
}

/* What becomes of a question; the words of a refusal go into text. */
int ask(const struct wire_message *question, char text[400])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct wire_message answer = {.type = WIRE_pong};
    struct channel channel;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), got;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(channel_init(&channel, fd, WIRE_FROM_ROOT, 1 << 16), 0);
    channel.minor = WIRE_TICKET_MINOR;
    assert_int_equal(channel_send(&channel, question, NULL), 0);
    got = channel_receive(&channel, &answer, mono_ms(mono_now()) + WAIT_MS, NULL);
    snprintf(text, 400, "%s", got == 1 && answer.type == WIRE_error ? answer.u.error.text : "");
    got = got == 1 ? (int)answer.type : -1;
    wire_message_fini(&answer);
    channel_fini(&channel);
    return got;
}

int connect_in_silence(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}
