#include "config.h"

#include "tests/unit/elmer/fakes/fake_work.h"

#include <assert.h>
#include <uv.h>

enum { WORK_MAX = 16 };

static struct one {
    uv_work_t *request;
    uv_work_cb work;
    uv_after_work_cb after;
} all[WORK_MAX];
static size_t count;

void fake_work_begin(void)
{
    count = 0;
}

size_t fake_work_count(void)
{
    return count;
}

void fake_work_run(void)
{
    while (count) {
        struct one one = all[--count];
        one.work(one.request);
        one.after(one.request, 0);
    }
}

int __wrap_uv_queue_work(uv_loop_t *loop, uv_work_t *request, uv_work_cb work, uv_after_work_cb after);
int __wrap_uv_queue_work(uv_loop_t *loop, uv_work_t *request, uv_work_cb work, uv_after_work_cb after)
{
    (void)loop;
    assert(count < WORK_MAX);
    all[count++] = (struct one){request, work, after};
    return 0;
}
