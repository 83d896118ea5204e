#include "config.h"

#include "client/after.h"

#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "lib/job/after.h"

bool after_add(struct after_option *option, const char *list)
{
    const char *rest = list, *item;
    char why[AFTER_WHY], text[AFTER_TEXT];
    struct after after;

    while (rest) {
        size_t length = after_next(&rest, &item);
        char *copy = must(strndup(item, length));
        int result = after_parse(copy, &after, why);

        free(copy);
        if (result < 0) {
            usage_error("--after: %s", why);
            return false;
        }
        if (option->count == AFTER_MAX) {
            usage_error("--after: a job can wait for %d others, not for more", AFTER_MAX);
            return false;
        }
        after_text(&after, text);
        option->items = must(reallocarray(option->items, (size_t)option->count + 2, sizeof(char *)));
        option->items[option->count++] = must(strdup(text));
        option->items[option->count] = NULL;
    }
    return true;
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
