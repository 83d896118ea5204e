/* clients_room.c - programs that read slower than elmer answers.
 *
 * elmer sends the pages of a list as fast as the host takes them, and this process takes them at once. So when much
 * waits for a program, or for all programs of its user together, elmer is told (relay_room), sends no further page of a
 * list, and is told again when there is room. A client that waits for its user's other programs has perhaps nothing
 * unsent on its own link: quota->waiting says that there is one, and whatever makes room looks for it. An elmer of
 * before is not told; then the user's budget ends the connection. */
#include "config.h"

#include <sys/resource.h>

#include "rsd/net/clients_internal.h"

enum { FULL = 256 << 10, FILES = 8192, ROOM_MINOR = 5 /* of the message */ };

static bool is_short(const struct client *c)
{
    return c->quota && budget_is_short(&c->quota->bytes);
}

static void tell(struct client *c, bool room)
{
    struct wire_message message = {.type = WIRE_relay_room, .u.relay_room = {.client = c->id, .room = room}};

    c->full = !room;
    (void)c->all->callbacks.send(&message, c->all->data);
}

void client_note_full(struct client *c)
{
    if (c->full || !c->link || c->all->callbacks.minor(c->all->data) < ROOM_MINOR ||
        (link_unsent(c->link) <= FULL && !is_short(c)))
        return;
    tell(c, false);
    if (c->quota)
        c->quota->waiting = c; /* whichever it is */
}

void clients_wake_user(struct clients *all, struct quota *quota)
{
    if (!quota || !quota->waiting || all->stopping || budget_is_short(&quota->bytes))
        return;
    quota->waiting = NULL;
    for (struct client *c = all->first; c; c = c->next) {
        if (c->quota != quota || !c->full || !c->link)
            continue;
        if (link_unsent(c->link) <= LINK_LITTLE)
            tell(c, true);
        else
            quota->waiting = c;
    }
}

void client_note_room(struct client *c)
{
    if (c->full && !is_short(c))
        tell(c, true);
    clients_wake_user(c->all, c->quota);
}

void clients_want_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= FILES)
        return;
    limit.rlim_cur = limit.rlim_max < FILES ? limit.rlim_max : FILES;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}
