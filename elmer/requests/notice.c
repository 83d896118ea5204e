/* notice.c - what a notice may ask for, which is little: it runs beside the queue, so it costs nobody a turn, and must
 * not become a way around that. It runs on the host where it was submitted, where its user can start the same without
 * Elmer; once, for a short time, and it tells about something. */
#include "config.h"

#include "elmer/requests/internal.h"

int notice_check(const struct wire_submit *submit, struct err *err)
{
    if (!submit->notice)
        return 0;
    if (submit->nprocs != 1 || submit->each || submit->pvm || submit->mesh_rows || *submit->tasks)
        return err_set(err, -1, "a notice is one process, and no array");
    if (submit->hosts.count)
        return err_set(err, -1, "a notice runs on the host where it was submitted: leave the hosts out");
    if (submit->after.count != 1)
        return err_set(err, -1, "a notice tells about one job, and waits for it");
    if (!submit->time_limit_ms || submit->time_limit_ms > NOTICE_MAX_MS)
        return err_set(err, -1, "a notice has a time limit, of at most %d s", NOTICE_MAX_MS / 1000);
    return 0;
}

struct wire_strs notice_hosts(const struct wire_submit *submit, const char **here)
{
    *here = submit->submit_host;
    return submit->notice ? (struct wire_strs){.items = here, .count = 1} : submit->hosts;
}
