#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/config_doc.h"

enum { TEXT_BYTES = 16384 };

struct page {
    const char *name;
    const struct ini_key *keys;
    char section[64], key[64];
    char text[TEXT_BYTES]; /* of the key */
    bool seen[100];
    int faults;
};

static void fault(struct page *page, const char *what, const char *name)
{
    print_error("%s: %s: %s\n", page->name, name, what);
    page->faults++;
}

static void append(struct page *page, const char *word)
{
    size_t used = strlen(page->text);
    bool glued = used == 0 || strspn(word, ".,;:") == strlen(word);

    (void)snprintf(page->text + used, sizeof(page->text) - used, "%s%s", glued ? "" : " ", word);
}

/* A line of a macro, as a reader sees it. */
static void append_macro(struct page *page, char *line)
{
    char *rest = NULL, *macro = strtok_r(line, " ", &rest), *word = strtok_r(NULL, " ", &rest);

    if (strcmp(macro, ".Xr") == 0 && word) {
        char reference[100];

        (void)snprintf(reference, sizeof(reference), "%s(%s)", word, strtok_r(NULL, " ", &rest));
        append(page, reference);
        word = strtok_r(NULL, " ", &rest);
    }
    for (; word; word = strtok_r(NULL, " ", &rest))
        append(page, word);
}

/* A path that was chosen when Elmer was built has at least the same name. */
static bool same(const struct ini_key *key, const char *said)
{
    size_t length = strlen(key->normal);
    const char *slash = strrchr(key->normal, '/');
    char word[256] = "";

    if (!(key->flags & INI_BUILT))
        return strncmp(said, key->normal, length) == 0 && strspn(said + length, " .,;") > 0;
    (void)sscanf(said, "%255[^ ,;]", word);
    if (word[0] != '\0' && word[strlen(word) - 1] == '.')
        word[strlen(word) - 1] = '\0';
    return !slash || (word[0] == '/' && strcmp(strrchr(word, '/'), slash) == 0);
}

static void end_key(struct page *page)
{
    size_t i = 0;

    if (page->key[0] == '\0')
        return;
    while (page->keys[i].name &&
           (strcmp(page->keys[i].name, page->key) != 0 || strcmp(page->keys[i].section, page->section) != 0))
        i++;
    if (!page->keys[i].name || !page->keys[i].normal) {
        fault(page, "there is no such key", page->key);
    } else {
        const char *said = strstr(page->text, "Default: ");

        page->seen[i] = true;
        if (!said)
            fault(page, "its default is missing", page->key);
        else if (!same(&page->keys[i], said + strlen("Default: ")))
            fault(page, page->keys[i].normal, page->key);
    }
    page->key[0] = page->text[0] = '\0';
}

static void take_line(struct page *page, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, ".It", 3) == 0 || strncmp(line, ".S", 2) == 0 || strcmp(line, ".El") == 0)
        end_key(page);
    if (strncmp(line, ".S", 2) == 0) {
        page->section[0] = '\0';
        if (sscanf(line, ".Ss Section %59s", page->section) == 1 && strstr(line, " Ar "))
            (void)strncat(page->section, " *", 3);
    } else if (strncmp(line, ".It", 3) == 0 && page->section[0] != '\0') {
        (void)sscanf(line, ".It Li %63s", page->key);
    } else if (page->key[0] != '\0' && line[0] == '.') {
        append_macro(page, line);
    } else if (page->key[0] != '\0') {
        append(page, line);
    }
}

void config_doc_check(const char *name, const struct ini_key *keys)
{
    static struct page page;
    char path[4096], line[1024];
    FILE *file;

    page = (struct page){.name = name, .keys = keys};
    (void)snprintf(path, sizeof(path), "%s/%s", TOP_SRCDIR, name);
    file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s", path);
    while (fgets(line, sizeof(line), file))
        take_line(&page, line);
    end_key(&page);
    (void)fclose(file);
    for (size_t i = 0; keys[i].name; i++) {
        assert_true(i < sizeof(page.seen));
        if (keys[i].normal && !page.seen[i])
            fault(&page, "the page does not have it", keys[i].name);
    }
    assert_int_equal(page.faults, 0);
}
