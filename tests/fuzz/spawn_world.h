/* spawn_world.h - the kernel as elmer-spawn meets it in fuzz_spawn.c: descriptors, processes and files that are none. A
 * process that it makes is either not looked at, or all that is: then it is followed to its exec or its end. */
#ifndef ELMER_TESTS_FUZZ_SPAWN_WORLD_H
#define ELMER_TESTS_FUZZ_SPAWN_WORLD_H

#include <setjmp.h>
#include <sys/types.h>

#include "tests/fuzz/fuzz.h"

extern jmp_buf spawn_world_end; /* where a process that it has made ends */
/* For the next request; what fails is drawn from the input. */
void spawn_world_begin(struct input *input);
void spawn_world_done(void); /* calls are the real ones again */
bool spawn_world_fails(void);
bool spawn_world_child(void); /* is what runs now a process that it has made? */
int spawn_world_open(void);   /* how many descriptors are, beside those that it was started with */
bool spawn_world_is_tmp(int fd);
void spawn_world_made(uid_t uid);

struct spawn_ids {
    uint32_t uid, gid, capabilities;
    int groups, open; /* open: that stay so; from 0 on, or 1000 more */
    uint32_t made;    /* a directory was, for this uid */
    int given;        /* files that were given to elmer-sup */
    bool leaf;        /* it is in the leaf that was opened last */
};

/* ---- what fuzz_spawn.c knows: it judges, and feeds ---- */

void spawn_world_birth(void);
void spawn_world_group(const char *path, int flags);
void spawn_world_file(const char *path, int flags);
void spawn_world_exec(const char *path, const struct spawn_ids *ids);
bool spawn_world_grant(void *data, size_t size);
int spawn_world_grants(void); /* as poll(2) says it */
size_t spawn_world_request(void *data, size_t size, int *fds);
void spawn_world_answer(const void *data, size_t size, bool pidfd);

#endif
