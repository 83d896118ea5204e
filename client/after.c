#include "config.h"

#include "client/after.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/refs.h"
#include "lib/job/after.h"

static bool add(struct after_option *option, const char *text)
{
    if (option->count == AFTER_MAX) {
        usage_error(
            "--after: a job can wait for %d others, not for more; name an array as a whole, like ok:57, or let it "
            "wait for jobs that wait for some of these each",
            AFTER_MAX);
        return false;
    }
    option->items = must(reallocarray(option->items, (size_t)option->count + 2, sizeof(char *)));
    option->items[option->count++] = must(strdup(text));
    option->items[option->count] = NULL;
    return true;
}

/* Behind its kind, if it has one: indices have a colon, too. */
static const char *ref_of(const char *item)
{
    size_t kind = strcspn(item, ":[");

    return item[kind] == ':' ? item + kind + 1 : item;
}

/* "ok:57[3-9]": stays as it is until elmer can be asked for the ids. All of an array, "57[*]", is the array. */
static bool add_tasks(struct after_option *option, char *item)
{
    struct ref ref;
    bool all;

    if (!ref_parse(ref_of(item), &ref))
        return false;
    all = strcmp(ref.tasks, "*") == 0;
    free(ref.tasks);
    if (all)
        *strchr(item, '[') = '\0';
    option->tasks = option->tasks || !all;
    return add(option, item);
}

bool after_add(struct after_option *option, const char *list)
{
    const char *rest = list, *item;
    char why[AFTER_WHY], text[AFTER_TEXT];
    struct after after;

    while (rest) {
        size_t length = after_next(&rest, &item);
        char *copy = must(strndup(item, length)), *bare = must(strndup(item, strcspn(copy, "[")));
        int result = after_parse(bare, &after, why);
        bool added = result == 0;

        if (result < 0) {
            usage_error("--after: %s", why);
        } else {
            after_text(&after, text);
            added = strchr(copy, '[') ? add_tasks(option, copy) : add(option, text);
        }
        free(bare);
        free(copy);
        if (!added)
            return false;
    }
    return true;
}

static int resolve(struct elmer *elmer, struct after_option *option, const char *item)
{
    char why[AFTER_WHY], text[AFTER_TEXT], *bare = must(strndup(item, strcspn(item, "[")));
    struct after after;
    struct ref ref;
    uint64_t *ids;
    size_t nids;
    int code = -1;

    if (after_parse(bare, &after, why) < 0 || !ref_parse(ref_of(item), &ref))
        code = EXIT_USAGE;
    free(bare);
    if (code >= 0)
        return code;
    code = refs_ids(elmer, &ref, 1, REFS_ONCE, &ids, &nids);
    for (size_t i = 0; i < nids && code < 0; i++) {
        after.job = ids[i];
        after_text(&after, text);
        code = add(option, text) ? -1 : EXIT_USAGE;
    }
    free(ids);
    free(ref.tasks);
    return code;
}

int after_resolve(struct elmer *elmer, struct after_option *option)
{
    struct after_option resolved = {NULL, 0, false};
    int code = -1;

    for (int i = 0; i < option->count && code < 0; i++)
        code = strchr(option->items[i], '[')      ? resolve(elmer, &resolved, option->items[i])
               : add(&resolved, option->items[i]) ? -1
                                                  : EXIT_USAGE;
    after_fini(option);
    *option = resolved;
    return code;
}

void after_fini(struct after_option *option)
{
    for (int i = 0; i < option->count; i++)
        free(option->items[i]);
    free(option->items);
}

bool after_if_never(const char *word, bool *keep)
{
    *keep = strcmp(word, "keep") == 0;
    if (*keep || strcmp(word, "cancel") == 0)
        return true;
    usage_error("--if-never %s: want cancel or keep", word);
    return false;
}
