/* facts.c - what elmer wants to know about this host. */
#include "config.h"

#include "rsd/net/facts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void facts_boot(char *text, size_t size)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

void facts_memory(const char *meminfo, int64_t *bytes, int64_t *free_bytes)
{
    FILE *file = fopen(meminfo, "re");
    char line[200];
    int64_t value;

    *bytes = *free_bytes = -1;
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemTotal: %" SCNd64 " kB", &value) == 1 && value >= 0 && value <= INT64_MAX >> 10)
            *bytes = value << 10;
        else if (sscanf(line, "MemAvailable: %" SCNd64 " kB", &value) == 1 && value >= 0 && value <= INT64_MAX >> 10)
            *free_bytes = value << 10;
    if (file)
        fclose(file);
}

uint64_t facts_memory_for_jobs(const struct rsd_config *config, int64_t bytes)
{
    if (bytes < 0)
        return 0;
    if (config->memory_percent > 0) /* in this order nothing is beyond 64 bits */
        return (uint64_t)bytes / 100 * config->memory_percent + (uint64_t)bytes % 100 * config->memory_percent / 100;
    return config->memory_bytes < (uint64_t)bytes ? config->memory_bytes : (uint64_t)bytes;
}

void facts_tell(const struct rsd_config *config, const struct wire_root_state *state, struct wire_host_hello *hello)
{
    int64_t bytes, free_bytes;

    facts_memory("/proc/meminfo", &bytes, &free_bytes);
    hello->version = PACKAGE_VERSION;
    hello->mode = state->mode;
    hello->mode_reason = state->mode_reason;
    hello->lacks = state->lacks;
    hello->memory_bytes = facts_memory_for_jobs(config, bytes);
    hello->limits_memory = state->limits_memory;
}

bool facts_loopback(const struct addrinfo *info)
{
    bool any = false;

    for (; info; info = info->ai_next) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)info->ai_addr;

        if (info->ai_family != AF_INET)
            continue;
        any = true;
        if (ntohl(in->sin_addr.s_addr) >> 24 == 127)
            return true;
    }
    return !any;
}
