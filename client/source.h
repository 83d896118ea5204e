/* source.h - the output of one process of a job, wherever it lies: part by part, with the rights of whoever asks. */
#ifndef CLIENT_SOURCE_H
#define CLIENT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libelmer/elmer.h"

enum { SOURCE_BYTES = 16 << 10 };

struct source {
    struct elmer *elmer; /* not owned */
    uint64_t job;
    uint32_t rank;
    bool errors;
    bool patient; /* to be set: elmer may be away while the job has not ended, for as long as it takes */
    char *host, *path;
    struct elmer_output *left; /* for what the job has left; NULL: it could not be opened */
    bool left_read;            /* a part of that has come */
    bool said_empty;
    bool here; /* it is on this host: read by ourselves */
};

struct part {
    int64_t offset, size; /* of the part; of the file */
    char bytes[SOURCE_BYTES];
    size_t count;
};

/* The signal that shall end this program; 0: none. While a job reads for us they are caught, so that source_close() can
 * end that job; source_leave() is then the end that the signal would have been. */
int source_ended_by(void);
void source_leave(void);

/* The output of this rank of a job that has processors; to be closed. Returns an exit code; -1: good. */
int source_open(struct source *source, struct elmer *elmer, const struct elmer_job *job, uint32_t rank, bool errors);
void source_close(struct source *source);
/* From offset on; negative: so far before the end. Returns an exit code; -1: good. ended: the job has, so that its
 * host has to be asked in another way; without it EXIT_JOB says that the job does not run now. */
int source_read(struct source *source, int64_t offset, bool ended, struct part *part);

#endif
