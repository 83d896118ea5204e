/* service.h - from what a job used in its time to how it would run alone. */
#ifndef ESIM_SERVICE_H
#define ESIM_SERVICE_H

#include "esim/history.h"

/* Sets share and work_ms of each. */
void service_estimate(struct history_job *jobs, size_t count);

#endif
