/* page.h - what the processes of a job on a host and its supervisor (rsd/sup/waits.c) tell each other, without a system
 * call. The supervisor makes the file for the user, in the job's directory, and says in the head whether the job is
 * alone; each process that waits takes a slot, and counts in it. All that is here may be written by the job: who reads
 * it believes nothing, and never maps it, because the file may become shorter beneath a mapping. */
#ifndef YIELD_PAGE_H
#define YIELD_PAGE_H

#include <stdint.h>

#define PAGE_VARIABLE "ELMER_WAITS" /* its path */

enum { PAGE_VERSION = 1, PAGE_SLOTS = 255, PAGE_LINE = 64 };
#define PAGE_NO_RANK UINT32_MAX

/* A line of the cache for each process: none waits for another one's count. Times in ns. */
struct page_slot {
    int32_t pid; /* as its process sees it; 0: it is free */
    uint32_t rank;
    uint32_t cannot_sleep; /* its waits are at full speed, however long they last and whoever is below */
    uint32_t pids;         /* the namespace of pid, by the low bits of its inode; 0: not known */
    uint64_t rounds;       /* without progress */
    uint64_t spun_ns;      /* of its waits at full speed, where the time is read */
    uint8_t rest[PAGE_LINE - 32];
};

struct page_head {
    uint32_t version;
    uint32_t alone;      /* nobody is above or below: nobody has anything of a sleep */
    uint32_t processors; /* of the job on this host; 0: not known */
    uint32_t processes;  /* with a slot */
    uint8_t rest[PAGE_LINE - 16];
};

struct page {
    struct page_head head;
    struct page_slot slots[PAGE_SLOTS];
};

_Static_assert(sizeof(struct page_slot) == PAGE_LINE && sizeof(struct page_head) == PAGE_LINE, "builds share it");

#endif
