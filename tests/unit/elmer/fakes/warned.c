/* warned.c - see warned.h. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elmer/fakes/warned.h"

char warned[1000];

void __wrap_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_log_warning(const char *format, ...)
{
    size_t used = strlen(warned);
    va_list list;
    va_start(list, format);
    vsnprintf(warned + used, sizeof(warned) - used, format, list);
    va_end(list);
}
