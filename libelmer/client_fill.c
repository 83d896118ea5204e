/* client_fill.c - check a submission, and fill in its defaults. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/job/after.h"
#include "lib/job/fields.h"
#include "lib/job/lines.h"
#include "lib/job/mail_at.h"
#include "lib/job/tasks.h"
#include "lib/job/terminal.h"
#include "libelmer/client.h"

enum { NAME_MAX_BYTES = CLIENT_NAME_BYTES, PATH_MAX_BYTES = 4095, ARGS_MAX = 4096, NPROCS_MAX = 1000000 };

static size_t list_count(const char *const *list)
{
    size_t count = 0;

    while (list && list[count])
        count++;
    return count;
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 32 || *text == 127)
            return true;
    return false;
}

static int check_text(const char *what, const char *text, struct elmer_error *error)
{
    if (!str_valid_utf8(text, strlen(text)))
        return client_error(error, ELMER_USAGE, "%s is not valid UTF-8; Elmer carries only UTF-8", what);
    return ELMER_OK;
}

static int check_list(const char *what, const char *const *list, struct elmer_error *error)
{
    size_t count = list_count(list);

    if (count > ARGS_MAX)
        return client_error(error, ELMER_USAGE, "%zu %ss are too many; at most %d are carried", count, what, ARGS_MAX);
    for (size_t i = 0; i < count; i++)
        if (!str_valid_utf8(list[i], strlen(list[i])))
            return client_error(error, ELMER_USAGE, "%s number %zu is not valid UTF-8; Elmer carries only UTF-8", what,
                                i + 1);
    return ELMER_OK;
}

static int check_pattern(const char *what, const char *pattern, struct elmer_error *error)
{
    if (!*pattern)
        return client_error(error, ELMER_USAGE, "the name of the %s file is empty", what);
    if (strlen(pattern) > PATH_MAX_BYTES)
        return client_error(error, ELMER_USAGE, "the name of the %s file is longer than %d bytes", what,
                            PATH_MAX_BYTES);
    if (!str_valid_utf8(pattern, strlen(pattern)))
        return client_error(error, ELMER_USAGE, "the name of the %s file is not valid UTF-8; Elmer carries only UTF-8",
                            what);
    for (const char *p = strchr(pattern, '%'); p; p = strchr(p + 2, '%')) {
        if (p[1] == '\0' || (unsigned char)p[1] < 32)
            return client_error(error, ELMER_USAGE,
                                "a '%%' without a letter in the name of the %s file; write %%%% for a percent sign",
                                what);
        if (!strchr("jurxAa%", p[1]))
            return client_error(error, ELMER_USAGE,
                                "unknown pattern '%%%c' in the name of the %s file; there are %%j (job id), %%u "
                                "(user), %%x (job name), %%r (rank), %%A (array), %%a (index of a task), %%%%",
                                p[1], what);
    }
    return ELMER_OK;
}

static int check_line(const char *what, const char *text, size_t limit, struct elmer_error *error)
{
    if (strlen(text) > limit)
        return client_error(error, ELMER_USAGE, "the job's %s is longer than %zu bytes; choose another one", what,
                            limit);
    if (has_control(text) || !str_valid_utf8(text, strlen(text)))
        return client_error(error, ELMER_USAGE, "the job's %s %s; choose another one", what,
                            has_control(text) ? "has a control character" : "is not valid UTF-8");
    return ELMER_OK;
}

static int check_name(const char *name, struct elmer_error *error)
{
    const char *wrong = !*name                                                  ? "is empty"
                        : strchr(name, '/')                                     ? "has a '/'"
                        : strspn(name, ".") == strlen(name) && strlen(name) < 3 ? "is not a file's name"
                                                                                : NULL;

    if (wrong)
        return client_error(error, ELMER_USAGE, "the job's name %s; choose another one", wrong);
    return ELMER_OK;
}

/* The last part of the command's path, cut to what a name may have. */
static void default_name(const char *command, char *name)
{
    size_t end = strlen(command), begin, length;

    while (end > 1 && command[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && command[begin - 1] != '/';)
        begin--;
    length = end - begin;
    if (length > NAME_MAX_BYTES)
        for (length = NAME_MAX_BYTES; length > 0 && ((unsigned char)command[begin + length] & 0xC0) == 0x80;)
            length--;
    memcpy(name, command + begin, length);
    name[length] = '\0';
}

static int check_command(const struct elmer_submission *s, struct elmer_error *error)
{
    if (s->nprocs < 1 || s->nprocs > NPROCS_MAX)
        return client_error(error, ELMER_USAGE, "a job needs between 1 and %d processors", NPROCS_MAX);
    if (!s->command || !s->command[0] || !*s->command[0])
        return client_error(error, ELMER_USAGE, "the command is missing or empty");
    return check_list("argument", s->command, error);
}

static int check_environment(const char *const *environment, struct elmer_error *error)
{
    if (list_count(environment) > ARGS_MAX)
        return check_list("environment variable", environment, error);
    for (size_t i = 0; environment && environment[i]; i++) {
        int length = (int)strcspn(environment[i], "=");

        if (length == 0 || !environment[i][length])
            return client_error(error, ELMER_USAGE, "environment variable number %zu is not of the form NAME=VALUE",
                                i + 1);
        if (!str_valid_utf8(environment[i], strlen(environment[i])))
            return client_error(error, ELMER_USAGE,
                                "environment variable %.*s is not valid UTF-8; Elmer carries only UTF-8",
                                length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES, environment[i]);
    }
    return ELMER_OK;
}

static int check_hosts(const char *const *hosts, struct elmer_error *error)
{
    if (list_count(hosts) > 1024)
        return client_error(error, ELMER_USAGE, "more than 1024 hosts are named; leave the list out to allow all");
    for (size_t i = 0; hosts && hosts[i]; i++)
        if (!str_valid_hostname(hosts[i]))
            return client_error(error, ELMER_USAGE, "host number %zu is not a host's name", i + 1);
    return ELMER_OK;
}

static int check_after(const char *const *after, struct elmer_error *error)
{
    char why[AFTER_WHY];
    struct after item;

    if (list_count(after) > AFTER_MAX)
        return client_error(error, ELMER_USAGE, "a job can wait for %d others, not for more", AFTER_MAX);
    for (size_t i = 0; after && after[i]; i++)
        if (!str_valid_utf8(after[i], strlen(after[i])) || after_parse(after[i], &item, why) < 0)
            return client_error(error, ELMER_USAGE, "--after: %s", why);
    return ELMER_OK;
}

static int check_tasks(const char *text, struct elmer_error *error)
{
    struct tasks tasks;
    char why[TASKS_WHY];

    if (!str_valid_utf8(text, strlen(text)) || tasks_parse(text, true, &tasks, why) < 0)
        return client_error(error, ELMER_USAGE, "the tasks of an array: %s",
                            str_valid_utf8(text, strlen(text)) ? why : "not valid UTF-8");
    return ELMER_OK;
}

static int check_lines(const struct elmer_submission *s, struct elmer_error *error)
{
    struct tasks tasks = {.count = 0};
    char why[LINES_WHY];
    uint32_t line;

    if (!*s->lines)
        return client_error(error, ELMER_USAGE, "the lines of the tasks are empty");
    if (!str_valid_utf8(s->lines, strlen(s->lines)))
        return client_error(error, ELMER_USAGE, "the lines of the tasks are not valid UTF-8; Elmer carries only UTF-8");
    if (!s->tasks || tasks_parse(s->tasks, true, &tasks, why) < 0)
        return client_error(error, ELMER_USAGE, "lines are of the tasks of an array, and this is one job");
    if (lines_check(s->lines, tasks.count, s->command, list_count(s->command), &line, why) == 0)
        return ELMER_OK;
    if (line == 0)
        return client_error(error, ELMER_USAGE, "the lines of the tasks: %s", why);
    return client_error(error, ELMER_USAGE, "the lines of the tasks: number %lu %s", (unsigned long)line, why);
}

static int check_mail_at(const char *list, struct elmer_error *error)
{
    char why[MAIL_AT_WHY];
    struct mail_at at;

    if (mail_at_parse(list, &at, why) < 0)
        return client_error(error, ELMER_USAGE, "mail_at: %s", why);
    return ELMER_OK;
}

/* From /proc, because umask(2) can only be read by changing it, for all threads. Without /proc it is read that way. */
static mode_t current_umask(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    unsigned mask = 0;
    bool found = false;

    while (status && !found && fgets(line, sizeof(line), status))
        found = sscanf(line, "Umask: %o", &mask) == 1;
    if (status)
        fclose(status);
    if (!found) {
        mask = umask(077);
        umask((mode_t)mask);
    }
    return (mode_t)mask & 0777;
}

static int set_dir(struct wire_submit *submit, const char *dir, struct client_made *made, struct elmer_error *error)
{
    if (!dir) {
        made->dir =
            get_current_dir_name(); /* $PWD where it is right: as the user knows it, not where an automounter put it */
        if (!made->dir)
            return client_error(error, ELMER_USAGE, "the current directory cannot be found (%s); name one",
                                strerror(errno));
        dir = made->dir;
    }
    if (dir[0] != '/')
        return client_error(error, ELMER_USAGE, "the directory is not an absolute path");
    if (strlen(dir) > PATH_MAX_BYTES)
        return client_error(error, ELMER_USAGE, "the directory's path is longer than %d bytes", PATH_MAX_BYTES);
    submit->dir = dir;
    return check_text("the directory", dir, error);
}

static int set_files(struct wire_submit *submit, const struct elmer_submission *s, struct elmer_error *error)
{
    int result = ELMER_OK;

    submit->output = s->output                                               ? s->output
                     : s->terminal && strcmp(s->terminal, TERMINAL_PTY) == 0 ? "/dev/null"
                     : s->tasks ? (s->each ? "elmer-%A.%a.%r.out" : "elmer-%A.%a.out")
                     : s->each  ? "elmer-%j.%r.out"
                                : "elmer-%j.out";
    submit->errors = s->errors ? s->errors : "";
    result = check_pattern("output", submit->output, error);
    if (result == ELMER_OK && s->errors)
        result = check_pattern("error", s->errors, error);
    return result;
}

static int set_identity(struct wire_submit *submit, const struct elmer_submission *s, struct client_made *made,
                        struct elmer_error *error)
{
    if (gethostname(made->host, sizeof(made->host) - 1) < 0 || !str_valid_utf8(made->host, strlen(made->host)))
        made->host[0] = '\0';
    submit->submit_host = made->host;
    if (s->token && (!*s->token || strlen(s->token) > 64 || !str_valid_utf8(s->token, strlen(s->token))))
        return client_error(error, ELMER_USAGE, "a token has 1 to 64 bytes of UTF-8");
    if (!s->token && str_unique_token(made->token) < 0)
        return client_error(error, ELMER_FAILED, "no random numbers: %s", strerror(errno));
    submit->token = s->token ? s->token : made->token;
    if (!s->name)
        default_name(s->command[0], made->name);
    submit->name = s->name ? s->name : made->name;
    return check_name(submit->name, error);
}

static struct wire_strs strs(const char *const *list)
{
    return (struct wire_strs){.items = (const char **)(uintptr_t)list, .count = list_count(list)};
}

/* Members for which their type's check is all: nothing of them is completed. */
#define CHECK_LINE(name, limit)                                                                                        \
    if (result == ELMER_OK && submit->name)                                                                            \
        result = check_line(#name, submit->name, limit, error);
#define CHECK_ASKED(name, type, ...) JOB_IF(LINE, type, CHECK_LINE(name, JOB_LIMIT(type)))
#define SET_ASKED(name, type, core, since, shown, line, seen, json, option, ...)                                       \
    JOB_IF(PLAIN, option, submit->name = s->name;)

int client_fill(struct wire_submit *submit, const struct elmer_submission *s, struct client_made *made,
                struct elmer_error *error)
{
    int result = check_command(s, error);

    if (result == ELMER_OK)
        result = check_environment(s->environment, error);
    if (result == ELMER_OK)
        result = check_hosts(s->hosts, error);
    if (result == ELMER_OK)
        result = check_after(s->after, error);
    if (result == ELMER_OK && s->tasks)
        result = check_tasks(s->tasks, error);
    if (result == ELMER_OK && s->lines)
        result = check_lines(s, error);
    if (result == ELMER_OK && s->mail_at && *s->mail_at)
        result = check_mail_at(s->mail_at, error);
    if (result == ELMER_OK && s->terminal)
        result = client_terminal(s, &made->environment, error);
    if (result == ELMER_OK)
        result = set_dir(submit, s->dir, made, error);
    if (result == ELMER_OK)
        result = set_files(submit, s, error);
    if (result == ELMER_OK)
        result = set_identity(submit, s, made, error);
    JOB_FIELDS(SET_ASKED, JOB_NONE, JOB_NONE)
    JOB_FIELDS(CHECK_ASKED, JOB_NONE, JOB_NONE)
    if (result != ELMER_OK)
        return result;
    submit->command = strs(s->command);
    submit->environment = strs(made->environment ? made->environment : s->environment);
    submit->terminal = s->terminal ? s->terminal : "";
    submit->hosts = strs(s->hosts);
    submit->after = strs(s->after);
    submit->tasks = s->tasks ? s->tasks : "";
    submit->lines = s->lines ? s->lines : "";
    submit->umask = s->umask > 0 ? (uint64_t)(s->umask & 0777) : current_umask();
    return ELMER_OK;
}

void client_made_fini(struct client_made *made)
{
    free(made->dir);
    free(made->environment);
}
