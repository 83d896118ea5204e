#include "config.h"

#include "tests/unit/rsd/courier/session_lab.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct session_lab lab;

static void make_pass(struct seal_key *key, const char *host, char *text)
{
    uint8_t public_key[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES];
    struct pass pass = {.job = 7, .attempt = 1, .uid = 1000, .user = "alice"};
    snprintf(pass.host, sizeof(pass.host), "%s", host);
    assert_true(seal_key_make(key));
    memcpy(pass.public_key, key->public_key, sizeof(pass.public_key));
    assert_true(ticket_key_create(secret, public_key) && pass_sign(&pass, public_key, secret));
    pass_encode(&pass, text);
}

static void hear(const struct run_frame *frame)
{
    size_t *count =
        frame->type == RUN_OUT ? &lab.heard.out[frame->rank % RANKS] : &lab.heard.error[frame->rank % RANKS];
    switch ((int)frame->type) {
    case RUN_OUT:
    case RUN_ERR:
        *count += frame->size;
        if (frame->type == RUN_OUT && frame->size < sizeof(lab.heard.text))
            snprintf(lab.heard.text, sizeof(lab.heard.text), "%.*s", (int)frame->size, (const char *)frame->data);
        if (lab.gives_back)
            run_link_send_number(&lab.erun, RUN_TAKEN, frame->type, (uint32_t)frame->size);
        break;
    case RUN_TAKEN:
        lab.heard.taken += run_number(frame->data);
        break;
    case RUN_PMI:
        assert_true(frame->size <= RUN_PMI_PIECE);
        lab.heard.asked[frame->rank % RANKS]++;
        snprintf(lab.heard.asks[frame->rank % RANKS], RUN_PMI_PIECE + 1, "%.*s", (int)frame->size,
                 (const char *)frame->data);
        break;
    case RUN_FAILED:
        lab.heard.failed++;
        snprintf(lab.heard.text, sizeof(lab.heard.text), "%.*s", (int)frame->size, (const char *)frame->data);
        break;
    case RUN_REFUSED:
        lab.heard.refused++;
        snprintf(lab.heard.text, sizeof(lab.heard.text), "%.*s", (int)frame->size, (const char *)frame->data);
        break;
    case RUN_DIED:
    case RUN_EXIT:
        lab.heard.exits += frame->type == RUN_EXIT;
        lab.heard.died += frame->type == RUN_DIED;
        lab.heard.status[frame->rank % RANKS] = run_number(frame->data);
        lab.heard.signal[frame->rank % RANKS] = run_number(frame->data + 4);
        break;
    default:
        break;
    }
}

void session_lab_turn(int timeout)
{
    struct pollfd fds[64];
    size_t count = session_fds(lab.session, fds);
    struct run_frame frame;
    int status;
    pid_t pid;
    fds[count] =
        (struct pollfd){.fd = run_link_events(&lab.erun) ? lab.erun.fd : -1, .events = run_link_events(&lab.erun)};
    (void)poll(fds, count + 1, timeout);
    session_step(lab.session, &lab.courier, fds, mono_ms(mono_now()));
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        (void)session_reaped(lab.session, pid, status); /* one that never got to exec is nobody's */
    if (fds[count].revents)
        run_link_step(&lab.erun, fds[count].revents);
    while (run_link_next(&lab.erun, &frame) > 0)
        hear(&frame);
}

void session_lab_start_in(const char *line, size_t ranks, bool input, const char *dir)
{
    static const struct run_rank all[RANKS] = {{0, RUN_NO_CPU}, {1, RUN_NO_CPU}, {2, RUN_NO_CPU}, {3, RUN_NO_CPU}};
    const char *argv[] = {"/bin/sh", "-c", line, NULL},
               *environment[] = {"PATH=/usr/bin:/bin", "ELMER_ADDRESS=192.0.2.1", "UCX_NET_DEVICES=eth0",
                                 "ELMER_ADDED_DEVICES=eth0", NULL};
    struct run_start start = {.pty = lab.terminal,
                              .input = input,
                              .mpi = lab.mpi,
                              .umask = 022,
                              .total = (uint32_t)ranks,
                              .dir = dir,
                              .argv = {argv, 3},
                              .environment = {environment, 4},
                              .ranks = all,
                              .nranks = ranks};
    size_t size;
    uint8_t *bytes = run_start_pack(&start, &size);
    run_link_send(&lab.erun, RUN_START, 0, bytes, size);
    free(bytes);
    UNTIL(lab.session->started);
}

void session_lab_start(const char *line, size_t ranks, bool input)
{
    session_lab_start_in(line, ranks, input, "/tmp");
}

int session_lab_show(void **state)
{
    struct seal_key key;
    char text[PASS_TEXT_MAX + 1];
    int fds[2];
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* as the courier is */
    make_pass(&lab.courier.key, "ws2", lab.courier.text);
    assert_true(pass_decode(lab.courier.text, &lab.courier.pass));
    make_pass(&key, "ws1", text);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    getrlimit(RLIMIT_NOFILE, &lab.courier.files);
    sched_getaffinity(0, sizeof(lab.courier.cpus), &lab.courier.cpus);
    run_link_init(&lab.erun, fds[0], true, &key, text);
    lab.session = session_create(fds[1], &lab.courier, mono_ms(mono_now()));
    assert_non_null(lab.session);
    lab.heard = (struct heard){.exits = 0};
    lab.gives_back = true;
    for (int i = 0; i < 10 && lab.session->link.state != RUN_CHECKING; i++) {
        struct pollfd fd = {.fd = fds[1], .events = POLLIN};
        run_link_step(&lab.erun, POLLIN | POLLOUT);
        if (poll(&fd, 1, 100) > 0)
            run_link_step(&lab.session->link, fd.revents);
    }
    run_link_step(&lab.erun, POLLIN);
    return 0;
}

int session_lab_begin(void **state)
{
    (void)session_lab_show(state);
    run_link_accept(&lab.erun);
    run_link_accept(&lab.session->link); /* what elmer-tickets says is for tests/system */
    assert_int_equal(lab.erun.state, RUN_OPEN);
    assert_int_equal(lab.session->link.state, RUN_OPEN);
    return 0;
}

int session_lab_end(void **state)
{
    (void)state;
    run_link_fini(&lab.erun);
    for (int i = 0; i < 500 && !session_over(lab.session); i++)
        session_lab_turn(10);
    assert_true(session_over(lab.session));
    session_destroy(lab.session);
    return 0;
}
