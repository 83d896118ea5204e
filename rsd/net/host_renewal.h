/* host_renewal.h - a new key and certificate when elmer asks for it, on the link that is up. */
#ifndef RSD_NET_HOST_RENEWAL_H
#define RSD_NET_HOST_RENEWAL_H

#include <uv.h>

#include "lib/wire/wire.h"

struct host_renewal;

struct host_renewal_callbacks {
    int (*send)(const struct wire_message *message, void *data); /* to elmer */
};

/* pki: the directory of ca.crt, host.crt and host.key, which are the user's of this process. NULL: out of memory. */
struct host_renewal *host_renewal_create(uv_loop_t *loop, const char *pki,
                                         const struct host_renewal_callbacks *callbacks, void *data);
/* No callback comes any more. It may outlive the loop's owner until its work in another thread has ended. */
void host_renewal_close(struct host_renewal *renewal);
/* The messages renew_wanted, renewed, and the error to a renewal; false: the message is for somebody else. */
bool host_renewal_message(struct host_renewal *renewal, const struct wire_message *message);

#endif
