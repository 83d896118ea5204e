/* notices.c - the notices of a job, which esubmit and eretry submit behind it (libelmer/client_notices.c). Each is
 * accepted before the id of the job is printed. */
#include "config.h"

#include "client/notices.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "libelmer/client.h"

enum { COMMAND_MAX = 1000 };

bool notices_mail_at(struct notices *n, const char *list)
{
    char why[MAIL_AT_WHY];
    struct mail_at at;

    if (mail_at_parse(list, &at, why) < 0) {
        usage_error("--mail-at: %s", why);
        return false;
    }
    mail_at_text(&at, n->mail_at);
    return true;
}

bool notices_command(struct notices *n, const char *command)
{
    n->command = command;
    if (*command && strlen(command) <= COMMAND_MAX && command[strcspn(command, "\n\r")] == '\0')
        return true;
    usage_error("--notify: want a line of shell, of at most %d bytes; put more into a script", COMMAND_MAX);
    return false;
}

void notices_fini(struct notices *n)
{
    free(n->here);
}

int notices_check(struct notices *n)
{
    const char *chosen = getenv("ELMER_SENDMAIL");

    free(n->here);
    n->here = n->command ? get_current_dir_name() : NULL;
    if (n->command && !n->here)
        return usage_error("--notify: the current directory, where it would run, cannot be found: %s", strerror(errno));
    if (!*n->mail_at || client_sendmail(chosen))
        return -1;
    if (chosen && *chosen)
        say("--mail-at: ELMER_SENDMAIL=%s is no program that can be run", chosen);
    else
        say("--mail-at: this host cannot send mail, as it has no /usr/sbin/sendmail: install a mail system, submit on "
            "a host that has one, or use --notify COMMAND");
    return EXIT_REFUSED;
}

int notices_submit(struct elmer *elmer, const struct notices *n, uint64_t job)
{
    const struct elmer_notices asked = {.mail_at = n->mail_at,
                                        .notify = n->command,
                                        .dir = n->here,
                                        .environment = (const char *const *)n->environment->items};
    struct elmer_error error = {{0}};
    sigset_t ends, before;
    const char *missed;
    int result;

    if (!*n->mail_at && !n->command)
        return -1;
    sigemptyset(&ends); /* whoever ends us now means the job no more than its notices */
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, &before);
    result = client_notify(elmer, job, &asked, ANSWER_MS, &missed, &error);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (result == ELMER_OK)
        return -1;
    say("job %" PRIu64 " is submitted and goes on, but nobody will be told of its %s: %s", job, missed, error.text);
    return EXIT_REFUSED;
}
