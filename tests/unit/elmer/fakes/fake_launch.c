#include "config.h"

#include "tests/unit/elmer/fakes/fake_launch.h"

struct fake_launch fake_launch;

void launches_connect(struct launches *launches, launches_on_reached on_reached, void *data)
{
    (void)launches;
    fake_launch.on_reached = on_reached;
    fake_launch.data = data;
}

const char *launches_reach_terminal(struct launches *launches, uint64_t job, uint64_t number)
{
    (void)launches;
    fake_launch.job = job;
    fake_launch.host = -2;
    fake_launch.number = number;
    return fake_launch.refusal;
}

const char *launches_reach(struct launches *launches, uint64_t job, int from, int host, uint16_t gone, uint64_t number)
{
    (void)launches;
    fake_launch.job = job;
    fake_launch.from = from;
    fake_launch.host = host;
    fake_launch.gone = gone;
    fake_launch.number = number;
    fake_launch.asked++;
    return fake_launch.refusal;
}
