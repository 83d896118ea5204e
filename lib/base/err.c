#include "config.h"

#include "lib/base/err.h"

#include <stdio.h>

int(err_set)(struct err *err, int code, const char *format, ...)
{
    va_list args;

    if (!err || err->text[0] != '\0')
        return code;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    return code;
}
