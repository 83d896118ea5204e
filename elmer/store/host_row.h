/* host_row.h - what elmer remembers of a host: whether it was up, and what an administrator has decided. Plain data. */
#ifndef ELMER_STORE_HOST_ROW_H
#define ELMER_STORE_HOST_ROW_H

#include "elmer/core/core.h"

enum { HOST_NAME_MAX_BYTES = 255 };

struct host_row {
    char name[HOST_NAME_MAX_BYTES + 1];
    struct core_host_row row;
};

#endif
