/* host_renewal.h - a new key and certificate when elmer asks for it, on the link that is up. */
#ifndef RSD_NET_HOST_RENEWAL_H
#define RSD_NET_HOST_RENEWAL_H

#include <uv.h>

#include "lib/wire/wire.h"

struct renewal;

struct renewal_callbacks {
    int (*send)(const struct wire_message *message, void *data); /* to elmer */
};

/* pki: the directory of ca.crt, host.crt and host.key, which are the user's of this process. NULL: out of memory. */
struct renewal *renewal_create(uv_loop_t *loop, const char *pki, const struct renewal_callbacks *callbacks, void *data);
/* No callback comes any more. It may outlive the loop's owner until its work in another thread has ended. */
void renewal_close(struct renewal *renewal);
/* The messages renew_wanted, renewed, and the error to a renewal; false: the message is for somebody else. */
bool renewal_message(struct renewal *renewal, const struct wire_message *message);

#endif
