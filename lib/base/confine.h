/* confine.h - a filter of system calls for a process that has all that it needs, and what it makes. */
#ifndef LIB_BASE_CONFINE_H
#define LIB_BASE_CONFINE_H

enum confine {
    CONFINE_LOCAL,   /* no socket but of this machine's processes */
    CONFINE_NETWORK, /* and of the internet; netlink, by which the C library looks for addresses */
};
/* From here on: no other program, no namespace or mount, no look into other processes, no module, clock, key or other
 * thing of the whole machine, no interface of the kernel that is known for its faults (bpf, io_uring, userfaultfd).
 * Such a call fails with EPERM. For good, for all threads that are made from now on. 0, or -errno: a kernel without, or
 * one of another machine than this file knows (-ENOSYS). */
int confine(enum confine what);

#endif
