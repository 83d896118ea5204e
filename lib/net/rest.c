#include "config.h"

#include "lib/net/rest.h"

#include <sys/resource.h>
#include <time.h>

#include "lib/base/thread_time.h"

enum { BUSY_MS = 100, SLEEP_MS = 2 };

static void on_check(uv_check_t *check)
{
    struct rest *rest = check->data;
    struct rusage usage = {0};
    int64_t now_ns = thread_time_ns();

    (void)getrusage(RUSAGE_THREAD, &usage);
    if (usage.ru_nvcsw != rest->switches) {
        rest->switches = usage.ru_nvcsw;
        rest->since_ns = now_ns;
    } else if (now_ns - rest->since_ns >= BUSY_MS * INT64_C(1000000)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = SLEEP_MS * 1000000L}, NULL);
    }
}

int rest_begin(struct rest *rest, uv_loop_t *loop)
{
    int result = uv_check_init(loop, &rest->check);

    if (result)
        return result;
    rest->check.data = rest;
    rest->since_ns = thread_time_ns();
    result = uv_check_start(&rest->check, on_check);
    uv_unref((uv_handle_t *)&rest->check);
    return result;
}

void rest_end(struct rest *rest)
{
    uv_close((uv_handle_t *)&rest->check, NULL);
}
