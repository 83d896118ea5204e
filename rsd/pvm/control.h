/* control.h - the agent's side of its link to the job's supervisor (messages agent_* of lib/wire/messages.def). */
#ifndef RSD_PVM_CONTROL_H
#define RSD_PVM_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/channel.h"

struct control {
    struct channel channel;
    bool finish; /* the supervisor wants us to end, or is gone */
};

/* A daemon to be started; answer is "" until the supervisor has answered. */
struct control_spawn {
    uint32_t request; /* unique */
    const char *host, *command;
    char *answer;
    size_t answer_size;
};

/* Takes over fd. */
int control_init(struct control *control, int fd);
void control_fini(struct control *control);
int control_descriptor(const struct control *control);

/* Tell the outcome of the start. 0 or a negative errno. */
int control_send_ready(struct control *control, struct err *err);
int control_send_failed(struct control *control, const char *reason, struct err *err);

/* Ask for all, then wait until each has its answer, deadline_ms (monotonic) has passed, or finish is set. The answers
 * that did not come stay "". */
void control_spawn_all(struct control *control, struct control_spawn *spawns, size_t count, int64_t deadline_ms);

/* After POLLIN: take in what has come; sets finish. */
void control_receive(struct control *control);

/* The bytes of an agent_failed message, to be sent by a signal handler; malloc'd, NULL on failure. */
uint8_t *control_failed_frame(const char *reason, size_t *size);

#endif
