/* fake_launch.h - in place of the room launch, for those that ask it. */
#ifndef TESTS_UNIT_ELMER_FAKES_FAKE_LAUNCH_H
#define TESTS_UNIT_ELMER_FAKES_FAKE_LAUNCH_H

#include "elmer/launch/launch.h"

extern struct fake_launch {
    launches_on_reached on_reached;
    void *data;
    const char *refusal;  /* of the next who asks; NULL: he waits */
    uint64_t job, number; /* the last one that was asked for, and by which request */
    int from, host;
    uint16_t gone;
    unsigned asked;
} fake_launch;

#define FAKE_LAUNCH_ROOM ((struct launches *)&fake_launch)

#endif
