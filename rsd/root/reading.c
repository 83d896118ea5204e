/* reading.c - who may have output read by a job's supervisor (rsd/sup/reader.c), and how often.
 *
 * What that costs is above all jobs: 0.5 ms for a part in supervisor and jobs half on one machine, 4 ms on another,
 * where a fork is dear, and what the network half takes, which is not measured. So the jobs of this host share a budget
 * for it; a part counts as 1 ms, and when it comes as what its supervisor has used meanwhile, if that is more.
 */
#include "config.h"

#include "lib/base/clock.h"
#include "rsd/root/internal.h"

enum { PARTS_AT_ONCE = 20, PARTS_PER_SECOND = 10 };
#define PART_US INT64_C(1000)

void reading_init(struct root *root)
{
    budget_init(&root->reading, PARTS_AT_ONCE * PART_US, PARTS_PER_SECOND * PART_US, PARTS_AT_ONCE * PART_US,
                mono_ms(mono_now()));
}

static void refuse(struct root *root, const struct wire_message *message, const char *text, bool again)
{
    const struct wire_read_file *read = &message->u.read_file;
    struct wire_message part = {.type = WIRE_file_part, .id = message->id};
    part.u.file_part.job = read->job;
    part.u.file_part.attempt = read->attempt;
    part.u.file_part.process = read->process;
    part.u.file_part.again = again;
    part.u.file_part.data = "";
    part.u.file_part.text = text;
    tell(root, &part);
}

void reading_refuse(struct root *root, const struct wire_message *message, const char *text)
{
    refuse(root, message, text, true);
}

void reading_ask(struct root *root, struct root_job *job, const struct wire_message *message)
{
    const int64_t part_ns = PART_US * INT64_C(1000);
    budget_charge(&root->reading, 0, mono_ms(mono_now()));
    if (wire_minor_of(WIRE_read_file, job->supervisor.minor) <
        WIRE_READ_MINOR) { /* it would put that down together with the job */
        refuse(root, message, "the job was begun by an earlier version of rsd, which does not read its output", false);
    } else if (root->reading.left_ns < part_ns) {
        refuse(root, message, "much output is read on this host now", true);
    } else {
        budget_charge(&root->reading, part_ns, mono_ms(mono_now()));
        job->reading_ns = budget_process_ns(job->supervisor_pid);
        tell_supervisor(job, message);
    }
}

void reading_told(struct root *root, struct root_job *job)
{
    const int64_t used_ns = job->reading_ns > 0 ? budget_process_ns(job->supervisor_pid) - job->reading_ns : 0;
    job->reading_ns = 0;
    if (used_ns > PART_US * 1000)
        budget_charge(&root->reading, used_ns - PART_US * 1000, mono_ms(mono_now()));
}
