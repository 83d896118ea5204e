#include "config.h"

#include "rsd/pvm/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/wire/wire.h"

enum { OUT_MAX_BYTES = 16 << 20, SEND_MS = 5000 };

int control_init(struct control *control, int fd)
{
    *control = (struct control){0};
    return channel_init(&control->channel, fd, WIRE_FROM_SUPERVISOR, OUT_MAX_BYTES);
}

void control_fini(struct control *control)
{
    channel_fini(&control->channel);
}

int control_descriptor(const struct control *control)
{
    return control->channel.fd;
}

static int64_t soon(void)
{
    return mono_ms(mono_now()) + SEND_MS;
}

int control_send_ready(struct control *control, struct err *err)
{
    struct wire_message message = {.type = WIRE_agent_ready};
    return channel_send_all(&control->channel, &message, soon(), err);
}

int control_send_failed(struct control *control, const char *reason, struct err *err)
{
    struct wire_message message = {.type = WIRE_agent_failed, .u.agent_failed.reason = reason};
    return channel_send_all(&control->channel, &message, soon(), err);
}

uint8_t *control_failed_frame(const char *reason, size_t *size)
{
    struct wire_message message = {.type = WIRE_agent_failed, .u.agent_failed.reason = reason};
    uint8_t *frame = NULL;
    return wire_encode_frame(&message, WIRE_MINOR, &frame, size, NULL) == 0 ? frame : NULL;
}

/* An answer to none of the requests is late, its deadline has passed: ignored. Returns 1 if it was the first to one. */
static size_t take_answer(struct control_spawn *spawns, size_t count, const struct wire_agent_spawned *spawned)
{
    for (size_t i = 0; i < count; i++) {
        if (spawns[i].request != spawned->request || spawns[i].answer[0])
            continue;
        const char *line = spawned->line[0] ? spawned->line : "PvmCantStart";
        size_t length = strnlen(line, spawns[i].answer_size - 1);
        memcpy(spawns[i].answer, line, length);
        spawns[i].answer[length] = '\0';
        return 1;
    }
    return 0;
}

/* One message; returns how many answers it brought. */
static size_t handle(struct control *control, struct wire_message *message, struct control_spawn *spawns, size_t count)
{
    size_t answers = 0;
    if (message->type == WIRE_agent_finish)
        control->finish = true;
    else if (message->type == WIRE_agent_spawned)
        answers = take_answer(spawns, count, &message->u.agent_spawned);
    wire_message_fini(message);
    return answers;
}

static void take_waiting(struct control *control)
{
    struct wire_message message;
    int result;
    while ((result = channel_next(&control->channel, &message, NULL)) > 0)
        handle(control, &message, NULL, 0);
    if (result < 0)
        control->finish = true;
}

void control_spawn_all(struct control *control, struct control_spawn *spawns, size_t count, int64_t deadline_ms)
{
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        struct wire_message message = {
            .type = WIRE_agent_spawn,
            .u.agent_spawn = {.request = spawns[i].request, .host = spawns[i].host, .command = spawns[i].command}};
        spawns[i].answer[0] = '\0';
        if (channel_send_all(&control->channel, &message, deadline_ms, NULL) == 0)
            wanted++;
    }
    int result = 1;
    while (wanted && !control->finish && result > 0) {
        struct wire_message message;
        result = channel_receive(&control->channel, &message, deadline_ms, NULL);
        if (result > 0)
            wanted -= handle(control, &message, spawns, count);
    }
    if (result < 0)
        control->finish = true;
    else
        take_waiting(control); /* poll(2) does not know of what has been read already */
}

void control_receive(struct control *control)
{
    int result = channel_fill(&control->channel, NULL);
    take_waiting(control);
    if (result < 0)
        control->finish = true;
}
