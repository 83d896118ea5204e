/* hello.c - version and capabilities, exchanged before anything else. The hello of every version has the fields of
 * minor 0. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/channel.h"

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
            str_printable(program, sizeof program, hello->program, strlen(hello->program)), (unsigned)hello->major,
            WIRE_MAJOR);
    return (int)(hello->minor < ours ? hello->minor : ours);
}

int wire_check_said(const struct wire_message *message, unsigned minor, struct err *err)
{
    if (message->type != WIRE_submit || !message->u.submit.requeue || minor >= WIRE_LEASE_MINOR)
        return 0;
    return err_set(
        err, -EPROTONOSUPPORT,
        "--requeue: the other side speaks version %d.%u of Elmer's protocol, and this option came with %d.%d: "
        "install the newer Elmer there too",
        WIRE_MAJOR, minor, WIRE_MAJOR, WIRE_LEASE_MINOR);
}
