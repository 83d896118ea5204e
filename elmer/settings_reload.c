/* settings_reload.c - what has changed between the files as they were and as they are, and what of it counts at once.
 *
 * Of each key the text that counts is kept: what a file gives, or else the default. Two files are compared over the
 * table of keys, so a new key is compared as soon as it has a row there. A key with INI_LIVE is given to its set()
 * again; of any other one the old text stays, so each reload names it until elmer is started again. What a section says
 * of a host counts if the host is a new one. Where hosts are a cube, or will be, what depends on that needs a restart,
 * too. */
#include "config.h"

#include "elmer/settings_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory/mem.h"

/* From where the last one was found on: both files usually have the same order, and there may be 65535 hosts. */
static struct settings_given *find_given(struct settings *s, const struct ini_key *key, const char *sub, size_t *from)
{
    for (size_t n = 0; n < s->ngiven; n++) {
        size_t i = (*from + n) % s->ngiven;
        if (s->given[i].key == key && strcmp(s->given[i].sub, sub) == 0) {
            *from = i;
            return &s->given[i];
        }
    }
    return NULL;
}

void settings_remember(struct settings *s, const struct ini_key *key, const char *sub, const char *value)
{
    size_t capacity = s->ngiven;
    s->given = mem_grow(s->given, &capacity, s->ngiven + 1, sizeof(*s->given));
    s->given[s->ngiven++] = (struct settings_given){.key = key, .sub = mem_strdup(sub), .value = mem_strdup(value)};
}

void settings_forget_given(struct settings *s)
{
    for (size_t i = 0; i < s->ngiven; i++) {
        free(s->given[i].sub);
        free(s->given[i].value);
    }
    free(s->given);
    s->given = NULL;
    s->ngiven = 0;
}

/* malloc'd. What can be made from the settings has one form, however it is written. */
static char *value_of(struct settings *s, const struct ini_key *key, const char *sub, size_t *from)
{
    const struct settings_given *given = key->made ? NULL : find_given(s, key, sub, from);
    if (given)
        return mem_strdup(given->value);
    return key->made ? key->made(s) : mem_strdup(key->normal);
}

struct comparison {
    struct settings *running, *next;
    bool fixed; /* hosts, levels and allocators: a cube */
    size_t from_running, from_next;
    settings_changed changed;
    void *data;
};

static void take_over(struct comparison *c, const struct ini_key *key, const char *sub, const char *value)
{
    struct err err = ERR_INIT;
    int result = key->flags & INI_LIVE ? key->set(c->running, sub, value, &err) : 0;
    assert(!result); /* next has it already */
    (void)result;
    struct settings_given *given = find_given(c->running, key, sub, &c->from_running);
    if (given)
        settings_replace(&given->value, value);
    else
        settings_remember(c->running, key, sub, value);
}

static bool is_live(const struct comparison *c, const struct ini_key *key, const char *sub)
{
    static const char *const shaped[] = {"hosts", "levels", "allocator"};
    if (*sub)
        return !c->fixed && !settings_host(c->running, sub);
    for (size_t i = 0; c->fixed && i < sizeof(shaped) / sizeof(*shaped); i++)
        if (strcmp(key->name, shaped[i]) == 0)
            return false;
    return key->flags & (INI_LIVE | INI_LIVE_ELSEWHERE);
}

/* With its host a section goes; that the host goes is said of hosts. */
static bool is_gone(const struct comparison *c, const char *sub)
{
    return *sub && !settings_host(c->next, sub);
}

static void compare(struct comparison *c, const struct ini_key *key, const char *sub)
{
    char *was = value_of(c->running, key, sub, &c->from_running), *is = value_of(c->next, key, sub, &c->from_next);
    if (strcmp(was, is) != 0 && !is_gone(c, sub)) {
        bool live = is_live(c, key, sub);
        if (live)
            take_over(c, key, sub, is);
        c->changed(&(struct settings_change){key->name, sub, was, is, live}, c->data);
    }
    free(was);
    free(is);
}

void settings_adopt(struct settings *running, struct settings *next, settings_changed changed, void *data)
{
    struct comparison c = {.running = running, .next = next, .changed = changed, .data = data};
    c.fixed = running->core.topology == TOPOLOGY_CUBE || next->core.topology == TOPOLOGY_CUBE;
    for (const struct ini_key *key = settings_keys; key->name; key++)
        if (key->normal && !strchr(key->section, '*'))
            compare(&c, key, "");
    for (size_t i = 0; i < running->ngiven; i++)
        if (*running->given[i].sub)
            compare(&c, running->given[i].key, running->given[i].sub);
    for (size_t i = 0; i < next->ngiven; i++)
        if (*next->given[i].sub && !find_given(running, next->given[i].key, next->given[i].sub, &c.from_running))
            compare(&c, next->given[i].key, next->given[i].sub);
    running->core.fresh_ms = (int64_t)running->fresh_intervals * running->report_ms;
}
