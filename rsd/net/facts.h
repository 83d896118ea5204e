/* facts.h - what elmer wants to know about this host. */
#ifndef RSD_FACTS_H
#define RSD_FACTS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/wire.h"
#include "rsd/config.h"

/* Changes with each boot; "" if the kernel does not say. */
void facts_boot(char *text, size_t size);
/* Is one of the IPv4 addresses that a name resolves to a loopback address, or is there none? */
bool facts_loopback(const struct addrinfo *info);
/* Of the host, and of that what programs could get now (MemAvailable). -1: not known. */
void facts_memory(const char *meminfo, int64_t *bytes, int64_t *free_bytes);

/* What jobs may ask for, of that. */
uint64_t facts_memory_for_jobs(const struct rsd_config *config, int64_t bytes);
/* The part of a hello that tells what jobs find here. */
void facts_tell(const struct rsd_config *config, const struct wire_root_state *state, struct wire_host_hello *hello);

#endif
