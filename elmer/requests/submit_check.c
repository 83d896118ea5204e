/* submit_check.c - what a submission may say: the text of what is wrong, with what to do. */
#include "config.h"

#include "elmer/requests/internal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/launch/launch.h"
#include "elmer/requests/view.h"
#include "lib/base/str.h"
#include "lib/base/variable.h"
#include "lib/job/lines.h"
#include "lib/job/tasks.h"
#include "lib/job/terminal.h"
#include "lib/ticket/ticket.h"

enum { START_COST = 500 << 10, SUBMIT_COST = 720 << 10, LOG_BURST = 30, LOG_WINDOW_MS = 10000 };

static int check_printable(const char *what, const char *text, struct err *err)
{
    char printable[4 * 4096 + 16];
    if (strcmp(str_printable(printable, sizeof(printable), text, strlen(text)), text) != 0)
        return err_set(err, -1, "%s contains control characters: \"%.200s\"", what, printable);
    return 0;
}

static int check_environment(const struct wire_strs *environment, struct err *err)
{
    for (size_t i = 0; i < environment->count; i++) {
        const char *item = environment->items[i], *equals = strchr(item, '=');
        char printable[100];
        bool good = equals && equals != item;
        for (const char *c = item; good && c < equals; c++)
            good = *c > ' ' && *c < 0x7f;
        if (!good)
            return err_set(err, -1, "environment: \"%s\" is not of the form NAME=VALUE",
                           str_printable(printable, sizeof(printable), item, strlen(item)));
    }
    return 0;
}

static int check_size(const struct wire_submit *submit, struct err *err)
{
    size_t command = 0,
           all = view_cost_of_text(submit->dir) + view_cost_of_text(submit->output) + view_cost_of_text(submit->errors);
    for (size_t i = 0; i < submit->command.count; i++)
        command += view_cost_of_text(submit->command.items[i]);
    for (size_t i = 0; i < submit->environment.count; i++)
        all += view_cost_of_text(submit->environment.items[i]);
    if (command > VIEW_COMMAND_COST || command + all > START_COST)
        return err_set(err, -1,
                       "the command and its environment are too large (about %zu bytes of at most %d): put them into a "
                       "script or a file",
                       command + all, command > VIEW_COMMAND_COST ? VIEW_COMMAND_COST : START_COST);
    if (command + all + lines_cost(submit->lines) > SUBMIT_COST)
        return err_set(
            err, -1,
            "the command, its environment and the lines of its tasks are too large together (about %zu bytes "
            "of at most %d): make several arrays of them, or put environments into files",
            command + all + lines_cost(submit->lines), SUBMIT_COST);
    return 0;
}

