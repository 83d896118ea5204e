/* page.c - this process's slot in the page of its job, see page.h. It is taken when somebody here has waited for
 * longer than a message takes, so programs that never wait make no system call for it. A process that cannot have one
 * does as if others were below, and nobody counts for it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "yield/yield.h"

enum { RANK_MAX = 1 << 24 };

struct page *yield_page;
struct page_slot *yield_slot;
int yield_page_asked;

/* Whole, ours, and with memory behind all of it: a process that cannot write there would die of it. */
static bool is_whole(int fd)
{
    struct statx st;
    return syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_UID | STATX_SIZE, &st) == 0 &&
           (st.stx_mode & S_IFMT) == S_IFREG && st.stx_uid == geteuid() && st.stx_size >= sizeof(struct page) &&
           lseek(fd, 0, SEEK_HOLE) >= (off_t)sizeof(struct page);
}

static struct page *map(const char *path)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    void *found = MAP_FAILED;
    if (fd < 0)
        return NULL;
    if (is_whole(fd))
        found = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)syscall(SYS_close, fd);
    if (found == MAP_FAILED)
        return NULL;
    if (((struct page *)found)->head.version == PAGE_VERSION)
        return found;
    munmap(found, sizeof(struct page));
    return NULL;
}

/* As its MPI calls it; the one of Elmer is the same in all that a command starts. */
static uint32_t own_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "ELMER_RANK"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        long rank = yield_number(getenv(names[i]), RANK_MAX);
        if (rank >= 0)
            return (uint32_t)rank;
    }
    return PAGE_NO_RANK;
}

static uint32_t own_pids(void)
{
    struct statx st;
    return syscall(SYS_statx, AT_FDCWD, "/proc/self/ns/pid", 0, STATX_INO, &st) == 0 ? (uint32_t)st.stx_ino : 0;
}

static bool change(struct page_slot *slot, int32_t before, int32_t pid)
{
    return __atomic_compare_exchange_n(&slot->pid, &before, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* In its namespace only is a pid that nobody has one of the dead. */
static bool is_dead(const struct page_slot *slot, int32_t pid, uint32_t pids)
{
    return pid > 0 && __atomic_load_n(&slot->pids, __ATOMIC_RELAXED) == pids && kill(pid, 0) < 0 && errno == ESRCH;
}

/* Who was killed could not do so, and would count as one who waits for as long as the job lasts. */
static void free_slots_of_dead(struct page *page, uint32_t pids)
{
    for (size_t i = 0; pids && i < PAGE_SLOTS; i++) {
        struct page_slot *slot = &page->slots[i];
        int32_t pid = __atomic_load_n(&slot->pid, __ATOMIC_ACQUIRE);
        uint32_t mine = pids;
        /* one frees it, and whoever takes it next begins with a namespace that is not known */
        if (is_dead(slot, pid, pids) &&
            __atomic_compare_exchange_n(&slot->pids, &mine, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
            change(slot, pid, 0))
            __atomic_fetch_sub(&page->head.processes, 1, __ATOMIC_RELAXED);
    }
}

static struct page_slot *find_slot(struct page *page)
{
    const uint32_t pids = own_pids();
    free_slots_of_dead(page, pids);
    for (size_t i = 0; i < PAGE_SLOTS; i++) {
        if (!change(&page->slots[i], 0, (int32_t)getpid()))
            continue;
        __atomic_store_n(&page->slots[i].pids, pids, __ATOMIC_RELAXED);
        __atomic_fetch_add(&page->head.processes, 1, __ATOMIC_RELAXED);
        return &page->slots[i];
    }
    return NULL;
}

void yield_page_open(bool cannot_sleep)
{
    const char *path;
    struct page *page;
    struct page_slot *slot;
    int kept = errno;
    if (__atomic_exchange_n(&yield_page_asked, 1, __ATOMIC_RELAXED))
        return;
    path = secure_getenv(PAGE_VARIABLE);
    page = path ? map(path) : NULL;
    slot = page ? find_slot(page) : NULL;
    if (slot) {
        slot->rank = own_rank();
        slot->cannot_sleep = cannot_sleep;
        slot->rounds = slot->spun_ns = 0;
        __atomic_store_n(&yield_slot, slot, __ATOMIC_RELEASE);
    }
    if (page)
        __atomic_store_n(&yield_page, page, __ATOMIC_RELEASE);
    errno = kept;
}

/* A child of a fork has the slot of its parent. */
__attribute__((destructor)) static void leave(void)
{
    struct page_slot *slot = yield_slot;
    if (!slot || slot->pid != (int32_t)getpid())
        return;
    __atomic_store_n(&yield_slot, NULL, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&yield_page->head.processes, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->pids, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->pid, 0, __ATOMIC_RELEASE);
}
