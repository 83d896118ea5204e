#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/ticket/keys.h"
#include "lib/wire/channel.h"
#include "tests/daemon/terminal_lab.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

/* ---- in place of elmer-tickets ---- */

static void make_pass(const struct claim *claim, const uint8_t *public_key, char *text)
{
    static uint8_t key[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES];
    static bool made;
    struct pass pass = {
        .looks = !claim->is_process, .job = claim->job, .attempt = claim->is_process ? 1 : 0, .uid = claim->uid};
    if (!made)
        assert_true(ticket_key_create(secret, key));
    made = true;
    snprintf(pass.host, sizeof(pass.host), "%s", LAB_HOST);
    snprintf(pass.user, sizeof(pass.user), "%s", claim->user);
    memcpy(pass.public_key, public_key, sizeof(pass.public_key));
    assert_true(pass_sign(&pass, key, secret));
    pass_encode(&pass, text);
}

static void answer(const char *dir, struct channel *channel, const struct wire_message *request)
{
    struct wire_message message = {.type = WIRE_pass, .id = request->id};
    struct claim claim = LAB_CLAIM;
    uint8_t key[SEAL_KEY_BYTES];
    char text[PASS_TEXT_MAX + 1], deny[100];
    snprintf(deny, sizeof(deny), "%s/deny", dir);
    claim.is_process = request->type == WIRE_pass_ask;
    if (request->type == WIRE_pass_look)
        claim.job = request->u.pass_look.job;
    if (request->type == WIRE_pass_ask || request->type == WIRE_pass_look) {
        const char *hex = claim.is_process ? request->u.pass_ask.key : request->u.pass_look.key;
        assert_true(hex_read(hex, key, sizeof(key)));
        make_pass(&claim, key, text);
        message.u.pass.pass = text;
    } else if (request->type == WIRE_submit) { /* none is required here */
        message.type = WIRE_ticket;
        message.u.ticket.ticket = "";
    } else if ((request->type == WIRE_pass_check || request->type == WIRE_pass_trust) && access(deny, F_OK) < 0) {
        message.type = WIRE_done;
        message.u.done.text = "";
    } else {
        message.type = WIRE_error;
        message.u.error.code = WIRE_CODE_REFUSED;
        message.u.error.text = "not believed here";
    }
    (void)channel_send_all(channel, &message, mono_ms(mono_now()) + 5000, NULL);
}

static _Noreturn void serve_one(const char *dir, int fd)
{
    struct channel channel;
    struct wire_message request;
    if (channel_init(&channel, fd, WIRE_FROM_CLIENT, 1 << 20) < 0)
        _exit(1);
    channel.minor = WIRE_TICKET_MINOR;
    while (channel_receive(&channel, &request, mono_ms(mono_now()) + 5000, NULL) > 0) {
        answer(dir, &channel, &request);
        wire_message_fini(&request);
    }
    _exit(0);
}

static _Noreturn void serve(const char *dir, int listener)
{
    (void)signal(SIGCHLD, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        int fd;
        (void)poll(&wait, 1, -1);
        fd = accept(listener, NULL, NULL);
        if (fd >= 0 && fork() == 0)
            serve_one(dir, fd);
        if (fd >= 0)
            close(fd);
    }
}

void terminal_desk_up(struct terminal_lab *lab, const char *dir)
{
    char path[108];
    int listener;
    snprintf(lab->dir, sizeof(lab->dir), "%s", dir);
    snprintf(path, sizeof(path), "%s/ticket.sock", dir);
    listener = peer_listen(path);
    lab->desk = fork();
    assert_true(lab->desk >= 0);
    if (lab->desk == 0)
        serve(lab->dir, listener);
    close(listener);
    snprintf(path, sizeof(path), "%s/elmer.sock", dir);
    setenv("ELMER_SOCKET", path, 1);
}

void terminal_desk_down(struct terminal_lab *lab)
{
    char path[108];
    kill(lab->desk, SIGKILL);
    waitpid(lab->desk, NULL, 0);
    snprintf(path, sizeof(path), "%s/ticket.sock", lab->dir);
    unlink(path);
}

/* ---- the holder ---- */

static _Noreturn void hold(const struct terminal_lab *lab, const char *mode, const char *const *argv, int out)
{
    const char *words[16] = {"elmer-courier", "--terminal"};
    char path[108];
    int unseen;
    for (size_t i = 0; i < 12 && argv[i]; i++)
        words[2 + i] = argv[i];
    snprintf(path, sizeof(path), "%s/unseen", lab->dir);
    unseen = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    setenv("ELMER_TERMINAL", mode, 1);
    setenv("PS1", "ready> ", 1);
    setenv("TERM", "dumb", 1);
    if (dup2(out, 1) < 0 || dup2(unseen, 2) < 0)
        _exit(99);
    execv("./elmer-courier", (char **)(uintptr_t)words);
    _exit(99);
}

