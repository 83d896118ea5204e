/* dead_man.c - the supervisor's part of a lease: the switch of a dead man.
 *
 * The root half ends a job with a lease by itself, with a grace, when elmer has not been heard for nearly as long as
 * the lease (rsd/root/host_lease.c), and passes each contact on to us. When the whole lease has passed since the last
 * one that we know of, it is dead or stands still: then the job's group is killed here, and we end without a word. A
 * root half that lives takes that as what it is: the supervisor has gone, the job is lost.
 */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "rsd/root/group.h"
#include "rsd/root/sched.h"
#include "rsd/sup/sup.h"

enum { CHECK_MS = 1000, KILL_AGAIN_MS = 500, SLICE_PAUSE_MS = 20, RAISED = 8, RAISED_MS = 2 };

bool lease_option(struct sup *sup, const char *option)
{
    static const char name[] = "--lease=";
    char text[64];
    uint64_t lease_ms, contact_ms;
    char *comma;
    if (strncmp(option, name, sizeof(name) - 1) != 0 || strlen(option) >= sizeof(text))
        return false;
    snprintf(text, sizeof(text), "%s", option + sizeof(name) - 1);
    comma = strchr(text, ',');
    if (!comma)
        return false;
    *comma = 0;
    if (!str_to_u64(text, &lease_ms) || !str_to_u64(comma + 1, &contact_ms) || lease_ms == 0 ||
        lease_ms > INT64_MAX / 2 || contact_ms > INT64_MAX / 2)
        return false;
    sup->lease_ms = (int64_t)lease_ms;
    sup->contact_ms = (int64_t)contact_ms;
    return true;
}

void lease_contact(struct sup *sup, uint64_t said_ms)
{
    int64_t now = boot_ms(), said = said_ms < (uint64_t)now ? (int64_t)said_ms : now;
    if (said > sup->contact_ms)
        sup->contact_ms = said;
}

/* Never longer than CHECK_MS: poll(2) does not count the time that the machine sleeps. */
int lease_timeout(const struct sup *sup, int timeout)
{
    int64_t left = sup->contact_ms + sup->lease_ms - boot_ms();
    if (sup->lease_ms == 0)
        return timeout;
    if (left > CHECK_MS)
        left = CHECK_MS;
    return left <= 0 ? 0 : timeout >= 0 && timeout < left ? timeout : (int)left;
}

bool lease_over(const struct sup *sup)
{
    return sup->lease_ms > 0 && boot_ms() >= sup->contact_ms + sup->lease_ms;
}

/* As death.c does it: they die in SCHED_OTHER, a few at a time above all jobs. */
static void let_die(const struct cgroup *group)
{
    struct sched_target target = {.crowded = true};
    struct sched_pass pass = SCHED_PASS_INIT;
    int more = sched_pass_begin(&pass, group) < 0 ? 0 : 1;
    while (more > 0) {
        more = sched_pass_step(&pass, group, &target);
        poll(NULL, 0, SLICE_PAUSE_MS);
    }
    sched_pass_end(&pass);
}

static void raise_some(const struct cgroup *group)
{
    pid_t raised[RAISED];
    size_t count = sched_raise_some(group, raised, RAISED);
    poll(NULL, 0, RAISED_MS);
    sched_lower(raised, count);
}

/* Until nothing is left, however long a process may wait for its disk: as long as it lives, the attempt does. */
void lease_kill(struct sup *sup)
{
    struct cgroup group = {sup->job_fd, -1, -1};
    log_warning("job=%llu: neither elmer nor rsd was heard for its lease of %lld s: killed here",
                (unsigned long long)sup->job, (long long)sup->lease_ms / 1000);
    if (sup->job_fd < 0)
        return;
    group.events_fd = openat(sup->job_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    do {
        if (sup->kill_fd < 0 || write(sup->kill_fd, "1", 1) != 1)
            (void)group_kill(&group);
        if (sup->rt)
            raise_some(&group);
        let_die(&group);
        poll(NULL, 0, group_populated(&group) ? KILL_AGAIN_MS : 0);
    } while (group_populated(&group));
    close(group.events_fd);
}
