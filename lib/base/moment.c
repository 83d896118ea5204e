#include "config.h"

#include "lib/base/moment.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPAN_MAX_S = 366 * 86400, DIGITS_MAX = 8, UNIX_DIGITS_MAX = 12, FRACTION_DIGITS_MAX = 9 };

static uint64_t unit_s(char unit)
{
    return unit == 'd' ? 86400 : unit == 'h' ? 3600 : unit == 'm' ? 60 : unit == 's' ? 1 : 0;
}

uint64_t moment_span_s(const char *text)
{
    uint64_t sum = 0, last = UINT64_MAX;

    while (*text) {
        size_t length = strspn(text, "0123456789");
        uint64_t unit = unit_s(text[length]);

        if (length == 0 || length > DIGITS_MAX || unit == 0 || unit >= last)
            return 0;
        sum += strtoull(text, NULL, 10) * unit;
        last = unit;
        text += length + 1;
    }
    return sum <= SPAN_MAX_S ? sum : 0;
}

static bool unix_time(const char *text, struct wall *moment)
{
    size_t whole = strspn(text, "0123456789"), digits = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;

    if (whole == 0 || whole > UNIX_DIGITS_MAX || digits > FRACTION_DIGITS_MAX || text[whole + (digits > 0) + digits])
        return false;
    moment->ms = (int64_t)(strtod(text, NULL) * 1000 + 0.5);
    return true;
}

static bool local_time(struct tm *tm, struct wall *moment)
{
    tm->tm_isdst = -1; /* as it was then */
    moment->ms = (int64_t)mktime(tm) * 1000;
    return true;
}

/* mktime() takes 31 February for 3 March. At noon: no clock is changed then. */
static bool is_day(struct tm tm)
{
    int day = tm.tm_mday;

    tm.tm_hour = 12;
    tm.tm_isdst = -1;
    return mktime(&tm) != (time_t)-1 && tm.tm_mday == day;
}

bool moment_parse(const char *text, struct wall now, struct wall *moment)
{
    static const char *const forms[] = {
        "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"};
    time_t now_s = (time_t)(now.ms / 1000);
    uint64_t span_s = moment_span_s(text);
    struct tm midnight;

    if (span_s > 0) {
        moment->ms = now.ms - (int64_t)span_s * 1000;
        return true;
    }
    if (text[0] == '@')
        return unix_time(text + 1, moment);
    localtime_r(&now_s, &midnight);
    midnight.tm_hour = midnight.tm_min = midnight.tm_sec = 0;
    if (strcmp(text, "yesterday") == 0)
        midnight.tm_mday--;
    if (strcmp(text, "yesterday") == 0 || strcmp(text, "today") == 0)
        return local_time(&midnight, moment);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm tm = midnight;
        const char *end = strptime(text, forms[i], &tm);

        if (end && !*end)
            return is_day(tm) && local_time(&tm, moment);
    }
    return false;
}
