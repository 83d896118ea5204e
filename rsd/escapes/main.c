/* main.c - elmer-escapes USERS GROUPS, the program that looks for who has left a job; rsd starts it, and it ends with
 * rsd. It reads what users name and make, so it is root no longer than until it is elmer-sup, with SYS_NICE alone. */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/escapes/escapes.h"
#include "rsd/root/own_user.h"

int main(int argc, char **argv)
{
    pid_t rsd = getppid(); /* if it had ended before we were executed, so had we */
    cpu_set_t cpus;
    int result;
    log_open("rsd", LOG_LEVEL_INFO);
    if (argc != 3) {
        fprintf(stderr, "usage: elmer-escapes USERS GROUPS: rsd starts it\n");
        return 2;
    }
    result = own_user_become(CAPS_ESCAPES);
    if (result < 0) {
        log_error("cannot look for processes that leave their job: cannot put root down: %s", strerror(-result));
        return 1;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* once more: it is lost with root */
    if (getppid() != rsd || sched_getaffinity(0, sizeof cpus, &cpus) < 0)
        return 1;
    escapes_watch(argv[1], argv[2], &cpus);
}
