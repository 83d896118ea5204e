/* policy.h - the contract of the policies: in which order the jobs of the queue have their turn.
 *
 * A policy is a row of policy.def and a file of this folder. Rule 4 is the same under each: among eligible jobs nobody
 * overtakes the first.
 */
#ifndef ELMER_CORE_POLICY_POLICY_H
#define ELMER_CORE_POLICY_POLICY_H

#include "elmer/core/core.h"

struct policy {
    /* Whether a has its turn before b: a strict total order of different jobs. May look only at what stays the same as
     * long as a job is known: id, uid, nprocs, hosts, each, requeue; and at its place. */
    bool (*before)(const struct core_job *a, const struct core_job *b);
};

#define POLICY(constant, name) extern const struct policy policy_##name;
#include CORE_POLICIES
#undef POLICY

const struct policy *policy_by_number(enum core_policy number);

#endif
