/* plot.h - a sweep as a picture: turnaround and utilisation over what is swept, a curve for each compared value. */
#ifndef ESIM_PLOT_H
#define ESIM_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "esim/plan.h"

/* A sweep over numbers. */
bool plot_possible(const struct plan *plan);
void plot(FILE *out, const struct plan *plan);

#endif
