/* hello.c - version and capabilities, exchanged before anything else. The hello of every version has the fields of
 * minor 0. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/channel.h"
#include "lib/wire/table.h"

void wire_hello_fill(struct wire_message *message, const char *program)
{
    *message = (struct wire_message){.type = WIRE_hello};
    message->u.hello.program = program;
    message->u.hello.major = WIRE_MAJOR;
    message->u.hello.minor = WIRE_MINOR;
}

int wire_hello_check(const struct wire_hello *hello, struct err *err)
{
    const uint64_t ours = WIRE_MINOR;
    char program[64];

    if (hello->major != WIRE_MAJOR)
        return err_set(
            err, -EPROTONOSUPPORT,
            "%s speaks version %u of Elmer's protocol and this program version %d; install the same version of "
            "Elmer on both hosts",
            str_printable(program, sizeof(program), hello->program, strlen(hello->program)), (unsigned)hello->major,
            WIRE_MAJOR);
    return (int)(hello->minor < ours ? hello->minor : ours);
}

/* Whether the field has a value other than false, 0, "" or an empty list. */
static bool is_said(const struct wire_field *field, const void *at)
{
    switch (field->kind) {
    case WIRE_KIND_BOOL:
        return *(const bool *)at;
    case WIRE_KIND_UINT:
        return *(const uint64_t *)at != 0;
    case WIRE_KIND_INT:
        return *(const int64_t *)at != 0;
    case WIRE_KIND_DOUBLE:
        return *(const double *)at != 0;
    case WIRE_KIND_STR:
        return *(const char *const *)at && **(const char *const *)at != '\0';
    case WIRE_KIND_STRS:
    case WIRE_KIND_UINTS:
    case WIRE_KIND_DOUBLES:
    case WIRE_KIND_LIST:
        return ((const struct wire_list *)at)->count > 0;
    case WIRE_KIND_COUNT:
        break;
    }
    abort();
}

unsigned wire_minor_said(const struct wire_message *message)
{
    const struct wire_object *object = wire_table_message(message->type);
    unsigned minor = object->since;

    for (const struct wire_field *field = object->fields(); field->name; field++)
        if (field->since > minor && is_said(field, (const char *)&message->u + field->offset))
            minor = field->since;
    return minor;
}

static bool is_same(const struct wire_object *object, unsigned low, unsigned high)
{
    for (const struct wire_field *field = object->fields(); field->name; field++)
        if ((field->since > low && field->since <= high) || (field->object && !is_same(field->object, low, high)))
            return false;
    return true;
}

bool wire_is_same(enum wire_type type, unsigned minor, unsigned other)
{
    const struct wire_object *object = wire_table_message(type);
    unsigned low = minor < other ? minor : other, high = minor < other ? other : minor;

    return object->since <= low && is_same(object, low, high);
}

/* The option of esubmit that sets the field. */
static const char *option_of(const char *field)
{
    static const char *const options[][2] = {
        {"mesh_rows", "mesh"},        {"time_limit_ms", "time"},
        {"cpu_limit_ms", "cpu-time"}, {"limit_requeue", "requeue=limit"},
        {"warning_signal", "signal"}, {"warning_ms", "signal"},
        {"keep_never", "if-never"},   {"tasks", "array"},
        {"lines", "array-file"},      {"memory_bytes", "memory"},
        {"per_host", "per-host"},     {"terminal", "pty"},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strcmp(field, options[i][0]) == 0)
            return options[i][1];
    return field;
}

/* Those whose fields of later versions change what is done, so that they must not be left out in silence. */
static bool must_be_said(enum wire_type type)
{
    return type == WIRE_submit || type == WIRE_rehearse || type == WIRE_cancel || type == WIRE_kill ||
           type == WIRE_hold || type == WIRE_release || type == WIRE_top;
}

int wire_check_said(const struct wire_message *message, unsigned minor, struct err *err)
{
    const struct wire_field *field;
    bool submits = message->type == WIRE_submit || message->type == WIRE_rehearse;

    if (!must_be_said(message->type))
        return 0;
    for (field = wire_table_message(submits ? WIRE_submit : message->type)->fields(); field->name; field++)
        if (field->since > minor && strcmp(field->name, "ticket") != 0 && strcmp(field->name, "reason") != 0 &&
            is_said(field, (const char *)&message->u + field->offset))
            return err_set(err, -EPROTONOSUPPORT,
                           "%s%s: the other side speaks version %d.%u of Elmer's protocol, and %s came with %d.%u: "
                           "install the newer Elmer there too",
                           submits ? "--" : "", submits ? option_of(field->name) : "tasks of an array", WIRE_MAJOR,
                           minor, submits ? "this option" : "they", WIRE_MAJOR, field->since);
    return 0;
}
