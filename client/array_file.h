/* array_file.h - esubmit --array-file: a task for each line of a file. */
#ifndef CLIENT_ARRAY_FILE_H
#define CLIENT_ARRAY_FILE_H

#include "libelmer/elmer.h"

struct array_file {
    char *name;  /* of the file, for messages */
    char *text;  /* its lines */
    char *tasks; /* "1-200%8" */
};

/* option: FILE[%N]; FILE may be -, standard input. -1: it is read; else the exit code: it has said what is wrong. */
int array_file_read(struct array_file *file, const char *option);
/* Puts its tasks and lines into the submission, whose command is there. -1, or the exit code, as above. */
int array_file_use(const struct array_file *file, struct elmer_submission *submission);
void array_file_fini(struct array_file *file);

#endif
