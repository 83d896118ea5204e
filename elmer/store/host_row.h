/* host_row.h - what elmer remembers of a host: whether it was up, and what an administrator has decided. Plain data. */
#ifndef ELMER_STORE_HOST_ROW_H
#define ELMER_STORE_HOST_ROW_H

#include "elmer/core/core.h"

enum { HOST_NAME_MAX_BYTES = 255, DRAIN_TEXT = 201 };

struct host_drain { /* who has drained it, when (Unix time) and why; by "": an elmer of before has not kept it */
    char by[256], text[DRAIN_TEXT];
    int64_t at_ms;
};

struct host_row {
    char name[HOST_NAME_MAX_BYTES + 1];
    struct core_host_row row;
    struct host_drain drain; /* of a drained one */
};

#endif
