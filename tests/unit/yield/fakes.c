/* fakes.c - a library as MPI's are: what it calls of others is found by name, and it is loaded by dlopen(), RTLD_LOCAL,
 * as Python does it. */
#include "config.h"

#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "yield/yield.h"

unsigned fake_rounds, fake_result, fake_yields;
int fake_epoll = -1, fake_poll = -1, fake_pipe = -1;
bool fake_idle = true;
int fake_initialized = 1, fake_finalized;
int PMPI_Initialized(int *flag);
int PMPI_Finalized(int *flag);
void fake_call_opal(void);
unsigned fake_call_ucp(void);
void fake_close(void);

/* Who loads it stays in dlopen(), and has said so. */
__attribute__((constructor)) static void hold(void)
{
    const char *hold = getenv("TEST_HOLD");
    while (hold && write((int)strtol(hold, NULL, 10), "x", 1) == 1)
        pause();
}

/* Where it is preloaded, behind the library: what that really calls. */
int sched_yield(void)
{
    fake_yields++;
    return (int)syscall(SYS_sched_yield);
}

void opal_progress(void)
{
    struct pollfd asked = {.fd = fake_poll, .events = POLLIN};
    fake_rounds++;
    if (fake_poll >= 0)
        (void)poll(&asked, 1, 0); /* what it finds does not count for Open MPI, which yields */
    if (fake_idle)
        sched_yield();
}

unsigned ucp_worker_progress(void *worker)
{
    struct epoll_event event;
    (void)worker;
    fake_rounds++;
    if (fake_epoll >= 0)
        (void)epoll_wait(fake_epoll, &event, 1, 0);
    if (fake_pipe >= 0 && fake_rounds == 3 && write(fake_pipe, "x", 1) != 1) /* the last rank comes to the barrier */
        return 7;
    return fake_result;
}

void *ucp_disconnect_nb(void *endpoint)
{
    return endpoint;
}

void ucp_worker_destroy(void *worker)
{
    (void)worker;
}

void fake_call_opal(void)
{
    opal_progress();
}

unsigned fake_call_ucp(void)
{
    return ucp_worker_progress(&fake_rounds);
}

void fake_close(void)
{
    (void)ucp_disconnect_nb(&fake_rounds);
}

int PMPI_Initialized(int *flag)
{
    *flag = fake_initialized;
    return 0;
}

int PMPI_Finalized(int *flag)
{
    *flag = fake_finalized;
    return 0;
}
