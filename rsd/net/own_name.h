/* own_name.h - does this host resolve its own name to a loopback address? Then virtual machines
 * need addresses instead of names. */
#ifndef RSD_NET_OWN_NAME_H
#define RSD_NET_OWN_NAME_H

#include <stdbool.h>
#include <uv.h>

struct own_name {
    const char *name;
    void (*on_known)(void *data);
    void *data;
    uv_getaddrinfo_t request;
    uv_timer_t timer;
    bool busy, closed;
    bool known, loopback; /* to be read */
};

/* The name outlives it. */
void own_name_init(struct own_name *own, uv_loop_t *loop, const char *name, void (*on_known)(void *data), void *data);
/* Ask the name services (again: /etc/hosts may have been mended); on_known() is called within some seconds. */
void own_name_resolve(struct own_name *own);
/* on_known() is called no more; its memory is free for others when the loop has ended. */
void own_name_close(struct own_name *own);

#endif
