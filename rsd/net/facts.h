/* facts.h - what elmer wants to know about this host. */
#ifndef RSD_FACTS_H
#define RSD_FACTS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes with each boot; "" if the kernel does not say. */
void facts_boot(char *text, size_t size);
/* Is one of the IPv4 addresses that a name resolves to a loopback address, or is there none? */
bool facts_loopback(const struct addrinfo *info);
/* Of the host, and of that what programs could get now (MemAvailable). -1: not known. */
void facts_memory(const char *meminfo, int64_t *bytes, int64_t *free_bytes);

#endif
