/* spawn_world_internal.h - what the files of the world share. */
#ifndef ELMER_TESTS_FUZZ_SPAWN_WORLD_INTERNAL_H
#define ELMER_TESTS_FUZZ_SPAWN_WORLD_INTERNAL_H

#include "rsd/root/spawn.h"
#include "tests/fuzz/spawn_world.h"

enum kind { CLOSED, LINE, GRANTS_IN, GROUPS, TMP, GROUP, PROCS, NUMBER, PIDFD, GIVEN, OTHER };
enum { FDS = 64, PIDS = 6, FIRST_PID = 100, CHILD = 4711 };
struct fd {
    enum kind kind;
    bool cloexec;
};

extern struct fd fds[FDS];
extern bool in_child, serving; /* serving: calls are the world's, not the kernel's */
extern struct input *bytes;
extern struct spawn_ids ids; /* who the child is */

int open_fd(enum kind kind, bool cloexec, int from);
enum kind kind_of(int fd);

#endif
