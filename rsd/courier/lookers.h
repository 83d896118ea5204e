/* lookers.h - connections to the holder of a terminal, until it is known whose they are and what they want. */
#ifndef RSD_COURIER_LOOKERS_H
#define RSD_COURIER_LOOKERS_H

#include "lib/run/look.h"
#include "rsd/courier/courier.h"

enum { LOOKERS = 32 }; /* at a time; the oldest makes room */

struct looker {
    bool here;
    struct run_link link;
    struct run_desk desk; /* asks about his pass */
    int64_t deadline_ms;
};
struct lookers {
    struct courier *courier;
    struct looker places[LOOKERS];
    int64_t accept_ms; /* no descriptor is left: nobody is let in before; 0: not so */
};
enum { LOOKERS_FDS = 2 * LOOKERS };

void lookers_fini(struct lookers *lookers);
/* Who waits at the listener. */
void lookers_let_in(struct lookers *lookers, int listener, int64_t now);
/* LOOKERS_FDS of them. */
void lookers_fds(const struct lookers *lookers, struct pollfd *fds);
void lookers_step(struct lookers *lookers, const struct pollfd *fds, int64_t now);
/* One whose pass is good, and what he asks for: the link is the caller's then. False: there is none. */
bool lookers_next(struct lookers *lookers, struct run_link *link, struct run_look *look);
bool lookers_take(const struct lookers *lookers);       /* who waits at the listener is of interest */
int64_t lookers_next_ms(const struct lookers *lookers); /* INT64_MAX: nothing to do by time */

#endif
