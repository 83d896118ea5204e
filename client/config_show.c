#include "config.h"

#include "client/config_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "elmer/settings.h"
#include "lib/base/str.h"
#include "rsd/config.h"

enum { COLUMN = 44 }; /* of the comments */

/* What a file says of a key. */
struct given {
    const struct ini_key *key;
    char *subsection, *value, *place;
};

struct show {
    struct given *given;
    size_t count;
    bool wrong;
};

static void on_problem(const char *text, void *data)
{
    ((struct show *)data)->wrong = true;
    say("%s", text);
}

/* It is not in force, and what is can be shown. */
static void on_fault(const char *text, void *data)
{
    (void)data;
    say("%s", text);
}

static void on_given(const struct ini_value *value, void *data)
{
    struct show *show = data;

    if (value->refused)
        return;
    show->given = must(reallocarray(show->given, show->count + 1, sizeof(*show->given)));
    show->given[show->count++] = (struct given){.key = value->key,
                                                .subsection = must(strdup(value->subsection)),
                                                .value = must(strdup(value->value)),
                                                .place = must(str_format("%s:%d", value->file, value->line))};
}

static void show_fini(struct show *show)
{
    for (size_t i = 0; i < show->count; i++) {
        free(show->given[i].subsection);
        free(show->given[i].value);
        free(show->given[i].place);
    }
    free(show->given);
}

/* ---- lines ---- */

/* said: the value could stand in a file. */
static void print_line(bool said, const char *name, const char *value, const char *from)
{
    char *clean = printable(value);
    int width = printf("%s%s = %s", said ? "" : "# ", name, clean);

    printf("%*s ; %s\n", width < COLUMN ? COLUMN - width : 0, "", from);
    free(clean);
}

static void print_default(const struct ini_key *key, const void *config)
{
    char *made = config && key->made ? key->made(config) : NULL;

    print_line(made || !(key->flags & INI_WORDS), key->name, made ? made : key->normal,
               key->flags & INI_BUILT ? "compiled in" : "default");
    free(made);
}

static const struct given *find(const struct show *show, const struct ini_key *key)
{
    for (size_t i = 0; i < show->count; i++)
        if (show->given[i].key == key)
            return &show->given[i];
    return NULL;
}

/* A section like [host NAME] has what the files say, each NAME once. */
static bool first_of_section(const struct show *show, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(show->given[i].subsection, show->given[at].subsection) == 0 && show->given[i].subsection[0])
            return false;
    return show->given[at].subsection[0] != 0;
}

static void print_subsections(const struct show *show)
{
    for (size_t i = 0; i < show->count; i++) {
        if (!first_of_section(show, i))
            continue;
        char *clean = printable(show->given[i].subsection);

        printf("\n[%.*s %s]\n", (int)strcspn(show->given[i].key->section, " "), show->given[i].key->section, clean);
        free(clean);
        for (size_t k = i; k < show->count; k++)
            if (strcmp(show->given[k].subsection, show->given[i].subsection) == 0)
                print_line(true, show->given[k].key->name, show->given[k].value, show->given[k].place);
    }
}

/* Of a section like [host NAME], only what the files say; config NULL: the defaults, with words for that section. */
static void print_all(const struct show *show, const struct ini_key *keys, const void *config)
{
    const char *section = "";

    for (const struct ini_key *key = keys; key->name; key++) {
        const struct given *given = find(show, key);

        if (!key->normal || (config && strchr(key->section, '*')))
            continue;
        if (strcmp(section, key->section) != 0) {
            printf("%s[%s]\n", *section ? "\n" : "", key->section);
            section = key->section;
        }
        if (given)
            print_line(true, key->name, given->value, given->place);
        else
            print_default(key, config);
    }
    if (config)
        print_subsections(show);
}

/* ---- the files ---- */

int config_show_elmer(const char *path, bool required, bool defaults)
{
    struct show show = {.count = 0};
    struct ini_watch watch = {.problem = on_problem, .fault = on_fault, .given = on_given, .data = &show};
    struct settings settings = {0};
    struct err err = ERR_INIT;

    if (!defaults && settings_load_watched(&settings, path, required, &watch, &err) != 0 && !show.wrong)
        on_problem(err.text, &show);
    if (!show.wrong)
        print_all(&show, settings_keys, defaults ? NULL : &settings);
    settings_fini(&settings);
    show_fini(&show);
    return show.wrong ? EXIT_REFUSED : EXIT_DONE;
}

int config_show_rsd(const char *path, bool required, bool defaults)
{
    static struct rsd_config config; /* large */
    struct show show = {.count = 0};
    struct ini_watch watch = {.problem = on_problem, .fault = on_fault, .given = on_given, .data = &show};
    struct err err = ERR_INIT;

    rsd_config_default(&config);
    if (!defaults)
        (void)rsd_config_read(&config, path, !required, &watch, &err);
    if (!show.wrong)
        print_all(&show, rsd_config_keys, defaults ? NULL : &config);
    show_fini(&show);
    return show.wrong ? EXIT_REFUSED : EXIT_DONE;
}
