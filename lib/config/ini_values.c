/* ini_values.c - parsers for configuration values. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/config/ini.h"

int ini_parse_int(const char *value, long min, long max, long *out, struct err *err)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(value, &end, 10);
    if (*value == '\0' || strchr(" \t+", *value) || *end != '\0' || errno != 0 || number < min || number > max)
        return err_set(err, -EINVAL, "must be a whole number from %ld to %ld", min, max);
    *out = number;
    return 0;
}

int ini_parse_double(const char *value, double min_open, double max_open, double *out, struct err *err)
{
    char *end;
    double number;

    errno = 0;
    number = strtod(value, &end);
    /* strtod also takes hexadecimal numbers, inf and nan. */
    if (*value == '\0' || strspn(value, "0123456789.eE+-") != strlen(value) || *end != '\0' || !isfinite(number) ||
        number <= min_open || number >= max_open)
        return err_set(err, -EINVAL, "must be a number greater than %g and less than %g", min_open, max_open);
    *out = number;
    return 0;
}

static long unit_ms(const char *unit)
{
    if (strcmp(unit, "ms") == 0)
        return 1;
    if (strcmp(unit, "s") == 0 || *unit == '\0')
        return 1000;
    if (strcmp(unit, "m") == 0)
        return 60L * 1000;
    if (strcmp(unit, "h") == 0)
        return 60L * 60 * 1000;
    return strcmp(unit, "d") == 0 ? 24L * 60 * 60 * 1000 : 0;
}

/* With the largest unit that divides it. */
static const char *in_words(long ms, char *text, size_t size)
{
    static const char *const units[] = {"d", "h", "m", "s", "ms"};
    size_t i = 0;

    while (ms % unit_ms(units[i]) != 0 || ms == 0)
        if (++i == sizeof(units) / sizeof(*units) - 1)
            break;
    snprintf(text, size, "%ld%s", ms / unit_ms(units[i]), units[i]);
    return text;
}

/* ", such as 2s, 5m or 1h": those that are between these bounds. */
static const char *examples(long min_ms, long max_ms, char *text, size_t size)
{
    static const struct {
        const char *word;
        long ms;
    } all[] = {{"500ms", 500}, {"2s", 2000}, {"5m", 300000}, {"1h", 3600000}, {"7d", 604800000}};
    const char *fit[sizeof(all) / sizeof(*all)] = {NULL};
    size_t count = 0, used = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i].ms >= min_ms && all[i].ms <= max_ms)
            fit[count++] = all[i].word;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        const char *before = i == 0 ? ", such as " : i + 1 < count ? ", " : " or ";

        used += (size_t)snprintf(text + used, size - used, "%s%s", before, fit[i]);
    }
    return text;
}

int ini_parse_duration_ms(const char *value, long min_ms, long max_ms, long *out, struct err *err)
{
    char *end;
    double number, ms;
    char from[32], to[32], such[64];

    number = strtod(value, &end);
    ms = round(number * (double)unit_ms(end));
    if (*value < '0' || *value > '9' || strspn(value, "0123456789.") != (size_t)(end - value) || unit_ms(end) == 0 ||
        ms < (double)min_ms || ms > (double)max_ms)
        return err_set(err, -EINVAL, "must be a time from %s to %s%s", in_words(min_ms, from, sizeof(from)),
                       in_words(max_ms, to, sizeof(to)), examples(min_ms, max_ms, such, sizeof(such)));
    *out = (long)ms;
    return 0;
}

int ini_parse_bool(const char *value, int *out, struct err *err)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (strcmp(value, words[i]) == 0) {
            *out = (int)(i % 2);
            return 0;
        }
    }
    return err_set(err, -EINVAL, "must be yes or no");
}
