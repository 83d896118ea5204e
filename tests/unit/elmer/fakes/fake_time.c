#include "config.h"

#include "tests/unit/elmer/fakes/fake_time.h"

#include "lib/base/clock.h"

struct fake_time fake_time;

void fake_time_begin(void)
{
    fake_time = (struct fake_time){0};
}

int64_t fake_now_ms(void)
{
    return FAKE_MONO_MS + fake_time.passed_ms;
}

void fake_time_skip(int64_t ms)
{
    fake_time.passed_ms += ms;
}

struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    return (struct mono){.ns = fake_now_ms() * 1000000};
}

struct wall __wrap_wall_now(void);
struct wall __wrap_wall_now(void)
{
    return (struct wall){.ms = FAKE_WALL_MS + fake_time.passed_ms + fake_time.wall_ms};
}

int64_t __wrap_boot_ms(void);
int64_t __wrap_boot_ms(void)
{
    return FAKE_BOOT_MS + fake_time.passed_ms;
}
