/* json.h - the results of simulations for programs. */
#ifndef ESIM_JSON_H
#define ESIM_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include "esim/plan.h"

/* A line for each simulation. false: it could not be written, errno says why. */
bool json_print(FILE *out, const struct plan *plan);
/* A line for a job that has ended. */
void json_record(FILE *out, const struct sim_job *job);

#endif
