/* clang-format off: a table */
/* caps.c - the table of capabilities.
 *
 *                    root half   supervisor   what fails without it
 *   SYS_NICE         x           x            real-time classes and CPUs of users' threads
 *   KILL             x                        TERM to a user's processes
 *   DAC_OVERRIDE     remove                   entries of a user's directory, also one that he has made unreadable
 *                    autogroup                the file /proc/PID/autogroup of a user's process
 *   FOWNER           remove                   entries of a directory that he has made sticky
 *   CHOWN            remove      begin        giving him his directory; taking it back while it is removed
 *   SYS_ADMIN        remove                   what he has mounted there; the jobs' own file system (tmpfs.c)
 *                    systemd                  the scope of all jobs (systemd asks for it)
 *                    autogroup                its value for many sessions at once (others are held to ten a second)
 *   (none)           rt_reserve               files of /proc/sys and debugfs that belong to root (reserve.c)
 *   SETGID, SETUID                begin        taking the user's ids (sup/become.c)
 *   SYS_RESOURCE                  begin        its oom_score_adj, so that no job can have a protection of rsd back
 *
 * elmer-escapes, which looks for who has left a job, keeps SYS_NICE alone, and the keeper nothing (own_user.c).
 *
 * A word of the root half: permitted, but effective only during that errand, so that a mistake elsewhere in it is not
 * an act of root. `begin`: gone before it hears of anything that a user can choose. The bounding set is left alone,
 * because supervisors and jobs are born with it: without it sudo, ping or a container's starter would not work in a job
 * as they do in a shell. For the same reason jobs do not get no_new_privs. A process of uid 0 without capabilities
 * still owns root's files: this limits mistakes, not somebody who executes code in the root half. The user's processes
 * have nothing in any set but the bounding set.
 */
/* clang-format on */
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
    [CAPS_ROOT_HALF] = BIT(CAP_SYS_NICE) | BIT(CAP_KILL),
    [CAPS_ESCAPES] = BIT(CAP_SYS_NICE),
    [CAPS_SUPERVISOR_BEGIN] =
        BIT(CAP_SYS_NICE) | BIT(CAP_CHOWN) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_SYS_RESOURCE),
    [CAPS_SUPERVISOR] = BIT(CAP_SYS_NICE),
};
static const uint64_t errands[CAPS_ERRAND_COUNT] = {
    [CAPS_REMOVE] = BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_CHOWN) | BIT(CAP_SYS_ADMIN),
    [CAPS_SYSTEMD] = BIT(CAP_SYS_ADMIN),
    [CAPS_AUTOGROUP] = BIT(CAP_DAC_OVERRIDE) | BIT(CAP_SYS_ADMIN),
};
static uint64_t base, available; /* of this process: always effective; permitted */

static int permitted(uint64_t *set)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    *set = data[0].permitted | (uint64_t)data[1].permitted << 32;
    return 0;
}

static int set(uint64_t effective, uint64_t all)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)effective, .permitted = (uint32_t)all},
        {.effective = (uint32_t)(effective >> 32), .permitted = (uint32_t)(all >> 32)},
    };
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int caps_keep(enum caps_of who)
{
    uint64_t all = 0, wanted = kept[who];
    int result = permitted(&all);
    if (result < 0)
        return result;
    for (int i = 0; who == CAPS_ROOT_HALF && i < CAPS_ERRAND_COUNT; i++)
        wanted |= errands[i];
    available = wanted & all;
    base = kept[who] & available;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    return set(base, available);
}

void caps_take(enum caps_errand errand)
{
    set(base | (errands[errand] & available), available);
}

void caps_lay_down(void)
{
    set(base, available);
}

int caps_empty_bounding_set(void)
{
    for (unsigned long cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return errno == EINVAL && cap > 0 ? 0 : -errno; /* past the last one that this kernel knows */
    }
    return 0;
}
