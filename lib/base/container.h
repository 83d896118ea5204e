/* container.h - from a member to the object that it is in. */
#ifndef LIB_BASE_CONTAINER_H
#define LIB_BASE_CONTAINER_H

#include <stddef.h>

#define CONTAINER_OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
