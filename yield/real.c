#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "yield/yield.h"

enum { OBJECTS_MAX = 4096 };

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

void *yield_real(void **kept, const char *name, const void *self, const void *caller)
{
    void *found = __atomic_load_n(kept, __ATOMIC_RELAXED);
    Dl_info info;
    if (found)
        return found;
    found = dlsym(RTLD_NEXT, name);
    if (found == self)
        found = NULL;
    if (!found && dladdr(caller, &info) && info.dli_fname)
        found = of_library(info.dli_fname, name, self);
    if (!found) /* a call at a function's end comes from its caller */
        found = of_anybody(name, self);
    if (!found)
        abort();
    __atomic_store_n(kept, found, __ATOMIC_RELAXED);
    return found;
}

int64_t yield_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
