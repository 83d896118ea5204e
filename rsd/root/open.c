/* open.c - a new job on this host: its groups and its supervisor. What is asked has been checked by verbs.c. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/root/caps.h"
#include "rsd/root/internal.h"
#include "rsd/root/scope.h"

/* The scope may have been stopped, or its keeper killed: then its directory is gone, or will be. */
static int place_again(struct root *root, struct err *err)
{
    int result;
    caps_take(CAPS_SYSTEMD);
    result = place_open(root, err);
    caps_lay_down();
    if (result >= 0)
        place_say(root, true);
    return result;
}

/* While the keeper is gone the scope may be about to be killed, with what would be born there. */
static bool place_is_there(struct root *root, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    const struct wire_open *open = &message->u.open;
    int result = scope_holds(root->groups_fd) ? 0 : place_again(root, &err);
    if (result == -EBUSY)
        log_notice("job %" PRIu64 " is not opened now: %s", open->job, err.text); /* it is sent again */
    else if (result < 0)
        tell_open_failed(root, open->job, (uint32_t)open->attempt, message->id, err.text);
    return result >= 0;
}

static int make_group(struct root *root, struct root_job *job, struct err *err)
{
    struct err again = ERR_INIT;
    int result = group_open(root->groups_fd, job->name, true, &job->group, err);
    if (result == 0 || place_again(root, &again) < 0)
        return result;
    err_clear(err);
    return group_open(root->groups_fd, job->name, true, &job->group, err);
}

void open_new(struct root *root, const struct wire_message *message, const cpu_set_t *cpus)
{
    const struct wire_open *open = &message->u.open;
    struct err err = ERR_INIT;
    struct root_job *job;
    int result;
    if (!place_is_there(root, message))
        return;
    job = job_add(root, open->job, (uint32_t)open->attempt);
    if (!job) {
        tell_open_failed(root, open->job, (uint32_t)open->attempt, message->id, "out of memory");
        return;
    }
    job->uid = (uid_t)open->uid;
    job->has_helpers = open->pvm;
    job->local = admission_is_local(root->config, open->submit_host);
    job->lease_ms = (int64_t)open->lease_ms;
    job->cpus = *cpus;
    job->ncpus = open->cpus.count;
    job->open_asked = true;
    job->open_id = message->id;
    job->open_generation = open->generation;
    job->remover = 0;
    result = tickets_keep(root, job, open->ticket);
    if (result < 0)
        err_set(&err, result, "cannot keep the job's ticket in %s/sup: %s", root->config->rundir, strerror(-result));
    else
        result = make_group(root, job, &err);
    if (result == 0) { /* before anything can be born there, should this be our last step */
        group_confine(&job->group, open->cpus.items, open->cpus.count);
        result = supervisor_start(root, job, open->user, &err);
    }
    if (result < 0) {
        tell_open_failed(root, job->id, job->attempt, message->id, err.text);
        job->open_asked = false;
        job->discard = true;
        job->supervisor_gone = !job->connected;
        ending_begin(root, job, 0);
        return;
    }
    job->deadline_ms = mono_ms(mono_now()) + OPEN_MS;
    ranks_new(root, job);
    if (job->has_helpers)
        boost_new(root, job);
}
