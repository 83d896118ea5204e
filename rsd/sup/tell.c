/* tell.c - what the supervisor says to the root half, and keeps while there is none. */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "rsd/sup/sup.h"

static void keep(struct sup *sup, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    if (sup->pending_count == SUP_MAX_PENDING || wire_encode(message, WIRE_MINOR, &json, &size, &err) < 0)
        return;
    sup->pending[sup->pending_count++] = json;
}

void sup_disconnect(struct sup *sup)
{
    if (sup->connected)
        channel_fini(&sup->root);
    sup->connected = false;
}

/* It is not tried again: that this rsd does not know a part of it would be seen by nobody. */
void sup_flush(struct sup *sup)
{
    int result = sup->connected ? channel_flush(&sup->root) : 0;
    if (result == 0)
        return;
    log_warning("job=%llu: cannot tell rsd %s: %s", (unsigned long long)sup->job, "what waits", strerror(-result));
    sup_disconnect(sup);
}

void sup_tell(struct sup *sup, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    if (sup->connected && channel_send(&sup->root, message, &err) < 0)
        log_warning("job=%llu: cannot tell rsd %s: %s", (unsigned long long)sup->job, wire_type_name(message->type),
                    err.text);
    else if (!sup->connected)
        keep(sup, message);
}

void sup_tell_kept(struct sup *sup)
{
    assert(sup->connected); /* or they would be kept again while they are told */
    for (size_t i = 0; i < sup->pending_count; i++) {
        struct wire_message message;
        if (wire_decode(sup->pending[i], strlen(sup->pending[i]), WIRE_MINOR, &message, NULL) == 0) {
            sup_tell(sup, &message);
            wire_message_fini(&message);
        }
        free(sup->pending[i]);
    }
    sup->pending_count = 0;
}

void sup_tell_adopted(struct sup *sup)
{
    struct wire_message message = {.type = WIRE_adopted};
    uint64_t helpers[64];
    message.u.adopted.job = sup->job;
    message.u.adopted.attempt = sup->attempt;
    message.u.adopted.uid = sup->user.uid;
    message.u.adopted.helpers.items = helpers;
    for (size_t i = 0; i < sup->count; i++) {
        const struct process *process = sup->processes[i];
        if (process->role != ROLE_COMMAND && process->state == PROCESS_RUNNING && message.u.adopted.helpers.count < 64)
            helpers[message.u.adopted.helpers.count++] = (uint64_t)process->pid;
    }
    sup_tell(sup, &message);
}
