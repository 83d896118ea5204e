/* submission.h - what the command line of esubmit, and the #ELMER lines of a script, say. */
#ifndef CLIENT_SUBMISSION_H
#define CLIENT_SUBMISSION_H

#include "client/after.h"
#include "client/array_file.h"
#include "client/environment.h"
#include "client/machine.h"
#include "client/notices.h"
#include "client/pty.h"
#include "client/script.h"
#include "lib/options/options.h"
#include "libelmer/elmer.h"

/* Of esubmit, and of the lines of a script. */
extern const struct option_row submission_options[];

struct request {
    struct elmer_submission submission;
    struct environment environment;
    struct script script;
    char *dir;
    char name[SCRIPT_JOB_NAME]; /* of the script, where no other is given */
    char *found;                /* the command, where PATH has it; NULL: it has a slash, or is not here */
    const char **hosts;
    char *host_names; /* what hosts points into */
    struct after_option after;
    struct notices notices;
    const char *lines; /* as --array-file has it; NULL: there is none */
    struct array_file array_file;
    struct machine machine;
    bool wait, dry_run;
    struct pty_option pty;
};

/* Options win that come later: those of the script's lines in their order, then those of the command line. Returns -1,
 * or the exit code: it has said why. */
int request_parse(struct request *request, int argc, char **argv);
void request_fini(struct request *request);

#endif
