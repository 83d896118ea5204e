/* main.c - elmer-escapes USERS GROUPS PID, the program that looks for who has left a job; elmer-spawn, PID, starts it,
 * and it ends with that. It reads what users name and make, and is elmer-sup with SYS_NICE alone. */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/str.h"
#include "rsd/escapes/escapes.h"
#include "rsd/root/own_user.h"

int main(int argc, char **argv)
{
    cpu_set_t cpus;
    uint64_t parent;
    int result;
    log_open("rsd", LOG_LEVEL_INFO);
    if (argc != 4 || !str_to_u64(argv[3], &parent)) {
        fprintf(stderr, "usage: elmer-escapes USERS GROUPS PID: rsd starts it\n");
        return 2;
    }
    result = own_user_keep(CAPS_ESCAPES);
    if (result < 0) {
        log_error("cannot look for processes that leave their job: cannot put root down: %s", strerror(-result));
        return 1;
    }
    /* Not earlier: it is lost when capabilities come, as with execve(2), and when root goes. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if ((uint64_t)getppid() != parent || sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
        return 1;
    log_fields();
    escapes_watch(argv[1], argv[2], &cpus);
}
