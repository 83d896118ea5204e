/* service.h - a program that systemd starts: the sockets that it is given, what it says, and who is at the other end of
 * a socket. Without libsystemd, for programs that shall have little in them. */
#ifndef LIB_BASE_SERVICE_H
#define LIB_BASE_SERVICE_H

#include <sys/types.h>

#include "lib/base/err.h"

/* The units that others hear, and the exit status by which a program asks to be started anew. */
#define SERVICE_OF_RSD   "rsd.service"
#define SERVICE_OF_SPAWN "rsd-spawn.service"
enum { SERVICE_AGAIN = 75 };

/* The socket with this name (FileDescriptorName=) that we were started with, close-on-exec; -1: there is none. */
int service_listener(const char *name);
/* As sd_notify(3). Does nothing where no systemd listens. */
void service_notify(const char *text);
/* How often to say WATCHDOG=1, in milliseconds: a third of what systemd waits; 0: it does not. */
int service_watchdog_ms(void);
/* Say it if it is time for that. Returns in how many milliseconds to call again, as poll(2) wants it; -1: never. */
int service_alive(void);

/* What a unit is to do, written by root before it gave up being root, so that nobody who has taken its program since
 * can say anything else: a struct of these bytes in dir, which is root's; there at once and whole. 0 or -errno. */
int service_plan_write(const char *dir, const char *name, const void *plan, size_t size);
/* 0; -EPERM: it is not this user's; -EPROTO: not of this size, as that of another build is not; -errno. */
int service_plan_read(const char *path, uid_t owner, void *plan, size_t size);

/* Take a connection from a listening socket: close-on-exec, blocking. Its other end must be root or this user, as the
 * kernel says, and a process of this unit, which must be a sibling of our own control group. It is held by a pidfd
 * while that is read, so it is the one that was seen; on kernels of before 6.5, where that pidfd is opened by the
 * number of the process, one that has ended since, and whose number is another's by now, is taken for that one.
 * -ESRCH: it has ended since, as one does that was killed or has begun anew; nobody needs to be told. */
int service_accept(int listener, uid_t uid, const char *unit, struct err *err);

/* A pidfd of the process that has connected, whose number the kernel says is pid; -1: it has ended. */
int service_hold(int fd, pid_t pid);

/* The group of a sibling as /proc names it: our own, with another last part. 0, or -errno. For service_accept(), and to
 * see whether a process is in a unit. */
int service_sibling(const char *unit, char *group, size_t size);
/* -errno, or 0 if the process is in exactly this group now. Asks the group, so that others' processes may be hidden in
 * /proc. */
int service_is_in(pid_t pid, const char *group);

#endif
