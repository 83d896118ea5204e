/* notice.c - elmer-notice, what a notice runs: as its user, on the host where he submitted the job that it tells about.
 *
 * Which job that is, and how it has ended, elmer says; what is done then stands in our arguments, which were signed
 * with the submission. The mail and the command wait not for each other: either may hang. Exit status: that of the
 * command, else 0; if the mail was not taken that of sendmail, 69 where there is none; 75 if elmer could not be asked.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "client/common.h"
#include "client/mail.h"
#include "client/words.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/job/after.h"
#include "libelmer/client.h"

enum {
    PATIENCE_MS = 600000,
    AGAIN_MS = 500,
    ANSWER_WAIT_MS = 30000,
    SETTLE_MS = 10000,
    OPTION_DIR = OPTION_FIRST_FREE,
    OPTION_MAIL_AT,
    OPTION_NOTIFY
};

static const struct option_row options[] = {
    {OPTION_MAIL_AT, "mail-at", "WHAT", "send mail; fail: only if the job has not ended well"},
    {OPTION_NOTIFY, "notify", "COMMAND", "run this line of shell"},
    {OPTION_DIR, "dir", "DIR", "in this directory"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "elmer-notice",
    "Usage: elmer-notice [--mail-at begin|end|fail] [--dir DIR --notify COMMAND]\n"
    "Tell the user about the job that this one waits for. Started by esubmit --mail-at and --notify.\n"
    "\n",
    options,
    "",
};

struct notice {
    const char *mail_at, *command, *dir; /* NULL: not asked for */
    bool begin;                          /* it has begun; else ended */
};

static int parse(struct notice *notice, int argc, char **argv)
{
    int c;

    while ((c = options_next(argc, argv, "+", options)) != -1) {
        if (c == OPTION_MAIL_AT)
            notice->mail_at = optarg;
        else if (c == OPTION_NOTIFY)
            notice->command = optarg;
        else if (c == OPTION_DIR)
            notice->dir = optarg;
        else
            return common_option(c, argv);
    }
    return optind == argc ? -1 : usage_error("'%s' is too many", argv[optind]);
}

/* ---- which job, and how it is ---- */

static bool unanswered; /* elmer is away, or cannot read its store now */

/* The one job; NULL: said why. until_ended: that may be a moment away from being on elmer's disk. */
static struct elmer_jobs *ask(struct elmer *elmer, uint64_t id, bool until_ended)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    int result = until_ended ? elmer_wait(elmer, id, SETTLE_MS, &jobs, &error)
                             : elmer_query(elmer, false, false, &id, 1, ANSWER_WAIT_MS, &jobs, &error);

    if (result != ELMER_OK) {
        say("%s", error.text);
        unanswered = true;
        return NULL;
    }
    if (jobs->count == 1)
        return jobs;
    say("nothing is known of job %" PRIu64 " any more", id);
    elmer_jobs_free(jobs);
    return NULL;
}

/* What our own job waits for is what it tells about. */
static struct elmer_jobs *ask_told(struct elmer *elmer, struct notice *notice)
{
    const char *text = getenv("ELMER_JOB_ID");
    struct elmer_jobs *own, *told;
    char why[AFTER_WHY];
    struct after after;
    uint64_t id;
    int result = -1;

    if (!text || !parse_id(text, &id))
        return NULL;
    own = ask(elmer, id, false);
    if (!own)
        return NULL;
    if (own->items[0].nafter > 0)
        result = after_parse(own->items[0].after[0], &after, why);
    elmer_jobs_free(own);
    if (result < 0) {
        say("job %" PRIu64 " tells about no other one", id);
        return NULL;
    }
    notice->begin = after.kind == AFTER_START;
    told = ask(elmer, after.job, false);
    if (!told || notice->begin || elmer_job_ended(&told->items[0]))
        return told;
    elmer_jobs_free(told);
    return ask(elmer, after.job, true);
}

/* An elmer that is away now comes back; that it takes us longer than our minute then is its to judge, not ours. */
static struct elmer_jobs *ask_patiently(struct notice *notice)
{
    int64_t deadline = mono_ms(mono_now()) + PATIENCE_MS;
    struct elmer_jobs *told;

    for (;;) {
        struct elmer *elmer = open_elmer();

        unanswered = false;
        told = elmer ? ask_told(elmer, notice) : NULL;
        elmer_close(elmer);
        if (told || (elmer && !unanswered) || mono_ms(mono_now()) >= deadline)
            return told;
        poll(NULL, 0, AGAIN_MS);
    }
}

static bool ended_well(const struct elmer_job *job)
{
    return strcmp(job->state, "done") == 0 && strcmp(job->reason_code, "exited") == 0 && job->exit_status == 0;
}

