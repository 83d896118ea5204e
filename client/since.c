#include "config.h"

#include "client/since.h"

#include <string.h>
#include <time.h>

#include "client/common.h"
#include "client/limits.h"
#include "lib/base/clock.h"

static bool put(struct tm *tm, int64_t *ms)
{
    tm->tm_isdst = -1; /* as it was then */
    *ms = (int64_t)mktime(tm) * 1000;
    return true;
}

static bool moment(const char *text, int64_t *ms)
{
    static const char *const forms[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"};
    time_t now = (time_t)(wall_now().ms / 1000);
    struct tm midnight;

    localtime_r(&now, &midnight);
    midnight.tm_hour = midnight.tm_min = midnight.tm_sec = 0;
    if (strcmp(text, "yesterday") == 0)
        midnight.tm_mday--;
    if (strcmp(text, "yesterday") == 0 || strcmp(text, "today") == 0)
        return put(&midnight, ms);
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        struct tm tm = midnight;
        const char *end = strptime(text, forms[i], &tm);

        if (end && !*end)
            return put(&tm, ms);
    }
    return false;
}

bool since_parse(const char *text, int64_t *ms)
{
    uint64_t ago;

    if (moment(text, ms))
        return true;
    if (!*text || !strchr("0123456789", *text) || strpbrk(text, "-:")) {
        usage_error(
            "--since %s: want a time ago like 2h30m, or a moment like 2026-11-24, \"2026-11-24 08:00\", 08:00, today "
            "or yesterday",
            text);
        return false;
    }
    if (!limit_time("--since", text, &ago))
        return false;
    *ms = wall_now().ms - (int64_t)ago;
    return true;
}
