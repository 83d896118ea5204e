/* show.h - the results of simulations for people. */
#ifndef ESIM_SHOW_H
#define ESIM_SHOW_H

#include "esim/plan.h"

/* The table, what a comparison says, and of a history what cannot be known, on standard output. */
void show(const struct plan *plan);
/* What was left out, on standard error. */
void show_notes(const struct plan *plan);

#endif
