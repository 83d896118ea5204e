/* fail.c - the end of a target whose property does not hold; libFuzzer keeps the input. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

_Noreturn void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "ERROR: %s:%d: %s does not hold: ", file, line, condition);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
