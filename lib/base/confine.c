/* confine.c - see confine.h. A list of what is refused and not of what is let through: which calls a C library makes is
 * its own business, and changes. */
#include "config.h"

#include "lib/base/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define THIS_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef THIS_MACHINE

enum { X32_CALL = 0x40000000 };

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define REFUSE(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((code)&SECCOMP_RET_DATA))
#define LET          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* One of these: refused. */
#define IF_CALL(number, code) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), REFUSE(code)
#define NO(name)              IF_CALL(SYS_##name, EPERM)
/* The first argument: the low half is enough for both. */
#define ARGUMENT LOAD(args[0]) /* little endian, as both machines are */

#define NAMESPACES                                                                                                     \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* Of each machine, and from a kernel of before: what it calls one another number is not there. */
#define HEAD                                                                                                           \
    LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_MACHINE, 1, 0), REFUSE(EPERM), LOAD(nr),                      \
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALL, 0, 1), REFUSE(EPERM)

#ifdef __SANITIZE_ADDRESS__ /* looks for leaks by it */
#define TRACING
#else
#define TRACING NO(ptrace),
#endif
#define PROGRAMS                                                                                                       \
    TRACING NO(execve), NO(execveat), NO(process_vm_readv), NO(process_vm_writev), NO(process_madvise),                \
        NO(pidfd_getfd), NO(kcmp)
#define PLACES                                                                                                         \
    NO(unshare), NO(setns), NO(mount), NO(umount2), NO(pivot_root), NO(chroot), NO(open_tree), NO(move_mount),         \
        NO(fsopen), NO(fsconfig), NO(fsmount), NO(fspick), NO(mount_setattr), NO(open_by_handle_at), NO(fanotify_init)
#define MACHINE                                                                                                        \
    NO(init_module), NO(finit_module), NO(delete_module), NO(kexec_load), NO(kexec_file_load), NO(reboot), NO(swapon), \
        NO(swapoff), NO(settimeofday), NO(clock_settime), NO(adjtimex), NO(clock_adjtime), NO(syslog), NO(acct),       \
        NO(quotactl), NO(sethostname), NO(setdomainname), NO(personality), NO(add_key), NO(request_key), NO(keyctl)
#define FAULTS                                                                                                         \
    NO(bpf), NO(perf_event_open), NO(userfaultfd), NO(io_uring_setup), NO(io_uring_enter), NO(io_uring_register)
/* Its flags cannot be seen; the C library then takes clone. */
#define CLONES                                                                                                         \
    IF_CALL(SYS_clone3, ENOSYS), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4), ARGUMENT,                       \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1), REFUSE(EPERM), LET

static int install(struct sock_filter *filter, size_t count)
{
    const struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
        return -errno;
    return 0;
}

#define COUNT(filter) (sizeof(filter) / sizeof((filter)[0]))
#define FAMILY(name)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_##name, 0, 1), LET

int confine(enum confine what)
{
    struct sock_filter local[] = {
        HEAD,
        PROGRAMS,
        PLACES,
        MACHINE,
        FAULTS,
        CLONES,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
        LET,
        ARGUMENT,
        FAMILY(UNIX),
        REFUSE(EPERM),
    };
    struct sock_filter network[] = {
        HEAD,
        PROGRAMS,
        PLACES,
        MACHINE,
        FAULTS,
        CLONES,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
        LET,
        ARGUMENT,
        FAMILY(UNIX),
        FAMILY(INET),
        FAMILY(INET6),
        FAMILY(NETLINK),
        REFUSE(EPERM),
    };
    return what == CONFINE_LOCAL ? install(local, COUNT(local)) : install(network, COUNT(network));
}

#else

int confine(enum confine what)
{
    (void)what;
    return -ENOSYS;
}

#endif
