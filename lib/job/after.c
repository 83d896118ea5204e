#include "lib/job/after.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const names[AFTER_KIND_COUNT] = {
    [AFTER_OK] = "ok", [AFTER_FAIL] = "fail", [AFTER_ANY] = "any", [AFTER_START] = "start"};

const char *after_kind_name(enum after_kind kind)
{
    return (unsigned)kind < AFTER_KIND_COUNT ? names[kind] : "unknown";
}

static int refuse(char why[AFTER_WHY], const char *item, const char *what)
{
    snprintf(why, AFTER_WHY, "'%.60s' %s", item, what);
    return -1;
}

/* The number of a job, without signs, blanks and zeros in front. */
static const char *take_id(const char *text, uint64_t *id)
{
    *id = 0;
    if (*text == '0')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (*id > (INT64_MAX - 9) / 10)
            return NULL;
        *id = 10 * *id + (uint64_t)(*text - '0');
    }
    return *id > 0 ? text : NULL;
}

int after_parse(const char *item, struct after *after, char why[AFTER_WHY])
{
    const char *colon = strchr(item, ':'), *rest;
    int kind = AFTER_OK;

    if (colon)
        for (kind = 0; kind < AFTER_KIND_COUNT; kind++)
            if (strlen(names[kind]) == (size_t)(colon - item) && strncmp(names[kind], item, strlen(names[kind])) == 0)
                break;
    if (kind == AFTER_KIND_COUNT)
        return refuse(why, item, "does not begin with ok:, fail:, any: or start:");
    rest = take_id(colon ? colon + 1 : item, &after->job);
    if (!rest)
        return refuse(why, item, "has no job id; want one as esubmit printed it, like ok:41");
    if (*rest == '[')
        return refuse(why, item, "names tasks of an array: want the array, or ids of its tasks, like ok:41");
    if (*rest != '\0')
        return refuse(why, item,
                      "has something behind the job id; want KIND:ID, separated by commas, like ok:41,any:42");
    after->kind = (enum after_kind)kind;
    return 0;
}

size_t after_next(const char **rest, const char **item)
{
    const char *end = *rest;

    *item = *rest;
    for (int depth = 0; *end != '\0' && (*end != ',' || depth > 0); end++)
        depth += (*end == '[') - (*end == ']' && depth > 0);
    *rest = *end == ',' ? end + 1 : NULL;
    return (size_t)(end - *item);
}

void after_text(const struct after *after, char text[AFTER_TEXT])
{
    snprintf(text, AFTER_TEXT, "%s:%" PRIu64, after_kind_name(after->kind), after->job);
}
