#include "config.h"

#include "client/limits.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/common.h"
#include "lib/base/bytes.h"
#include "lib/base/moment.h"
#include "lib/base/str.h"
#include "lib/job/job.def"

enum {
    WARNING_MAX_S = 366 * 86400,
    NUMBER_MAX = 366 * 1440, /* minutes of the longest time */
    MESH_SIDE_MAX = 65536,
    POLL_SLEEP_MAX_US = 10000 /* of yield/wait.h */
};

bool limit_time(const char *option, const char *text, uint64_t *ms)
{
    uint64_t seconds = moment_span_s(text), number;

    if (seconds == 0 && str_to_u64(text, &number) && number > 0 && number <= NUMBER_MAX) {
        usage_error("%s %s: seconds or minutes? Write %ss or %sm", option, text, text, text);
        return false;
    }
    if (seconds == 0) {
        usage_error("%s %s: want a time like 2h30m or 45s, with d, h, m and s, from 1s to 366d", option, text);
        return false;
    }
    *ms = seconds * 1000;
    return true;
}

bool limit_memory(const char *option, const char *text, uint64_t *bytes)
{
    if (bytes_parse(text, bytes) && *bytes >= MEMORY_MIN_BYTES)
        return true;
    usage_error(
        "%s %s: want memory for each processor like 500M or 4G, a whole number with K, M, G or T, from 1M to 1024T",
        option, text);
    return false;
}

uint32_t limit_signal_number(const char *name)
{
    uint64_t number;

    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    if (!str_to_u64(name, &number))
        for (number = 1; number < NSIG; number++)
            if (sigabbrev_np((int)number) && strcasecmp(name, sigabbrev_np((int)number)) == 0)
                break;
    return number >= 1 && number < NSIG ? (uint32_t)number : 0;
}

/* KILL and STOP nobody can take as a warning. */
static uint32_t warning_number(const char *name)
{
    uint32_t number = limit_signal_number(name);

    return number != SIGKILL && number != SIGSTOP ? number : 0;
}

bool limit_signal(const char *text, uint32_t *number, uint64_t *ms)
{
    const char *at = strchr(text, '@');
    char name[16] = "";
    uint64_t seconds = 0;

    if (at && at - text < (long)sizeof(name))
        memcpy(name, text, (size_t)(at - text));
    *number = warning_number(name);
    if (at && !str_to_u64(at + 1, &seconds))
        seconds = moment_span_s(at + 1);
    if (*number == 0 || seconds == 0 || seconds > WARNING_MAX_S) {
        usage_error("--signal %s: want a signal other than KILL and STOP, and how long before the limit, like USR1@120 "
                    "or TERM@2m",
                    text);
        return false;
    }
    *ms = seconds * 1000;
    return true;
}

/* ---- whole numbers ---- */

bool limit_mesh(const char *text, uint32_t *rows, uint32_t *nprocs)
{
    const char *x = strchr(text, 'x');
    char before[24] = "";
    uint64_t nrows, ncolumns;

    if (x && x - text < (long)sizeof(before))
        memcpy(before, text, (size_t)(x - text));
    if (!x || !str_to_u64(before, &nrows) || !str_to_u64(x + 1, &ncolumns) || nrows < 1 || ncolumns < 1 ||
        nrows > MESH_SIDE_MAX || ncolumns > MESH_SIDE_MAX || nrows * ncolumns > MESH_SIDE_MAX) {
        usage_error("--mesh %s: want rows and columns, like 4x6, of at most %d processors", text, MESH_SIDE_MAX);
        return false;
    }
    *rows = (uint32_t)nrows;
    *nprocs = (uint32_t)(nrows * ncolumns);
    return true;
}

bool limit_per_host(const char *text, uint32_t *per_host)
{
    uint64_t count;

    if (!str_to_u64(text, &count) || count < 1 || count > UINT16_MAX) {
        usage_error("--per-host %s: want a number of processors, from 1 to %d", text, UINT16_MAX);
        return false;
    }
    *per_host = (uint32_t)count;
    return true;
}

bool limit_poll_sleep(const char *text)
{
    uint64_t us;

    if (str_to_u64(text, &us) && us <= POLL_SLEEP_MAX_US)
        return true;
    usage_error("--poll-sleep %s: want microseconds, a whole number from 0 to %d", text, POLL_SLEEP_MAX_US);
    return false;
}
