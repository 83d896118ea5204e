/* known_leaks.c - what LeakSanitizer must not say of a PVM program: libpvm3 keeps the names of its routes for ever. */
#include "config.h"

const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libpvm3\n";
}

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
