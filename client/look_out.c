/* look_out.c - what the other terminal has shown goes to standard output, without waiting for who reads that: signals,
 * ~. and the connection have their turn also while nobody does. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/common.h"
#include "client/look_internal.h"
#include "client/screen.h"

enum { TELL_BYTES = 32 << 10, SIGNALLED = 128 };

void look_out_open(struct look *look)
{
    int fd = screen_open_again(STDOUT_FILENO);

    look->out_fd = fd >= 0 ? fd : STDOUT_FILENO;
}

void look_out_close(const struct look *look)
{
    if (look->out_fd != STDOUT_FILENO)
        close(look->out_fd);
}

void look_out_hear(struct look *look, const struct run_frame *frame)
{
    if (frame->size > RUN_WINDOW - look->out_size) {
        run_link_kill(&look->link, "it sends more than there is room for");
        return;
    }
    if (frame->size > RUN_WINDOW - look->out_begin - look->out_size) {
        memmove(look->out, look->out + look->out_begin, look->out_size);
        look->out_begin = 0;
    }
    memcpy(look->out + look->out_begin + look->out_size, frame->data, frame->size);
    look->out_size += frame->size;
    look->received += frame->size;
}

/* Of the descriptor that we were given a pipe takes PIPE_BUF bytes without waiting when it is ready. */
static size_t piece_of(const struct look *look)
{
    return look->out_fd != STDOUT_FILENO || look->out_size < PIPE_BUF ? look->out_size : PIPE_BUF;
}

void look_out_write(struct look *look)
{
    ssize_t written = write(look->out_fd, look->out + look->out_begin, piece_of(look));

    if (written < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (written < 0) {
        screen_back();
        say("standard output cannot be written: %s", strerror(errno));
        look_end(look, EXIT_REFUSED);
        return;
    }
    look->out_begin += (size_t)written;
    look->out_size -= (size_t)written;
    look->written += (uint64_t)written;
    if (look->out_size == 0)
        look->out_begin = 0;
    if (look->state != LOOK_SHOWN || (look->out_size > 0 && look->written - look->acknowledged < TELL_BYTES))
        return;
    run_link_send_number(&look->link, RUN_TAKEN, RUN_OUT, (uint32_t)(look->written - look->acknowledged));
    look->acknowledged = look->written;
}

/* ---- the rest ---- */

static void hear_signals(struct look *look, int fd)
{
    struct signalfd_siginfo info;

    while (look->code == 0 && read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGTSTP)
            screen_stop();
        else if (info.ssi_signo == SIGCONT)
            screen_again();
        else if (info.ssi_signo != SIGWINCH)
            look->code = SIGNALLED + (int)info.ssi_signo;
    }
}

/* ~. or the end of our own terminal: it need not be shown. */
static void read_input(struct look *look)
{
    uint8_t typed[256], bytes[2];
    ssize_t got = read(STDIN_FILENO, typed, sizeof(typed));
    bool leaves = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);

    for (ssize_t i = 0; i < got; i++) {
        size_t size = 0;

        leaves = escape_take(&look->escape, typed[i], bytes, &size) == ESCAPE_LEAVE || leaves;
    }
    if (leaves)
        look->out_size = 0;
}

void look_out_rest(struct look *look, int signal_fd)
{
    while (look->out_size > 0 && look->code == 0) {
        struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN},
                               {.fd = look->out_fd, .events = POLLOUT},
                               {.fd = screen_is_raw() ? STDIN_FILENO : -1, .events = POLLIN}};

        if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
            continue;
        if (fds[0].revents)
            hear_signals(look, signal_fd);
        if (fds[1].revents && look->code == 0)
            look_out_write(look);
        if (fds[2].revents)
            read_input(look);
    }
}
