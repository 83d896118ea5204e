/* ending.c - the end of what an erun has started that is gone itself: TERM (HUP where there is a terminal), and KILL
 * after KILL_MS, to all of its family, as often as there is more of it. */
#include "config.h"

#include <signal.h>

#include "rsd/courier/courier.h"
#include "rsd/courier/family.h"

static bool ends(const struct child *child)
{
    return child->ends;
}

static void signal_family(const struct session *session, int number)
{
    for (size_t i = 0; i < session->nchildren; i++)
        child_signal(&session->children[i], number);
    family_signal(&session->family, session->children, session->nchildren, number);
}

void session_end(struct session *session, int64_t now)
{
    bool any = false;
    session->ending = true;
    session->deadline_ms = now + KILL_MS;
    for (size_t i = 0; i < session->nchildren; i++) {
        struct child *child = &session->children[i];
        child->ends = !child->told;
        any = any || child->ends;
        child_close(child);
    }
    if (!any)
        return;
    family_scan(&session->family, session->children, session->nchildren, ends);
    signal_family(session, session->children[0].terminal ? SIGHUP : SIGTERM);
    signal_family(session, SIGCONT);
}

bool session_all_reaped(const struct session *session)
{
    for (size_t i = 0; i < session->nchildren; i++)
        if (!session->children[i].reaped)
            return false;
    return true;
}

void session_end_rest(struct session *session, int64_t now)
{
    bool late = now >= session->deadline_ms;
    if (!late && !(session->scan && session_all_reaped(session)))
        return;
    session->scan = false;
    family_scan(&session->family, session->children, session->nchildren, ends);
    if (!late)
        return;
    session->killed = true;
    session->deadline_ms = now + KILL_AGAIN_MS;
    signal_family(session, SIGKILL);
    if (++session->rounds >= KILL_ROUNDS && session_all_reaped(session))
        family_fini(&session->family);
}
