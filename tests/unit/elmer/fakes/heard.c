#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/elmer/fakes/heard.h"

static struct one {
    int link;
    bool looked_at;
    struct wire_message message;
} all[HEARD_MAX];
static size_t count;

/* A message that owns what it points to. */
static void copy(const struct wire_message *from, struct wire_message *to)
{
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    if (wire_encode(from, WIRE_MINOR, &json, &size, &err) || wire_decode(json, size, WIRE_MINOR, to, &err))
        fail_msg("%s", err.text);
    free(json);
}

void heard_put(int link, const struct wire_message *message)
{
    assert_true(count < HEARD_MAX);
    all[count] = (struct one){.link = link};
    copy(message, &all[count++].message);
}

void links_heard(size_t link, const struct wire_message *message)
{
    heard_put((int)link, message);
}

const struct wire_message *heard(int link, enum wire_type type)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].looked_at || all[i].link != link || all[i].message.type != type)
            continue;
        all[i].looked_at = true;
        return &all[i].message;
    }
    fail_msg("no %s over link %d", wire_type_name(type), link);
    return NULL;
}

size_t heard_count(int link, enum wire_type type)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += !all[i].looked_at && all[i].link == link && all[i].message.type == type;
    return found;
}

const char *heard_error(int link, const char *words)
{
    const struct wire_message *message = heard(link, WIRE_error);
    if (!strstr(message->u.error.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", message->u.error.text, words);
    return message->u.error.code;
}

void heard_nothing(void)
{
    for (size_t i = 0; i < count; i++)
        if (!all[i].looked_at)
            fail_msg("a %s over link %d", wire_type_name(all[i].message.type), all[i].link);
}

void heard_forget(void)
{
    for (size_t i = 0; i < count; i++)
        wire_message_fini(&all[i].message);
    count = 0;
}

void say(int link, const struct wire_message *message)
{
    struct wire_message taken;
    assert_true(link >= 0);
    copy(message, &taken);
    links_say((size_t)link, &taken);
}