#define CHECK_LINE_ASKED(name)                                                                                         \
    if (!result)                                                                                                       \
        result = check_printable("the " #name, submit->name, err);
#define CHECK_ASKED(name, type, ...) JOB_IF(LINE, type, CHECK_LINE_ASKED(name))

static int check_limits(const struct wire_submit *submit, struct err *err)
{
    uint64_t time = submit->time_limit_ms, cpu = submit->cpu_limit_ms;
    if (submit->limit_requeue && (!submit->requeue || (!time && !cpu)))
        return err_set(err, -1, "a job that a limit puts back into the queue needs a limit, and --requeue");
    if (!submit->warning_signal != !submit->warning_ms || (submit->warning_signal && !time && !cpu))
        return err_set(err, -1, "a signal before a limit needs a limit, its number, and a time");
    if ((time && submit->warning_ms >= time) || (cpu && submit->warning_ms >= cpu))
        return err_set(err, -1, "the signal before a limit would come before the job begins");
    if (submit->warning_signal && launcher_needs(launcher_of(submit)))
        return err_set(err, -1, "a signal before a limit is not for jobs with %s: its daemons would get it, too",
                       launcher_needs(launcher_of(submit)));
    return 0;
}

static int check_lines(const struct wire_submit *submit, uint32_t ntasks, struct err *err)
{
    char why[LINES_WHY];
    uint32_t line;
    return !lines_check(submit->lines, ntasks, submit->command.items, submit->command.count, &line, why) ? 0
           : line ? err_set(err, -1, "the lines of the tasks: number %" PRIu32 " %s", line, why)
                  : err_set(err, -1, "the lines of the tasks: %s", why);
}

static int check_tasks(const struct wire_submit *submit, struct err *err)
{
    struct tasks tasks;
    char why[TASKS_WHY];
    if (*submit->tasks && tasks_parse(submit->tasks, true, &tasks, why))
        return err_set(err, -1, "the tasks of an array: %s", why);
    return *submit->lines ? check_lines(submit, *submit->tasks ? tasks.count : 0, err) : 0;
}

/* The variable is what the hosts go by, because it is signed. */
static int check_terminal(const struct wire_submit *submit, struct err *err)
{
    const char *value = NULL;
    for (size_t i = 0; i < submit->environment.count && !value; i++)
        value = variable_value(submit->environment.items[i], TERMINAL_VARIABLE);
    if (!*submit->terminal && !value)
        return 0;
    if (!value || strcmp(value, submit->terminal) != 0)
        return err_set(err, -1, "the variable %s is Elmer's own: ask for a terminal with --pty", TERMINAL_VARIABLE);
    if (!terminal_is_known(submit->terminal))
        return err_set(err, -1, "this elmer knows no terminal of the kind \"%.16s\"", submit->terminal);
    if (submit->each || *submit->tasks || submit->notice || submit_is_machine(submit))
        return err_set(err, -1, "a terminal is for one command, not for %s",
                       submit->each                ? "one on each processor"
                       : submit_is_machine(submit) ? "a virtual machine without a command"
                                                   : "tasks of an array or a notice");
    if (submit->warning_signal == SIGTERM)
        return err_set(err, -1,
                       "the signal TERM would end a terminal at once, as the end of the job does: give another");
    return submit->requeue ? err_set(err, -1, "what was typed into a terminal cannot be run again: leave out --requeue")
                           : 0;
}

/* Who has stolen the key of a host, removed since or not, needs the network half of that very host as well: with any
 * other he gets nobody in. That the key is the host's, and holds for what is asked, is for the hosts to see. */
int submit_check_ticket(struct request *request, struct err *err)
{
    const struct wire_submit *submit = &request->message.u.submit;
    char host[TICKET_HOST_MAX + 1];
    if (!*submit->ticket)
        return 0; /* whether one is needed each host says */
    if (!ticket_host(submit->ticket, host))
        return err_set(err, -1, "its ticket cannot be read: it was cut short or changed on the way");
    if (strcmp(host, submit->submit_host) == 0)
        return 0;
    if (log_allowed(&request->requests->foreign_tickets, LOG_BURST, LOG_WINDOW_MS))
        log_warning("host=%s user=%s submission refused: its ticket is of host=%s", submit->submit_host,
                    request->client->user, host);
    return err_set(err, -1,
                   "its ticket was signed by %s, and it comes from %s: if both are one host, give it one name in "
                   "rsd.conf and elmer.conf",
                   host, submit->submit_host);
}

int submit_check(const struct requests_settings *settings, const struct wire_submit *submit, struct err *err)
{
    if (!submit->nprocs)
        return err_set(err, -1, "a job needs at least one processor");
    if (submit->nprocs > (uint64_t)settings->max_nprocs)
        return err_set(err, -1,
                       "%" PRIu64 " processors are asked for, and the configuration allows %" PRId64
                       " for a job (max_nprocs)",
                       submit->nprocs, settings->max_nprocs);
    if (submit->memory_bytes && submit->memory_bytes < MEMORY_MIN_BYTES)
        return err_set(err, -1, "%" PRIu64 " bytes of memory for each processor are asked for: at least %d are needed",
                       submit->memory_bytes, MEMORY_MIN_BYTES);
    if (!submit->command.count || !*submit->command.items[0])
        return err_set(err, -1, "there is no command: name a program");
    if (*submit->dir != '/')
        return err_set(err, -1, "the directory \"%.200s\" is not absolute", submit->dir);
    if (!*submit->token)
        return err_set(err, -1, "the submission has no token");
    if (strchr(submit->name, '/') || strcmp(submit->name, ".") == 0 || strcmp(submit->name, "..") == 0)
        return err_set(err, -1, "the name \"%.200s\" cannot be part of a file name: leave out '/'", submit->name);
    int result = 0;
    JOB_FIELDS(CHECK_ASKED, JOB_NONE, JOB_NONE)
    if (!result)
        result = path_check(submit->output, "output", err);
    if (!result)
        result = path_check(submit->errors, "error output", err);
    if (!result)
        result = check_environment(&submit->environment, err);
    if (!result)
        result = check_limits(submit, err);
    if (!result)
        result = check_tasks(submit, err);
    if (!result)
        result = check_terminal(submit, err);
    if (!result)
        result = after_check(&submit->after, err);
    if (!result)
        result = notice_check(submit, err);
    return result ? result : check_size(submit, err);
}
