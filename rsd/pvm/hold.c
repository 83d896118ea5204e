/* hold.c - elmer-machine, the command of a virtual machine that was asked for without one (esubmit -P): it does
 * nothing, and ends when the machine is halted, which is when its master takes its socket (PVMSOCK) away.
 *
 * A process of the job as any command, so the job's start, end, attempts, tickets and restarts are those of every job.
 * It does not enrol with PVM: a machine that is halted ends its tasks by signals. What is killed leaves its socket
 * behind; then the job has failed, and elmer ends it. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { EXIT_HALTED = 0, EXIT_NO_MACHINE = 2, LOOK_MS = 60000, LOOK_BLIND_MS = 100 };

/* Told of all that is removed beside the socket; -1: it has to be looked for. */
static int watch(const char *socket)
{
    const char *slash = strrchr(socket, '/');
    char *dir = strndup(socket, (size_t)(slash - socket));
    int fd = dir ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
    if (fd >= 0 && inotify_add_watch(fd, dir, IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF) < 0) {
        close(fd);
        fd = -1;
    }
    free(dir);
    return fd;
}

static void drain(int fd)
{
    char events[4096];
    while (read(fd, events, sizeof(events)) > 0) {
    }
}

int main(void)
{
    const char *socket = getenv("PVMSOCK");
    struct pollfd poll_fd = {.events = POLLIN};
    if (!socket || socket[0] != '/') {
        fputs("elmer-machine: there is no virtual machine; esubmit -P starts one\n", stderr);
        return EXIT_NO_MACHINE;
    }
    poll_fd.fd = watch(socket); /* before the first look, or an end between the two would be missed */
    while (access(socket, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
        poll(&poll_fd, 1, poll_fd.fd >= 0 ? LOOK_MS : LOOK_BLIND_MS);
        if (poll_fd.fd >= 0)
            drain(poll_fd.fd);
    }
    return EXIT_HALTED;
}
