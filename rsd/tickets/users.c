/* users.c - see users.h.
 *
 * Whoever signs waits for the answer to a name, and everybody with him. A user may have 65,536 uids for his user
 * namespaces, none of which has a name; and where the name service does not answer each of them takes seconds. So
 * that somebody has none is remembered for a while as well, and to find that out may take a part of the time only. Who
 * has a name costs nothing of that. */
#include "config.h"

#include "rsd/tickets/users.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"

enum { USER_MS = 60000, NAMELESS_MS = 5000 };
/* Where they are answered at once 10,000 are free, and then there are 500 in a second: who is new must not wait long
 * behind them. */
enum { NAMELESS_AT_ONCE_MS = 2000, NAMELESS_MS_PER_SECOND = 100, LOOKUP_LEAST_US = 200 };
static const double lookup_least_ms = LOOKUP_LEAST_US / 1000.0;

/* One who is known stays so while nobody can be asked. */
static void look_up(struct desk_users *users, struct desk_user *user, int64_t now)
{
    static struct log_limit limit;
    const int64_t begin = mono_ms(mono_now());
    const struct passwd *entry;
    int64_t took;
    errno = 0;
    entry = getpwuid(user->uid);
    user->unsure = !entry && errno && errno != ENOENT && errno != ESRCH;
    took = mono_ms(mono_now()) - begin;
    user->known_ms = now + took;
    if (!entry && log_allowed(&limit, 10, 60000))
        log_warning("elmer-tickets finds no name for uid %u, so it gets no ticket", (unsigned)user->uid);
    if (!user->unsure)
        snprintf(user->name, sizeof(user->name), "%s",
                 entry && strlen(entry->pw_name) <= TICKET_USER_MAX ? entry->pw_name : "");
    if (!user->name[0])
        (void)bucket_take(&users->nameless, now, NAMELESS_MS_PER_SECOND, NAMELESS_AT_ONCE_MS,
                          took > 0 ? (double)took : lookup_least_ms);
}

static bool may_look_up(struct desk_users *users, int64_t now)
{
    return bucket_check(&users->nameless, now, NAMELESS_MS_PER_SECOND, NAMELESS_AT_ONCE_MS, lookup_least_ms) ==
           BUCKET_ENOUGH;
}

/* Tickets that he has had lately. */
static double owed(const struct desk_user *user, int64_t now)
{
    double left = user->bucket.missing - (double)(now - user->bucket.at_ms) * TICKETS_PER_SECOND / 1000;
    return left > 0 ? left : 0;
}

/* Who has no name, or has had the fewest tickets lately, makes room, so that nobody has his forgotten; of those the one
 * who was looked up the longest time ago. */
static bool makes_room_before(const struct desk_user *one, const struct desk_user *other, int64_t now)
{
    if (!one->name[0] != !other->name[0])
        return !one->name[0];
    return owed(one, now) < owed(other, now) || (owed(one, now) <= owed(other, now) && one->known_ms < other->known_ms);
}

struct desk_user *desk_user_of(struct desk_users *users, uint32_t uid, int64_t now)
{
    struct desk_user *user = &users->users[0];
    for (size_t i = 0; i < DESK_USERS; i++) {
        struct desk_user *other = &users->users[i];
        if (other->known_ms && other->uid == uid) {
            if (now - other->known_ms > (other->name[0] ? USER_MS : NAMELESS_MS) &&
                (other->name[0] || may_look_up(users, now)))
                look_up(users, other, now);
            return other;
        }
        if (makes_room_before(other, user, now))
            user = other;
    }
    if (!may_look_up(users, now))
        return NULL;
    *user = (struct desk_user){.uid = uid, .bucket = {.at_ms = now}};
    look_up(users, user, now);
    return user;
}
