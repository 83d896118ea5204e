#include "config.h"

#include "rsd/sup/arguments.h"

#include <stdlib.h>
#include <string.h>

/* The text with its index, at `to`; NULL: only count. Returns its length, without the NUL. */
static size_t put(const char *text, const char *index, char *to)
{
    size_t length = 0, size = index ? strlen(index) : 0;
    while (*text) {
        bool braces = index && text[0] == '{' && text[1] == '}';
        const char *piece = braces ? index : text;
        size_t count = braces ? size : 1;
        if (to)
            memcpy(to + length, piece, count);
        length += count;
        text += braces ? 2 : 1;
    }
    return length;
}

char **arguments_make(const struct wire_strs *given, const char *index)
{
    size_t size = (given->count + 1) * sizeof(char *);
    char **arguments, *text;
    for (size_t i = 0; i < given->count; i++)
        size += put(given->items[i], index, NULL) + 1;
    arguments = calloc(1, size);
    text = arguments ? (char *)&arguments[given->count + 1] : NULL;
    for (size_t i = 0; arguments && i < given->count; i++) {
        arguments[i] = text;
        text += put(given->items[i], index, text) + 1;
    }
    return arguments;
}
