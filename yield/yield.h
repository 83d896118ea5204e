/* yield.h - what the files of libelmer-yield.so share. It is loaded into programs that others have written: no memory
 * is allocated, nothing is printed, no signal is blocked, errno stays as the call that was made has left it. */
#ifndef YIELD_H
#define YIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "yield/page.h"

#define YIELD_PUBLIC __attribute__((visibility("default")))

/* A function of the C library that the program would have called without us; otherwise: where it cannot be told. It
 * takes the loader's lock, so only for constructors: later somebody may be in dlopen(), also in who has forked us. */
void *yield_next(const char *name, void *otherwise);

/* What the program itself would find by that name; NULL: nothing. It takes that lock, too: for a program's end. */
void *yield_known(const char *name);

/* As yield_next(), for a function of a library that may have been loaded by dlopen() and is not in the scope that we
 * see. caller: an address in who calls it. NULL: there is none. Who looks whether this process has the function by that
 * name sees ours, and may call it for nothing. */
void *yield_real(void **kept, const char *name, const void *self, const void *caller);
#define YIELD_REAL(kept, name) yield_real(&(kept), #name, (const void *)(uintptr_t)(name), __builtin_return_address(0))

enum { YIELD_DESCRIPTOR_MAX = 1 << 20 };
/* A whole number from 0 to max; -1: it is none. max is at most 1 << 30. (strtol() has a new version in new headers.) */
long yield_number(const char *text, long max);

/* The monotonic clock: no system call where it is a counter of the processor. */
int64_t yield_now(void);
/* What it costs to read that here; found out at the first call. */
int64_t yield_clock_ns(void);
/* And what a system call costs: tens of nanoseconds, or microseconds where each is watched or emulated. */
int64_t yield_call_ns(void);

static inline struct timespec yield_timespec(int64_t ns)
{
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}

/* guard.c: before and after a poll that asks for what is there now; what: the same thing has the same number. How long
 * it may sleep, 0: not; began: when it did, if it was due. errno is left alone. */
int64_t yield_poll_begins(intptr_t what);
void yield_poll_ends(int result, int64_t due, int64_t began);
/* The poll is for this descriptor first: how long it may sleep now. If none of the last few polls was for it nobody
 * waits here: who asks for one after the other in the same place does not. */
int64_t yield_poll_asks(int fd, int64_t due);
void yield_blocks(void); /* he does not ask again and again */

/* polls.c: as ppoll(), and no round. */
struct pollfd;
int yield_wait_for(struct pollfd *asked, int64_t ns);

/* page.c: the page of the job and our slot in it; NULL: none, or not yet. */
extern struct page *yield_page __attribute__((visibility("hidden")));
extern struct page_slot *yield_slot __attribute__((visibility("hidden")));
extern int yield_page_asked __attribute__((visibility("hidden")));
/* Once, when somebody here has waited; later calls do nothing. */
void yield_page_open(bool cannot_sleep);

/* The worker makes progress in this thread (finalize.c); and lets it, without a sleep, when it has done so before. */
void yield_knows_worker(void *worker);
unsigned yield_progress(void *worker);

/* What is interposed, and not declared by the C library. */
void thrd_yield(void);
void opal_progress(void);
unsigned ucp_worker_progress(void *worker);
void *ucp_disconnect_nb(void *endpoint);
void ucp_worker_destroy(void *worker);

#endif