void terminal_up(struct terminal_lab *lab, const char *mode, const char *const *argv)
{
    char dir[64] = "/tmp/terminal.XXXXXX", line[32] = "";
    int fds[2];
    *lab = (struct terminal_lab){.desk = 0};
    assert_non_null(scratch_dir(dir));
    terminal_desk_up(lab, dir);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    lab->holder = fork();
    assert_true(lab->holder >= 0);
    if (lab->holder == 0)
        hold(lab, mode, argv, fds[1]);
    close(fds[1]);
    for (size_t used = 0; used < sizeof(line) - 1;) {
        ssize_t got = read(fds[0], line + used, sizeof(line) - 1 - used);
        if (got <= 0)
            break; /* it has said it, and closed */
        used += (size_t)got;
    }
    close(fds[0]);
    lab->port = (uint16_t)strtoul(line, NULL, 10);
    assert_true(lab->port > 0);
}

int terminal_end(struct terminal_lab *lab)
{
    int64_t deadline = mono_ms(mono_now()) + LAB_WAIT_MS;
    int status = 0;
    pid_t pid = 0;
    while (mono_ms(mono_now()) < deadline && (pid = waitpid(lab->holder, &status, WNOHANG)) == 0)
        poll(NULL, 0, 2);
    assert_int_equal(pid, lab->holder);
    lab->holder = 0;
    return status;
}

void terminal_down(struct terminal_lab *lab)
{
    if (lab->holder > 0) {
        kill(lab->holder, SIGKILL);
        waitpid(lab->holder, NULL, 0);
    }
    terminal_desk_down(lab);
}

/* ---- who looks ---- */

bool terminal_connect(struct terminal_lab *lab, const struct claim *claim, struct run_link *link)
{
    int64_t deadline = mono_ms(mono_now()) + LAB_WAIT_MS;
    char text[PASS_TEXT_MAX + 1];
    struct seal_key key;
    int fd = run_link_connect("", lab->port);
    assert_true(fd >= 0);
    assert_true(seal_key_make(&key));
    make_pass(claim, key.public_key, text);
    run_link_init(link, fd, true, &key, text);
    while (link->state != RUN_OPEN && link->state != RUN_DEAD && mono_ms(mono_now()) < deadline) {
        struct pollfd poller = {.fd = link->fd, .events = run_link_events(link)};
        (void)poll(&poller, 1, 10);
        run_link_step(link, poller.revents);
        if (link->state == RUN_CHECKING)
            run_link_accept(link);
    }
    if (link->state != RUN_OPEN) /* some tests want that */
        print_message("no link, state %d, %d ms left: %s\n", (int)link->state, (int)(deadline - mono_ms(mono_now())),
                      link->text);
    return link->state == RUN_OPEN;
}

/* ---- a connection that is cut ---- */

bool terminal_has(const struct terminal_lab *lab, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", lab->dir, name);
    return access(path, F_OK) == 0;
}

static bool record(const struct terminal_lab *lab, const char *bytes, size_t size)
{
    char path[128];
    int fd;
    bool written;
    snprintf(path, sizeof(path), "%s/said", lab->dir);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    written = fd >= 0 && write(fd, bytes, size) == (ssize_t)size;
    close(fd);
    return written;
}

/* One connection. */
static void pass_on(const struct terminal_lab *lab, int client, int holder)
{
    static char bytes[1 << 16];
    size_t first = 0; /* bytes of that frame that have gone on */
    while (!terminal_has(lab, "cut")) {
        struct pollfd fds[] = {{.fd = client, .events = POLLIN}, {.fd = holder, .events = POLLIN}};
        ssize_t got;
        (void)poll(fds, 2, 5);
        if (fds[0].revents && ((got = read(client, bytes, sizeof(bytes))) <= 0 || !record(lab, bytes, (size_t)got) ||
                               write(holder, bytes, (size_t)got) != got))
            break;
        if (!fds[1].revents)
            continue;
        if (first > 0 && terminal_has(lab, "hold")) {
            (void)scratch_put(lab->dir, "held", "");
            poll(NULL, 0, 5);
            continue;
        }
        if ((got = read(holder, bytes, sizeof(bytes))) <= 0 || write(client, bytes, (size_t)got) != got)
            break;
        first += (size_t)got;
    }
}

pid_t terminal_proxy_up(struct terminal_lab *lab)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    uint16_t port = lab->port;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t pid;
    assert_true(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 5) == 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    lab->port = ntohs(address.sin_port);
    address.sin_port = htons(port);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (pid == 0) {
        int client = accept(listener, NULL, NULL), holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (client < 0 || connect(holder, (struct sockaddr *)&address, sizeof(address)) < 0)
            _exit(1);
        pass_on(lab, client, holder);
        close(client);
        close(holder);
    }
    close(listener);
    return pid;
}