/* ---- mail ---- */

/* As a shell says it. */
static int status_of(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return EX_OSERR;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int send_mail(const struct notice *notice, const struct elmer_job *job)
{
    const char *sendmail = client_sendmail(getenv("ELMER_SENDMAIL"));
    const struct passwd *user = getpwuid(geteuid());
    char host[256] = "";
    int pipes[2], status;
    bool taken;
    pid_t pid;
    FILE *out;

    if (!sendmail || !user) {
        say(sendmail ? "the user has no name here" : "there is no sendmail here any more");
        return EX_UNAVAILABLE;
    }
    (void)gethostname(host, sizeof(host) - 1);
    if (pipe(pipes) < 0 || (pid = fork()) < 0) {
        say("sendmail cannot be started: %s", strerror(errno));
        return EX_OSERR;
    }
    if (pid == 0) {
        dup2(pipes[0], STDIN_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        signal(SIGPIPE, SIG_DFL);
        execl(sendmail, "sendmail", "-i", "--", user->pw_name, (char *)NULL);
        _exit(EX_UNAVAILABLE);
    }
    close(pipes[0]);
    out = fdopen(pipes[1], "w");
    mail_write(must(out), job, notice->begin, user->pw_name, host, wall_now().ms);
    taken = fclose(out) == 0;
    status = status_of(pid);
    return status != EX_OK || taken ? status : EX_IOERR;
}

/* ---- the command ---- */

static void set_number(const char *name, bool known, int64_t value)
{
    char text[32] = "";

    if (known)
        snprintf(text, sizeof(text), "%" PRId64, value);
    setenv(name, text, 1);
}

/* What the command finds of the job in its environment; what is not known is there and empty. */
static void set_environment(const struct elmer_job *job)
{
    char *hosts = words_hosts(job), *output = job->ntasks == 0 ? elmer_job_output(job, 0, false) : NULL;

    set_number("ELMER_JOB_ID", true, (int64_t)job->id);
    setenv("ELMER_JOB_NAME", job->name, 1);
    setenv("ELMER_STATE", job->state, 1);
    setenv("ELMER_REASON", job->reason_code, 1);
    setenv("ELMER_REASON_TEXT", job->reason, 1);
    set_number("ELMER_EXIT", job->exit_status >= 0, job->exit_status);
    set_number("ELMER_SIGNAL", job->signal > 0, job->signal);
    setenv("ELMER_RAN_ON", hosts, 1);
    setenv("ELMER_OUTPUT", output ? output : "", 1);
    set_number("ELMER_STARTED", job->started_ms >= 0, job->started_ms / 1000);
    set_number("ELMER_ENDED", job->ended_ms >= 0, job->ended_ms / 1000);
    set_number("ELMER_TASKS_OK", job->ntasks > 0, job->tasks_ok);
    set_number("ELMER_TASKS_FAILED", job->ntasks > 0, job->tasks_failed);
    free(hosts);
    free(output);
}

static int run_command(const struct notice *notice, const struct elmer_job *job)
{
    pid_t pid;

    if (notice->dir && chdir(notice->dir) < 0) {
        say("%s: %s", notice->dir, strerror(errno));
        return EX_NOINPUT;
    }
    set_environment(job);
    pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", notice->command, (char *)NULL);
        _exit(127);
    }
    return pid < 0 ? EX_OSERR : status_of(pid);
}

/* In a process of its own; -1: not. */
static pid_t begin_mail(const struct notice *notice, const struct elmer_job *job)
{
    pid_t pid = fork();

    if (pid < 0)
        say("sendmail cannot be started: %s", strerror(errno));
    if (pid != 0)
        return pid;
    signal(SIGPIPE, SIG_IGN); /* a sendmail that reads nothing: its status says more */
    _exit(send_mail(notice, job));
}

static int tell(const struct notice *notice, const struct elmer_job *job)
{
    bool mails = notice->mail_at && (strcmp(notice->mail_at, "fail") != 0 || !ended_well(job));
    pid_t mail = mails ? begin_mail(notice, job) : -1;
    int code = notice->command ? run_command(notice, job) : EX_OK, sent = EX_OK;

    if (mails)
        sent = mail < 0 ? EX_OSERR : status_of(mail);
    return sent != EX_OK ? sent : code;
}

int main(int argc, char **argv)
{
    struct notice notice = {0};
    struct elmer_jobs *told;
    int code;

    command_begin(&command);
    code = parse(&notice, argc, argv);
    if (code >= 0)
        return code;
    told = ask_patiently(&notice);
    if (!told)
        return EX_TEMPFAIL;
    code = tell(&notice, &told->items[0]);
    elmer_jobs_free(told);
    return code;
}
