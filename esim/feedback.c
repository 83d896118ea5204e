/* feedback.c - a first pass over the trace finds who follows whom, and who is not in the order of submission: on a
 * faster machine a job may come before those that are above it in the trace. Only these are kept; all others are read
 * when it is their turn. */
#include "config.h"

#include "esim/feedback.h"

#include <stdlib.h>

#include "lib/memory/map.h"
#include "lib/memory/mem.h"

struct follower {
    uint64_t of; /* index of the job that precedes it */
    struct sim_job job;
};

struct feedback {
    struct source source, *trace;
    struct follower *followers; /* by `of`, and then in their order */
    size_t count, capacity;
    struct feedback_counts counts;
    uint8_t *kept; /* a bit for each index: not to be read again */
    size_t bytes;
    struct sim_job *heap; /* released, given back, or moved: by time of submission */
    size_t nheap, heap_capacity;
    struct sim_job read; /* from the trace, and not given yet */
    bool has_read;
};

static bool is_kept(const struct feedback *f, uint64_t index)
{
    return index / 8 < f->bytes && f->kept[index / 8] >> index % 8 & 1;
}

static void mark(struct feedback *f, uint64_t index)
{
    size_t byte = (size_t)(index / 8), larger = byte < 2 * f->bytes ? 2 * f->bytes : byte + 1;

    if (byte >= f->bytes) {
        f->kept = mem_exactly(f->kept, f->bytes, larger, 1);
        f->bytes = larger;
    }
    f->kept[byte] |= (uint8_t)(1 << index % 8);
}

static bool before(const struct sim_job *a, const struct sim_job *b)
{
    return a->submit_ms != b->submit_ms ? a->submit_ms < b->submit_ms : a->index < b->index;
}

static void push(struct feedback *f, const struct sim_job *job)
{
    size_t at = f->nheap++;

    f->heap = mem_grow(f->heap, &f->heap_capacity, f->nheap, sizeof(*f->heap));
    for (; at > 0 && before(job, &f->heap[(at - 1) / 2]); at = (at - 1) / 2)
        f->heap[at] = f->heap[(at - 1) / 2];
    f->heap[at] = *job;
}

static struct sim_job pop(struct feedback *f)
{
    struct sim_job first = f->heap[0], *last = &f->heap[--f->nheap];
    size_t at = 0, child;

    for (; (child = 2 * at + 1) < f->nheap; at = child) {
        child += child + 1 < f->nheap && before(&f->heap[child + 1], &f->heap[child]);
        if (!before(&f->heap[child], last))
            break;
        f->heap[at] = f->heap[child];
    }
    f->heap[at] = *last;
    return first;
}

static void read_next(struct feedback *f)
{
    do
        f->has_read = f->trace->next(f->trace, &f->read);
    while (f->has_read && is_kept(f, f->read.index));
}

static bool next(struct source *source, struct sim_job *job)
{
    struct feedback *f = (struct feedback *)source;

    if (f->nheap > 0 && (!f->has_read || before(&f->heap[0], &f->read))) {
        *job = pop(f);
        return true;
    }
    if (!f->has_read)
        return false;
    *job = f->read;
    read_next(f);
    return true;
}

/* The first of those that follow it; f->count: none. */
static size_t find(const struct feedback *f, uint64_t index)
{
    size_t low = 0, high = f->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->followers[middle].of < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Without a think time it comes at its own time, if that is later. So does one whose predecessor has never run. */
static bool over(struct source *source, const struct sim_job *job, int64_t now_ms, bool has_run, struct sim_job *given,
                 bool has_given)
{
    struct feedback *f = (struct feedback *)source;

    for (size_t i = find(f, job->index); i < f->count && f->followers[i].of == job->index; i++) {
        struct sim_job *follower = &f->followers[i].job;
        if (has_run && follower->think_ms >= 0)
            follower->submit_ms = now_ms + follower->think_ms;
        else if (follower->submit_ms < now_ms)
            follower->submit_ms = now_ms;
        push(f, follower);
    }
    if (f->nheap == 0 || (has_given && !before(&f->heap[0], given)))
        return has_given;
    if (has_given)
        push(f, given);
    *given = pop(f);
    return true;
}

static void destroy(struct source *source)
{
    struct feedback *f = (struct feedback *)source;

    f->trace->destroy(f->trace);
    free(f->followers);
    free(f->kept);
    free(f->heap);
    free(f);
}

static int by_predecessor(const void *a, const void *b)
{
    const struct follower *x = a, *y = b;

    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    return (x->job.index > y->job.index) - (x->job.index < y->job.index);
}

/* The first pass. */
static void find_kept(struct feedback *f, struct source *trace, bool follow)
{
    struct map places = {.capacity = 0}; /* index by number, of the jobs so far */
    int64_t latest_ms = 0;
    struct sim_job job;

    while (trace->next(trace, &job)) {
        bool names = follow && job.preceding > 0;
        uint64_t of = names ? (uint64_t)(uintptr_t)map_get(&places, job.preceding) : 0;
        f->counts.nameless += names && of == 0;
        f->counts.moved += job.submit_ms < latest_ms;
        if (of > 0) {
            f->followers = mem_grow(f->followers, &f->capacity, f->count + 1, sizeof(*f->followers));
            f->followers[f->count++] = (struct follower){.of = of, .job = job};
        } else if (job.submit_ms < latest_ms) {
            push(f, &job);
        }
        if (of > 0 || job.submit_ms < latest_ms)
            mark(f, job.index);
        latest_ms = job.submit_ms > latest_ms ? job.submit_ms : latest_ms;
        if (follow && job.number > 0 && !map_get(&places, job.number))
            map_put(&places, job.number, (void *)(uintptr_t)job.index);
    }
    map_fini(&places);
    f->counts.following = f->count;
    if (f->count > 0)
        qsort(f->followers, f->count, sizeof(*f->followers), by_predecessor);
}

struct source *feedback_source(struct swf *swf, const char *path, bool follow)
{
    struct swf *again = swf_open(path, true);
    struct feedback *f = mem_zalloc(sizeof(*f));

    f->trace = swf_source(swf);
    f->source = (struct source){.next = next, .over = over, .destroy = destroy};
    if (again) {
        find_kept(f, swf_source(again), follow);
        swf_source(again)->destroy(swf_source(again));
    }
    if (f->count == 0)
        f->source.over = NULL;
    read_next(f);
    return &f->source;
}

struct feedback_counts feedback_counts(const struct source *source)
{
    return ((const struct feedback *)source)->counts;
}
