/* users.h - who asks for tickets: their names, and how many they have had. */
#ifndef RSD_TICKETS_USERS_H
#define RSD_TICKETS_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/quota/bucket.h"
#include "lib/ticket/ticket.h"

enum { TICKETS_AT_ONCE = 100000, TICKETS_PER_SECOND = 10, DESK_USERS = 256 };

struct desk_user { /* also one without a name */
    uint32_t uid;
    char name[TICKET_USER_MAX + 1];
    int64_t known_ms; /* 0: nobody */
    bool unsure;      /* nobody could say who he is */
    struct bucket bucket;
};

struct desk_users { /* zero-initialised: nobody */
    struct desk_user users[DESK_USERS];
    struct bucket nameless; /* ms that were spent to look up those without a name */
};

/* The user with this uid; NULL: it is not known whether that has a name, and not to be asked yet. He stays where he is
 * until the next call. */
struct desk_user *desk_user_of(struct desk_users *users, uint32_t uid, int64_t now);

#endif
