/* real.c - the functions that a program would have called without us.
 *
 * A program with a loader and a C library of its own (Nix, Guix, Spack) gets us too, and does not start if that library
 * lacks a version that we name. So we name none above that of 2012, which tests/lint/yield-symbols guards: of what is
 * newer here, dlsym() and its like, we take the old version. In a C library of before 2.34 they are in another library
 * that a program may have or not, therefore weak. Then nothing of it has been loaded by dlopen() either.
 */
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "yield/yield.h"

#if defined(__x86_64__) && defined(__LP64__)
#define OLD(name) __asm__(".symver " #name ", " #name "@GLIBC_2.2.5")
#elif defined(__aarch64__)
#define OLD(name) __asm__(".symver " #name ", " #name "@GLIBC_2.17")
#else
#define OLD(name) _Static_assert(1, "whatever it is here")
#endif
OLD(dlsym);
OLD(dlopen);
OLD(dlclose);
OLD(dladdr);
#pragma weak dlsym
#pragma weak dlopen
#pragma weak dlclose
#pragma weak dladdr

enum { OBJECTS_MAX = 4096, MEASURED = 8 };

static void *of_library(const char *path, const char *name, const void *self)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *found;
    if (!library)
        return NULL;
    found = dlsym(library, name);
    dlclose(library); /* somebody uses it */
    return found == self ? NULL : found;
}

struct object {
    int number;
    char path[4096];
};

static int name_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct object *object = data;
    (void)size;
    if (object->number-- > 0)
        return 0;
    snprintf(object->path, sizeof(object->path), "%s", info->dlpi_name);
    return 1;
}

/* One after the other: nothing may be opened while all are gone through. */
static void *of_anybody(const char *name, const void *self)
{
    struct object object;
    void *found = NULL;
    for (int i = 0; i < OBJECTS_MAX && !found; i++) {
        object.number = i;
        if (dl_iterate_phdr(name_object, &object) == 0)
            return NULL;
        if (object.path[0])
            found = of_library(object.path, name, self);
    }
    return found;
}

static bool may_look(void)
{
    return dlsym && dlopen && dlclose && dladdr;
}

void *yield_next(const char *name, void *otherwise)
{
    void *found = may_look() ? dlsym(RTLD_NEXT, name) : NULL;
    return found ? found : otherwise;
}

void *yield_known(const char *name)
{
    return may_look() ? dlsym(RTLD_DEFAULT, name) : NULL;
}

void *yield_real(void **kept, const char *name, const void *self, const void *caller)
{
    void *found = __atomic_load_n(kept, __ATOMIC_RELAXED);
    Dl_info info;
    if (found || !may_look())
        return found;
    found = dlsym(RTLD_NEXT, name);
    if (found == self)
        found = NULL;
    if (!found && dladdr(caller, &info) && info.dli_fname)
        found = of_library(info.dli_fname, name, self);
    if (!found) /* a call at a function's end comes from its caller */
        found = of_anybody(name, self);
    if (found)
        __atomic_store_n(kept, found, __ATOMIC_RELAXED);
    return found;
}

long yield_number(const char *text, long max)
{
    long number = 0;
    if (!text || !*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        number = number * 10 + (*text - '0');
        if (number > max)
            return -1;
    }
    return number;
}

int64_t yield_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The least of some: in one of them somebody else may have had the processor. */
static int64_t least_of_some(int64_t *kept, void (*call)(void))
{
    int64_t least = __atomic_load_n(kept, __ATOMIC_RELAXED), before, now;
    if (least > 0)
        return least;
    before = yield_now();
    for (int i = 0; i < MEASURED; i++) {
        if (call)
            call();
        now = yield_now();
        if (i == 0 || now - before < least)
            least = now - before;
        before = now;
    }
    least = least > 0 ? least : 1;
    __atomic_store_n(kept, least, __ATOMIC_RELAXED);
    return least;
}

int64_t yield_clock_ns(void)
{
    static int64_t kept;
    return least_of_some(&kept, NULL);
}

/* One that does nothing, and that no library answers by itself. */
static void call(void)
{
    (void)getppid();
}

int64_t yield_call_ns(void)
{
    static int64_t kept;
    return least_of_some(&kept, call);
}
