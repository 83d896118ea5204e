/* notices.c - the notices of a job, which esubmit submits behind it.
 *
 * A notice is a job without a processor that waits for the other one, on this host, where its user exists and mail
 * works. It has a ticket of its own, so what it runs was signed here, like the command of every job. There is one for
 * the begin and one for the end; each is accepted before the id of the job is printed. */
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
#include "client/script.h"
#include "lib/base/str.h"
#include "lib/job/after.h"

enum { RUNS_MS = 60000, COMMAND_MAX = 1000 };

static void describe(struct notices *n)
{
    snprintf(n->mail_at, sizeof(n->mail_at), "%s%s%s", n->begin ? ",begin" : "", n->end ? ",end" : "",
             n->fail ? ",fail" : "");
    memmove(n->mail_at, n->mail_at + 1, strlen(n->mail_at));
}

bool notices_mail_at(struct notices *n, const char *list)
{
    char *copy = must(strdup(list)), *rest = copy, *word;
    bool good = true;

    n->begin = n->end = n->fail = false;
    while (good && (word = strsep(&rest, ","))) {
        good = strcmp(word, "begin") == 0 || strcmp(word, "end") == 0 || strcmp(word, "fail") == 0;
        if (!good)
            usage_error("--mail-at: '%s' is none of begin, end, fail; several are separated by commas", word);
        n->begin |= strcmp(word, "begin") == 0;
        n->end |= strcmp(word, "end") == 0;
        n->fail |= strcmp(word, "fail") == 0;
    }
    free(copy);
    if (good)
        describe(n);
    return good;
}

bool notices_command(struct notices *n, const char *command)
{
    n->command = command;
    if (*command && strlen(command) <= COMMAND_MAX && command[strcspn(command, "\n\r")] == '\0')
        return true;
    usage_error("--notify: want a line of shell, of at most %d bytes; put more into a script", COMMAND_MAX);
    return false;
}

const char *notices_sendmail(const char *chosen)
{
    static const char *const usual[] = {"/usr/sbin/sendmail", "/usr/lib/sendmail", NULL};

    if (chosen && *chosen)
        return access(chosen, X_OK) == 0 ? chosen : NULL;
    for (const char *const *path = usual; *path; path++)
        if (access(*path, X_OK) == 0)
            return *path;
    return NULL;
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
    if (!*n->mail_at || notices_sendmail(chosen))
        return -1;
    if (chosen && *chosen)
        say("--mail-at: ELMER_SENDMAIL=%s is no program that can be run", chosen);
    else
        say("--mail-at: this host cannot send mail, as it has no /usr/sbin/sendmail: install a mail system, submit on "
            "a host that has one, or use --notify COMMAND");
    return EXIT_REFUSED;
}

/* That of the job, without the text of a script, and with what says how elmer and mail are reached. */
static void fill_environment(const struct notices *n, struct environment *environment)
{
    static const char *const more[] = {"ELMER_SOCKET", "ELMER_SENDMAIL"};

    environment_init(environment);
    for (size_t i = 0; i < n->environment->count; i++) {
        const char *item = n->environment->items[i], *equals = strchr(item, '=');
        char *name = must(strndup(item, (size_t)(equals - item)));

        if (strcmp(name, SCRIPT_VARIABLE) != 0)
            environment_set(environment, name, equals + 1);
        free(name);
    }
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        if (getenv(more[i]))
            environment_set(environment, more[i], getenv(more[i]));
}

static int submit_one(struct elmer *elmer, const struct notices *n, uint64_t job, enum after_kind kind)
{
    bool begin = kind == AFTER_START;
    char *name = must(str_format("notice-of-%" PRIu64, job));
    char item[AFTER_TEXT], mail[sizeof(n->mail_at)];
    const char *command[8] = {ELMER_LIBEXECDIR "/elmer-notice"}, *after[] = {item, NULL};
    struct elmer_submission submission = {.nprocs = 1,
                                          .name = name,
                                          .dir = "/",
                                          .output = "/dev/null",
                                          .umask = -1,
                                          .after = after,
                                          .command = command,
                                          .requeue = true,
                                          .time_limit_ms = RUNS_MS,
                                          .notice = true};
    struct environment environment = {0};
    struct elmer_submitted *submitted;
    struct elmer_error error = {{0}};
    size_t count = 1;
    int result;

    after_text(&(struct after){.kind = kind, .job = job}, item);
    snprintf(mail, sizeof(mail), "%s", begin ? "begin" : n->end ? "end" : n->fail ? "fail" : "");
    if (*mail) {
        command[count++] = "--mail-at";
        command[count++] = mail;
    }
    if (!begin && n->command) {
        command[count++] = "--dir";
        command[count++] = n->here;
        command[count++] = "--notify";
        command[count++] = n->command;
    }
    fill_environment(n, &environment);
    submission.environment = (const char *const *)environment.items;
    result = elmer_submit(elmer, &submission, ANSWER_MS, &submitted, &error);
    if (result == ELMER_OK)
        elmer_submitted_free(submitted);
    environment_fini(&environment);
    free(name);
    if (result == ELMER_OK)
        return -1;
    say("job %" PRIu64 " is submitted and goes on, but nobody will be told of its %s: %s", job, begin ? "begin" : "end",
        error.text);
    return EXIT_REFUSED;
}

int notices_submit(struct elmer *elmer, const struct notices *n, uint64_t job)
{
    sigset_t ends, before;
    int code = -1;

    sigemptyset(&ends); /* whoever ends us now means the job no more than its notices */
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, &before);
    if (n->begin)
        code = submit_one(elmer, n, job, AFTER_START);
    if (code < 0 && (n->end || n->command))
        code = submit_one(elmer, n, job, AFTER_ANY);
    else if (code < 0 && n->fail)
        code = submit_one(elmer, n, job, AFTER_FAIL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}
