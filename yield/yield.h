/* yield.h - what the files of libelmer-yield.so share. It is loaded into programs that others have written: no memory
 * is allocated, nothing is printed, no signal is blocked, errno stays as the call that was made has left it. */
#ifndef YIELD_H
#define YIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define YIELD_PUBLIC __attribute__((visibility("default")))

/* The function that the program would have called without us. caller: an address in who calls it: a library that was
 * loaded by dlopen() is not in the scope that we see. Ends the process where there is none, which cannot be: somebody
 * has been linked with it. */
void *yield_real(void **kept, const char *name, const void *self, const void *caller);
#define YIELD_REAL(kept, name) yield_real(&(kept), #name, (const void *)(uintptr_t)(name), __builtin_return_address(0))

/* As it stands, without a system call. */
int64_t yield_now(void);

/* The worker makes progress in this thread (finalize.c); and lets it, without a sleep, when it has done so before. */
void yield_knows_worker(void *worker);
unsigned yield_progress(void *worker);

/* What is interposed, and not declared by the C library. */
void opal_progress(void);
unsigned ucp_worker_progress(void *worker);
void *ucp_disconnect_nb(void *endpoint);
void ucp_worker_destroy(void *worker);

#endif
