/* swf.h - traces in the Standard Workload Format (Feitelson, Parallel Workloads Archive, version 2.2): lines of 18
 * numbers, -1 for what is not known, header comments that begin with ';'. Plain or compressed by gzip. */
#ifndef ESIM_SWF_H
#define ESIM_SWF_H

#include "esim/job.h"

enum swf_field {
    SWF_JOB,
    SWF_SUBMIT,
    SWF_WAIT,
    SWF_RUN,
    SWF_PROCS,
    SWF_CPU,
    SWF_MEMORY,
    SWF_ASKED_PROCS,
    SWF_ASKED_TIME,
    SWF_ASKED_MEMORY,
    SWF_STATUS,
    SWF_USER,
    SWF_GROUP,
    SWF_PROGRAM,
    SWF_QUEUE,
    SWF_PARTITION,
    SWF_PRECEDING,
    SWF_THINK,
    SWF_FIELDS
};

/* Its numbers, in decimal; times and averages may have a fraction, and an exponent, as awk writes large ones. Returns
 * 0, or the number of the field that is wrong, from 1, SWF_FIELDS + 1 if there are too many. */
int swf_parse_line(const char *line, double fields[SWF_FIELDS]);

struct swf_header { /* -1: it does not say */
    int64_t max_procs, max_nodes, max_jobs, unix_start;
};

struct swf; /* is a source, of jobs in the order of the trace; feedback.h puts them in that of their submission */
/* NULL: it cannot be opened, errno says why. Lines that are wrong are left out and, if not silent, told to standard
 * error by their numbers. */
struct swf *swf_open(const char *path, bool silent);
/* The comments before the first job. */
const struct swf_header *swf_header(const struct swf *swf);
/* All of them that have a name, in their order; false: there are no more. The texts live as long as swf. */
bool swf_comment(const struct swf *swf, size_t index, const char **name, const char **value);
/* Why its end has not been reached: a damaged file, or none that can be read again; NULL: nothing is wrong. */
const char *swf_fault(const struct swf *swf);
struct source *swf_source(struct swf *swf);
struct swf_counts {       /* so far */
    uint64_t bad_lines;   /* that were wrong */
    uint64_t unknown;     /* jobs whose run time or processors are not known */
    uint64_t parts;       /* lines with a part of a job's time, between checkpoints: no jobs */
    uint64_t parts_alone; /* jobs with such lines only, behind no line that sums them up */
    uint64_t never_ran;   /* jobs that were cancelled while they waited: nobody knows how long they would have run */
};
struct swf_counts swf_counts(const struct swf *swf);

#endif
