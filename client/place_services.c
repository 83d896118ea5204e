/* place_services.c - the services of a new cluster's queue host. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/common.h"
#include "client/eadmin_place.h"

static int run(const char *const *args, bool quiet)
{
    int status;
    pid_t pid;

    if (fflush(stdout) != 0 || (pid = fork()) < 0) {
        say("cannot start %s: %s", args[0], strerror(errno));
        return -1;
    }
    if (pid == 0) {
        int null = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

        if (null >= 0 && (dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0))
            _exit(126);
        execvp(args[0], (char *const *)(uintptr_t)args);
        say("cannot start %s: %s", args[0], strerror(errno));
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int start(const char *unit)
{
    const char *const enable[] = {"systemctl", "enable", unit, NULL}, *const restart[] = {"systemctl", "restart", unit,
                                                                                          NULL};

    if (run(enable, true) == 0 && run(restart, false) == 0) {
        printf("%s runs, and will at each boot.\n", unit);
        return EXIT_DONE;
    }
    say("systemctl has not started %s: systemctl status %s says why", unit, unit);
    return EXIT_REFUSED;
}

int place_start(void)
{
    static const char *const rsd[] = {"systemctl", "cat", "rsd.service", NULL};
    int code = start("elmer");

    if (code == EXIT_DONE && run(rsd, true) == 0)
        code = start("rsd");
    return code;
}
