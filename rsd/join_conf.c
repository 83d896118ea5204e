#include <config.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rsd/join.h"

struct edit {
    FILE *out;
    const char *elmer, *name;
    bool in_rsd, done; /* done: ours are written */
};

static void write_keys(struct edit *edit)
{
    if (edit->done)
        return;
    edit->done = true;
    fprintf(edit->out, "elmer = %s\n", edit->elmer);
    if (edit->name)
        fprintf(edit->out, "name = %s\n", edit->name);
}

static const char *skip_space(const char *text)
{
    while (*text == ' ' || *text == '\t' || *text == '\r')
        text++;
    return text;
}

static bool is_word(const char *at, const char *word, char end)
{
    size_t length = strlen(word);

    return strncmp(at, word, length) == 0 && *skip_space(at + length) == end;
}

static bool replaced(const struct edit *edit, const char *line)
{
    return edit->in_rsd && (is_word(line, "elmer", '=') || (edit->name && is_word(line, "name", '=')));
}

static void take_line(struct edit *edit, const char *line)
{
    const char *begin = skip_space(line);

    if (replaced(edit, begin)) {
        if (is_word(begin, "elmer", '='))
            write_keys(edit);
        return;
    }
    fprintf(edit->out, "%s\n", line);
    if (*begin != '[')
        return;
    edit->in_rsd = is_word(skip_space(begin + 1), "rsd", ']');
}

/* Whether a key elmer of section rsd will come: then ours take its place, else they follow the header. */
static bool has_elmer(const char *text)
{
    bool in_rsd = false;

    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *begin = skip_space(line);

        if (*begin == '[')
            in_rsd = is_word(skip_space(begin + 1), "rsd", ']');
        else if (in_rsd && is_word(begin, "elmer", '='))
            return true;
    }
    return false;
}

char *join_conf_edit(const char *text, const char *elmer, const char *name)
{
    char *result = NULL, *copy = strdup(text ? text : ""), *rest = copy;
    size_t size = 0;
    struct edit edit = {.out = open_memstream(&result, &size), .elmer = elmer, .name = name};
    bool later = text && has_elmer(text);

    while (edit.out && rest && *rest) {
        take_line(&edit, strsep(&rest, "\n"));
        if (edit.in_rsd && !later)
            write_keys(&edit);
    }
    if (edit.out && !edit.done) {
        fprintf(edit.out, "[rsd]\n");
        write_keys(&edit);
    }
    free(copy);
    if (!edit.out || fclose(edit.out) != 0) {
        free(result);
        return NULL;
    }
    return result;
}
