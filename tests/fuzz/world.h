/* world.h - a kernel for programs that live on poll(2): sockets, pipes, children and time, all made of the input.
 *
 * Linked with the wraps that Makemodule.am names. A descriptor of the world is a number from WORLD_FD on; no file is
 * touched, no process started, no signal sent. The target says in world_poll() what happens next; whatever the program
 * under test sends is taken apart again: every frame must be a message that its side may send. Each use of a descriptor
 * that is not open, and each one left open at the end, is an error. */
#ifndef ELMER_TESTS_FUZZ_WORLD_H
#define ELMER_TESTS_FUZZ_WORLD_H

#include <poll.h>
#include <stdbool.h>

#include "tests/fuzz/fuzz.h"

enum { WORLD_FD = 1 << 20, WORLD_FDS = 256 };

enum world_kind { WORLD_CLOSED, WORLD_SOCKET, WORLD_PIPE, WORLD_LISTENER, WORLD_SIGNALS, WORLD_CHILDREN, WORLD_OTHER };

/* role: who the program under test is to its peers (a WIRE_FROM_ bit). */
void world_begin(struct input *input, unsigned role);
void world_end(void); /* everything must be closed */

int world_open(enum world_kind kind); /* a new descriptor; -1: too many */
bool world_has(int fd);               /* it is of the world, and open */
enum world_kind world_kind(int fd);
/* The n-th open one of that kind, counted round; -1: none. */
int world_pick(enum world_kind kind, size_t n);
/* Bytes, a message as a frame, or the end, for the program to read. Nothing on a closed one. */
void world_feed(int fd, const void *bytes, size_t size);
void world_feed_message(int fd, const struct wire_message *message);
void world_feed_end(int fd);
bool world_readable(int fd);
/* The socket takes nothing any more: EAGAIN, or, broken, EPIPE. */
void world_clog(int fd, bool broken);
bool world_writable(int fd); /* as poll(2) sees it */

/* Who connects from now on; until then it is the program's own user, or 2001. */
void world_come_as(uint32_t uid);

int64_t world_now_ms(void);
void world_pass_ms(int64_t ms);
/* A child has ended, and (told) the reaper says so; or has stopped. */
void world_child_ends(int pid, int status, bool told);
int world_new_pid(void);
/* Should the next call that can fail do so? Drawn from the input; false when that is used up. */
bool world_fails(void);
struct input *world_input(void);

/* Of the target: poll(2). Fills revents in and returns how many are set. */
int world_poll(struct pollfd *fds, size_t count, int timeout_ms);
/* Of the target: the program has sent a message (it is freed afterwards). */
void world_heard(int fd, const struct wire_message *message);

#endif
