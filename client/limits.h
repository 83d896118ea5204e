/* limits.h - what --time, --cpu-time, --signal, -m and others say: numbers with
 * bounds. */
#ifndef CLIENT_LIMITS_H
#define CLIENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* "2h30m": whole numbers with d, h, m or s, from 1 s to 366 days. false: said what is wrong, naming the option. */
bool limit_time(const char *option, const char *text, uint64_t *ms);
/* "USR1@120" or "USR1@2m": a signal's name or number, and so many seconds, or such a time. */
bool limit_signal(const char *text, uint32_t *number, uint64_t *ms);

/* "4G": for each processor. */
bool limit_memory(const char *option, const char *text, uint64_t *bytes);

/* "4x6" */
bool limit_mesh(const char *text, uint32_t *rows, uint32_t *nprocs);
bool limit_per_host(const char *text, uint32_t *per_host);
bool limit_poll_sleep(const char *text);

/* "USR1", "SIGUSR1" or "10"; 0: there is no such signal. */
uint32_t limit_signal_number(const char *name);

#endif
