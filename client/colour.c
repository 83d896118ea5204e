#include "config.h"

#include "client/colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool colour_wanted(void)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !(none && *none) && term && *term && strcmp(term, "dumb") != 0;
}

const char *colour_of(const struct elmer_job *job)
{
    static const struct {
        const char *state, *code;
    } table[] = {{"running", "32"}, {"starting", "33"}, {"ending", "33"}, {"held", "2"}, {"cancelled", "2"}};

    if (strcmp(job->state, "done") == 0)
        return job->exit_status == 0 && job->signal <= 0 && strcmp(job->reason_code, "exited") == 0 ? NULL : "31";
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(job->state, table[i].state) == 0)
            return table[i].code;
    return NULL;
}
