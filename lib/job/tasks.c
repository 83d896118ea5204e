#include "lib/job/tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int refuse(char why[TASKS_WHY], const char *text, const char *what)
{
    snprintf(why, TASKS_WHY, "'%.40s' %s", text, what);
    return -1;
}

/* What is wrong where more can be said than how it looks. */
static const char *wrong(const char **fault, const char *what)
{
    *fault = what;
    return NULL;
}

/* Without signs, blanks and zeros in front. NULL: there is none. */
static const char *take_number(const char *text, uint32_t *number, const char **fault)
{
    uint64_t value = 0;

    if (*text < '0' || *text > '9')
        return NULL;
    if (*text == '0' && text[1] >= '0' && text[1] <= '9')
        return wrong(fault, "has a number with zeros in front: leave them out");
    for (; *text >= '0' && *text <= '9'; text++) {
        value = 10 * value + (uint64_t)(*text - '0');
        if (value > TASKS_INDEX_MAX)
            return wrong(fault, "has a number above 2000000000");
    }
    *number = (uint32_t)value;
    return text;
}

/* Behind it, or NULL. */
static const char *take_range(const char *text, struct tasks_range *range, const char **fault)
{
    uint32_t last, step = 1;

    if (!*text)
        return wrong(fault, "has nothing behind its last comma");
    text = take_number(text, &range->first, fault);
    if (!text)
        return NULL;
    last = range->first;
    if (*text == '-') {
        text = take_number(text + 1, &last, fault);
        if (text && *text == ':')
            text = take_number(text + 1, &step, fault);
    }
    if (!text)
        return NULL;
    if (last < range->first)
        return wrong(fault, "has a range that ends before it begins: the smaller index comes first");
    if (step == 0)
        return wrong(fault, "has a step of 0: want 1 or more");
    range->count = (last - range->first) / step + 1;
    range->step = range->count > 1 ? step : 1;
    return text;
}

static uint32_t last_of(const struct tasks_range *range)
{
    return range->first + (range->count - 1) * range->step;
}

/* At most TASKS_MAX in all, so that no sum overflows. */
static int add(struct tasks *tasks, const struct tasks_range *range, const char *text, char why[TASKS_WHY])
{
    if (tasks->nranges == TASKS_RANGES_MAX)
        return refuse(why, text, "has more than 256 numbers and ranges: make a file of them, see --array-file");
    if (tasks->nranges > 0 && range->first <= last_of(&tasks->ranges[tasks->nranges - 1]))
        return refuse(why, text, "does not grow: each number and range is to be behind the one before");
    if (range->count > TASKS_MAX - tasks->count)
        return refuse(why, text, "has more than 100000 tasks: make several arrays of it");
    tasks->ranges[tasks->nranges++] = *range;
    tasks->count += range->count;
    return 0;
}

int tasks_parse(const char *text, bool limited, struct tasks *tasks, char why[TASKS_WHY])
{
    const char *fault = limited ? "is not of the form 1-1000, 0-99:3 or 1,4,7-9, with %8 behind it for 8 at a time"
                                : "is not of the form 1-1000, 0-99:3 or 1,4,7-9";
    const char *at = text;
    struct tasks_range range;

    tasks->count = tasks->limit = tasks->nranges = 0;
    if (strlen(text) > TASKS_TEXT_MAX)
        return refuse(why, text, "is longer than 1000 bytes");
    if (!*text)
        return refuse(why, text, fault);
    do {
        at = take_range(at == text ? at : at + 1, &range, &fault);
        if (!at)
            return refuse(why, text, fault);
        if (add(tasks, &range, text, why) < 0)
            return -1;
    } while (*at == ',');
    if (limited && *at == '%') {
        fault = "has no number behind %: want how many tasks may run at a time, like 1-1000%8";
        at = take_number(at + 1, &tasks->limit, &fault);
        if (!at || tasks->limit == 0)
            return refuse(why, text, at ? "lets no task run: want 1 or more behind %" : fault);
    }
    return *at == '\0' ? 0 : refuse(why, text, "has something behind its tasks; want 1-1000, 0-99:3 or 1,4,7-9");
}

uint32_t tasks_index(const struct tasks *tasks, uint32_t ordinal)
{
    const struct tasks_range *range = tasks->ranges;

    for (; ordinal >= range->count; range++)
        ordinal -= range->count;
    return range->first + ordinal * range->step;
}

int64_t tasks_ordinal(const struct tasks *tasks, uint32_t index)
{
    uint32_t before = 0;

    for (uint32_t i = 0; i < tasks->nranges; i++) {
        const struct tasks_range *range = &tasks->ranges[i];
        if (index >= range->first && index <= last_of(range))
            return (index - range->first) % range->step == 0 ? (int64_t)before + (index - range->first) / range->step
                                                             : -1;
        before += range->count;
    }
    return -1;
}

static size_t put_range(const struct tasks_range *range, char *text, size_t used, size_t size)
{
    char piece[TASKS_RANGE_TEXT];
    const char *comma = used > 0 ? "," : "";
    int length;

    if (range->count == 1)
        length = snprintf(piece, sizeof(piece), "%s%" PRIu32, comma, range->first);
    else if (range->step == 1)
        length = snprintf(piece, sizeof(piece), "%s%" PRIu32 "-%" PRIu32, comma, range->first, last_of(range));
    else
        length = snprintf(piece, sizeof(piece), "%s%" PRIu32 "-%" PRIu32 ":%" PRIu32, comma, range->first,
                          last_of(range), range->step);
    if (used + (size_t)length + sizeof("..") > size) {
        if (used >= 2 && strcmp(text + used - 2, "..") == 0)
            return used;
        return used + (size_t)snprintf(text + used, size - used, "..");
    }
    memcpy(text + used, piece, (size_t)length + 1);
    return used + (size_t)length;
}

size_t tasks_text(const struct tasks *tasks, uint32_t from, uint32_t to, char *text, size_t used, size_t size)
{
    uint32_t before = 0;

    for (uint32_t i = 0; i < tasks->nranges && before < to; i++) {
        const struct tasks_range *range = &tasks->ranges[i];
        uint32_t begin = from > before ? from - before : 0,
                 end = to - before < range->count ? to - before : range->count;
        struct tasks_range part = {.first = range->first + begin * range->step, .step = range->step};
        if (begin < end) {
            part.count = end - begin;
            used = put_range(&part, text, used, size);
        }
        before += range->count;
    }
    return used;
}
