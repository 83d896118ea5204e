/* lookers.c - from a connection to somebody who may look: both show a pass, his is looked at by elmer-tickets of this
 * host and must be of the job's user and for this job (pass_may_look()); then he says what he wants, once. Before that
 * nothing is read of him that is longer than a pass. Who takes longer than HANDSHAKE_MS is cut off. */
#include "config.h"

#include "rsd/courier/lookers.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void drop(struct looker *looker)
{
    run_desk_close(&looker->desk);
    run_link_fini(&looker->link);
    *looker = (struct looker){.here = false};
}

void lookers_fini(struct lookers *lookers)
{
    for (size_t i = 0; i < LOOKERS; i++)
        if (lookers->places[i].here)
            drop(&lookers->places[i]);
}

/* A free place, or that of the oldest. */
static struct looker *place(struct lookers *lookers)
{
    struct looker *oldest = &lookers->places[0];
    for (size_t i = 0; i < LOOKERS; i++) {
        struct looker *looker = &lookers->places[i];
        if (!looker->here)
            return looker;
        if (looker->deadline_ms < oldest->deadline_ms)
            oldest = looker;
    }
    drop(oldest);
    return oldest;
}

void lookers_let_in(struct lookers *lookers, int listener, int64_t now)
{
    for (size_t i = 0; i < LOOKERS; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct looker *looker;
        if (fd < 0) {
            lookers->accept_ms = accept_fails(errno) ? now + ACCEPT_AGAIN_MS : 0;
            return;
        }
        looker = place(lookers);
        *looker = (struct looker){.here = true, .deadline_ms = now + HANDSHAKE_MS};
        run_link_init(&looker->link, fd, false, &lookers->courier->key, lookers->courier->text);
    }
}

void lookers_fds(const struct lookers *lookers, struct pollfd *fds)
{
    for (size_t i = 0; i < LOOKERS; i++) {
        const struct looker *looker = &lookers->places[i];
        short events = looker->here ? run_link_events(&looker->link) : 0;
        fds[2 * i] = (struct pollfd){.fd = events ? looker->link.fd : -1, .events = events};
        fds[2 * i + 1] =
            (struct pollfd){.fd = looker->here && looker->desk.open ? looker->desk.channel.fd : -1, .events = POLLIN};
    }
}

/* He is told why, sealed with the key that he has shown, whoever he is. What may be otherwise in a moment is not said
 * so: he tries again. */
static void refuse(struct looker *looker, struct courier *courier, const char *why)
{
    if (used_by_stranger(&courier->used, looker->link.peer.public_key))
        run_link_accept(&looker->link);
    if (looker->link.state == RUN_OPEN)
        run_link_send(&looker->link, RUN_REFUSED, 0, why, strlen(why));
    run_link_kill(&looker->link, "%s", why);
}

static void check(struct looker *looker, struct courier *courier)
{
    struct err err = ERR_INIT;
    if (!pass_may_look(&looker->link.peer, &courier->pass))
        refuse(looker, courier, "you may not look at this terminal");
    else if (run_desk_ask_check(&looker->desk, looker->link.other, &err) < 0)
        run_link_kill(&looker->link, "%s", err.text);
}

static void hear_desk(struct looker *looker, struct courier *courier)
{
    struct err err = ERR_INIT;
    int result = run_desk_read(&looker->desk, NULL, &err);
    if (result > 0 && used_once(&courier->used, looker->link.peer.public_key))
        run_link_accept(&looker->link);
    else if (result > 0)
        run_link_kill(&looker->link, "its key was used before");
    else if (result == -EACCES)
        refuse(looker, courier, err.text);
    else if (result < 0)
        run_link_kill(&looker->link, "%s", err.text);
}

void lookers_step(struct lookers *lookers, const struct pollfd *fds, int64_t now)
{
    if (now >= lookers->accept_ms)
        lookers->accept_ms = 0;
    for (size_t i = 0; i < LOOKERS; i++) {
        struct looker *looker = &lookers->places[i];
        if (!looker->here)
            continue;
        if (fds[2 * i].fd >= 0)
            run_link_step(&looker->link, fds[2 * i].revents);
        if (looker->desk.open && fds[2 * i + 1].fd >= 0 && fds[2 * i + 1].revents)
            hear_desk(looker, lookers->courier);
        else if (looker->link.state == RUN_CHECKING && !looker->desk.open)
            check(looker, lookers->courier);
        if (looker->link.state == RUN_DEAD || now >= looker->deadline_ms)
            drop(looker);
    }
}

bool lookers_next(struct lookers *lookers, struct run_link *link, struct run_look *look)
{
    for (size_t i = 0; i < LOOKERS; i++) {
        struct looker *looker = &lookers->places[i];
        struct run_frame frame;
        if (!looker->here || looker->link.state != RUN_OPEN)
            continue;
        if (run_link_next(&looker->link, &frame) == 0) {
            if (looker->link.state == RUN_DEAD)
                drop(looker);
            continue;
        }
        if (frame.type != RUN_LOOK || !run_look_unpack(frame.data, frame.size, look)) {
            drop(looker);
            continue;
        }
        *link = looker->link;
        *looker = (struct looker){.here = false};
        return true;
    }
    return false;
}

bool lookers_take(const struct lookers *lookers)
{
    return lookers->accept_ms == 0;
}

int64_t lookers_next_ms(const struct lookers *lookers)
{
    int64_t next = lookers->accept_ms > 0 ? lookers->accept_ms : INT64_MAX;
    for (size_t i = 0; i < LOOKERS; i++)
        if (lookers->places[i].here && lookers->places[i].deadline_ms < next)
            next = lookers->places[i].deadline_ms;
    return next;
}
