/* finalize.c - MPICH 4.0 over UCX and TCP hangs in MPI_Finalize() now and then: here it does not.
 *
 * A rank closes its connections there, and waits until the others have confirmed that they have all of it (uct/tcp
 * flushes with a message of 25 bytes, which the other one answers in ucp_worker_progress()). Then it waits for the
 * others in PMI's barrier, a read() in which it answers nobody: who comes later waits for ever for the answer, and the
 * barrier for him. MPICH has changed it in 4.2 (its pull request 6596).
 *
 * So read() of PMI's descriptor, after connections were closed, goes on answering until there is something to read. It
 * then reads what it would have read.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "yield/yield.h"

enum { WORKERS_MAX = 8, PAUSE_NS = 50000, PAUSE_MAX_NS = 1000000 };

static int pmi_fd = -1;
static void *kept_disconnect, *kept_destroy;

/* read() by another name, for who calls it before our constructor, or where the real one cannot be found. */
static ssize_t read_plainly(int fd, void *to, size_t size)
{
    struct iovec into = {to, size < SSIZE_MAX ? size : SSIZE_MAX};
    return readv(fd, &into, 1);
}
static ssize_t (*real_read)(int, void *, size_t) = read_plainly;

/* Of this thread: those of its workers that live. */
static __thread struct {
    void *workers[WORKERS_MAX];
    bool closing, reading;
} own;

__attribute__((constructor)) static void begin(void)
{
    pmi_fd = (int)yield_number(secure_getenv("PMI_FD"), YIELD_DESCRIPTOR_MAX);
    real_read = (ssize_t(*)(int, void *, size_t))(uintptr_t)yield_next("read", (void *)(uintptr_t)read_plainly);
}

void yield_knows_worker(void *worker)
{
    if (pmi_fd < 0 || own.workers[0] == worker)
        return;
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        if (own.workers[i] == worker)
            return;
        if (!own.workers[i]) {
            own.workers[i] = worker;
            return;
        }
    }
}

YIELD_PUBLIC void *ucp_disconnect_nb(void *endpoint)
{
    void *(*real)(void *) = (void *(*)(void *))(uintptr_t)YIELD_REAL(kept_disconnect, ucp_disconnect_nb);
    own.closing = true;
    return real ? real(endpoint) : NULL; /* it is done */
}

YIELD_PUBLIC void ucp_worker_destroy(void *worker)
{
    void (*real)(void *) = (void (*)(void *))(uintptr_t)YIELD_REAL(kept_destroy, ucp_worker_destroy);
    own.closing = false;
    for (size_t i = 0; i < WORKERS_MAX; i++)
        own.workers[i] = NULL;
    if (real)
        real(worker);
}

/* Until there is something to read, or an end, or an error. */
static void answer_others(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN};
    int64_t pause = 0;
    long flags = syscall(SYS_fcntl, fd, F_GETFL); /* fcntl() has a new version where files are large */
    if (flags < 0 || (flags & O_NONBLOCK))
        return;
    for (;;) {
        int ready = yield_wait_for(&asked, pause);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return;
        pause = pause == 0 ? PAUSE_NS : pause * 2 < PAUSE_MAX_NS ? pause * 2 : PAUSE_MAX_NS;
        for (size_t i = 0; i < WORKERS_MAX && own.workers[i]; i++) {
            if (yield_progress(own.workers[i]) > 0)
                pause = 0;
        }
    }
}

YIELD_PUBLIC ssize_t read(int fd, void *to, size_t size)
{
    if (fd == pmi_fd && fd >= 0 && own.closing && !own.reading) {
        int kept = errno;
        own.reading = true;
        answer_others(fd);
        own.reading = false;
        errno = kept;
    }
    return real_read(fd, to, size);
}
