/* eadmin_power.c - shutdown and reboot: a host is drained, and when it has no jobs it goes down, if it is this one and
 * root's; else it is said what goes on there. rsd has no verb for it: what is root there becomes less, not more. */
#include "config.h"

#include "client/eadmin_drain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "rsd/config.h"

/* This host's, as elmer calls it. */
static bool is_here(const char *host)
{
    struct rsd_config config;

    rsd_config_default(&config);
    (void)rsd_config_read(&config, ELMER_SYSCONFDIR "/rsd.conf", true, NULL, NULL); /* as far as it is good */
    return strcmp(config.name, host) == 0;
}

static int run_here(const char *verb)
{
    execlp("systemctl", "systemctl", verb, (char *)NULL);
    say("cannot start systemctl: %s", strerror(errno));
    return EXIT_REFUSED;
}

/* word: what the command is called; verb: that of systemctl; done: what the log calls it. */
static int go_down(int argc, char **argv, const char *word, const char *verb, const char *done)
{
    struct drain drain = {.reason = "", .wait = true};
    char *reason = NULL;
    bool here;
    int code = eadmin_parse_drain(&drain, argc, argv);

    if (code >= 0)
        return code;
    if (drain.nhosts != 1)
        return usage_error("one host at a time");
    here = geteuid() == 0 && is_here(drain.hosts[0]);
    if (!*drain.reason)
        drain.reason = reason = must(strdup(word));
    code = eadmin_drain_hosts(&drain);
    if (code == EXIT_DONE && here) /* before: elmer may be stopped by it */
        eadmin_note(done, drain.hosts[0], reason ? "" : drain.reason);
    free(reason);
    if (code != EXIT_DONE)
        return code;
    printf("When it is back: eadmin resume %s\n", drain.hosts[0]);
    if (!here)
        printf("Now, as root on %s: systemctl %s\n", drain.hosts[0], verb);
    code = finish_output(EXIT_DONE);
    return code == EXIT_DONE && here ? run_here(verb) : code;
}

int eadmin_shutdown(int argc, char **argv)
{
    return go_down(argc, argv, "shutdown", "poweroff", "shut-down");
}

int eadmin_reboot(int argc, char **argv)
{
    return go_down(argc, argv, "reboot", "reboot", "rebooted");
}
