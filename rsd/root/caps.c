/* caps.c - the table of capabilities, of all programs but elmer-spawn (rsd/spawn/main.c).
 *
 *   rsd               SYS_NICE   real-time classes and CPUs of users' threads
 *   a supervisor      SYS_NICE   the same of what it brings forth
 *   elmer-escapes     SYS_NICE   taking them back
 *   all others        none
 *
 * rsd puts root down with its first action, or when it has started (hand_over.c), and a supervisor has SETUID until it
 * has the ids of its job's user (sup/become.c): both before they hear anybody. The bounding set is left alone by all
 * of them, because supervisors and jobs are born with it (rsd's own unit narrows rsd's): without it sudo, ping or a
 * container's starter would not work in a job as they do in a shell. For the same reason jobs do not get no_new_privs.
 * The user's processes have nothing in any set but the bounding set.
 */
#include "config.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsd/root/caps.h"

#define BIT(cap) (UINT64_C(1) << (cap))

static const uint64_t kept[CAPS_OF_COUNT] = {
    [CAPS_JOBS] = BIT(CAP_SYS_NICE),
    [CAPS_ESCAPES] = BIT(CAP_SYS_NICE),
    [CAPS_SUPERVISOR] = BIT(CAP_SYS_NICE),
};

static int permitted(uint64_t *set)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    *set = data[0].permitted | (uint64_t)data[1].permitted << 32;
    return 0;
}

static int set(uint64_t all)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)all, .permitted = (uint32_t)all},
        {.effective = (uint32_t)(all >> 32), .permitted = (uint32_t)(all >> 32)},
    };
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int caps_keep(enum caps_of who)
{
    uint64_t all = 0;
    int result = permitted(&all);
    if (result < 0)
        return result;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    return set(kept[who] & all);
}

int caps_empty_bounding_set(void)
{
    for (unsigned long cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return errno == EINVAL && cap > 0 ? 0 : -errno; /* past the last one that this kernel knows */
    }
    return 0;
}
