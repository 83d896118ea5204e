#include "config.h"

#include "rsd/root/cpus.h"

bool cpus_from_list(const uint64_t *list, size_t count, cpu_set_t *set)
{
    CPU_ZERO(set);
    for (size_t i = 0; i < count; i++) {
        if (list[i] >= CPU_SETSIZE)
            return false;
        CPU_SET(list[i], set);
    }
    return true;
}

size_t cpus_to_list(const cpu_set_t *set, uint64_t *list)
{
    size_t count = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, set))
            list[count++] = cpu;
    }
    return count;
}

bool cpus_within(const cpu_set_t *inner, const cpu_set_t *outer)
{
    cpu_set_t both;
    CPU_AND(&both, inner, outer);
    return CPU_EQUAL(&both, inner);
}
