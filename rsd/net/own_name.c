/* own_name.c - does this host resolve its own name to a loopback address? */
#include "config.h"

#include <netdb.h>
#include <sys/socket.h>

#include "rsd/net/facts.h"
#include "rsd/net/own_name.h"

enum { NAME_MS = 2000 }; /* to find out how our own name resolves */

static void on_name(uv_getaddrinfo_t *request, int status, struct addrinfo *info)
{
    struct own_name *own = request->data;

    own->busy = false;
    own->known = true;
    own->loopback = status != 0 || facts_loopback(info);
    uv_freeaddrinfo(info);
    if (!own->closed)
        own->on_known(own->data);
}

/* Name services that hang: elmer is told to name addresses, which is always right. */
static void on_timer(uv_timer_t *timer)
{
    struct own_name *own = timer->data;

    if (own->known)
        return;
    own->known = own->loopback = true;
    own->on_known(own->data);
}

void own_name_init(struct own_name *own, uv_loop_t *loop, const char *name, void (*on_known)(void *data), void *data)
{
    *own = (struct own_name){.name = name, .on_known = on_known, .data = data};
    (void)uv_timer_init(loop, &own->timer);
    own->timer.data = own;
    own->request.data = own;
}

void own_name_resolve(struct own_name *own)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};

    if (own->busy)
        return;
    own->busy = uv_getaddrinfo(own->timer.loop, &own->request, on_name, own->name, NULL, &hints) == 0;
    (void)uv_timer_start(&own->timer, on_timer, own->busy ? NAME_MS : 0, 0);
}

void own_name_close(struct own_name *own)
{
    own->closed = true;
    if (own->busy)
        (void)uv_cancel((uv_req_t *)&own->request);
    uv_close((uv_handle_t *)&own->timer, NULL);
}
