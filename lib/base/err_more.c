#include "config.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"

void err_prefix(struct err *err, const char *format, ...)
{
    char old[sizeof(err->text)];
    va_list args;
    size_t used;

    if (!err)
        return;
    memcpy(old, err->text, sizeof(old));
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    used = strlen(err->text);
    /* A text that does not fit is cut; the front is what a reader needs. */
    (void)snprintf(err->text + used, sizeof(err->text) - used, ": %.*s", (int)sizeof(old) - 1, old);
}

void err_clear(struct err *err)
{
    if (err)
        err->text[0] = '\0';
}
