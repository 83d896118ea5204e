/* check.c - is what is to be done what the ticket was signed for? The signature itself: sign.c. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/base/variable.h"
#include "lib/job/lines.h"
#include "lib/job/terminal.h"
#include "lib/job/variables.h"
#include "lib/ticket/helpers.h"
#include "lib/ticket/ticket.h"

/* Where the user gives no pattern. */
#define OUTPUT_PLAIN     "elmer-%j.out"
#define OUTPUT_EACH      "elmer-%j.%r.out"
#define OUTPUT_TASK      "elmer-%A.%a.out"
#define OUTPUT_TASK_EACH "elmer-%A.%a.%r.out"

/* ---- whom to believe ---- */

bool ticket_is_among(const char *words, const char *name)
{
    bool among = false;
    for (size_t length; *words; words += length + (words[length] == ' ')) {
        const bool denied = *words == '!';
        words += denied;
        length = strcspn(words, " ");
        if (strlen(name) == length && strncmp(words, name, length) == 0)
            return !denied;
        among = among || (!denied && length == 3 && strncmp(words, "all", 3) == 0);
    }
    return among;
}

/* ---- variables ---- */

bool ticket_variable_is_ours(const char *entry, bool helpers)
{
    static const char *const always[] = {JOB_VARIABLES, NULL};
    return (strncmp(entry, "ELMER_", 6) == 0 && variable_is_one_of(entry, always)) ||
           (helpers && helpers_variable(entry));
}

static uint32_t index_of(const struct ticket *t)
{
    static struct tasks tasks;
    char why[TASKS_WHY];
    return tasks_parse(t->tasks, true, &tasks, why) == 0 && t->task > 0 && t->task <= tasks.count
               ? tasks_index(&tasks, t->task - 1)
               : 0;
}

static bool is_number(const char *text, uint64_t number)
{
    char expected[24];
    snprintf(expected, sizeof(expected), "%" PRIu64, number);
    return strcmp(text, expected) == 0;
}

/* One of the array's tasks, or no array and no task. */
static bool names_task(const struct ticket *t)
{
    return t->ntasks > 0 ? t->task > 0 && t->task <= t->ntasks : t->task == 0;
}

/* The index decides what is put into a task's arguments, so it is there, once. */
static bool has_index(const struct ticket *t, const struct ticket_start *start)
{
    size_t count = 0;
    for (size_t i = 0; i < start->environment.count; i++)
        count += variable_value(start->environment.items[i], "ELMER_ARRAY_INDEX") != NULL;
    return count == (t->task > 0);
}

/* The same is true of its line, where tasks have one each. */
static bool has_line(const struct ticket *t, const struct ticket_start *start)
{
    const char *line = NULL, *value;
    uint8_t root[TREE_DIGEST_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < start->environment.count; i++)
        if ((value = variable_value(start->environment.items[i], LINE_VARIABLE))) {
            line = value;
            count++;
        }
    if (!t->has_lines || count != 1)
        return !t->has_lines && count == 0;
    return tree_root_of(line, strlen(line), t->task - 1, t->ntasks, (const uint8_t(*)[TREE_DIGEST_BYTES])t->proof,
                        t->nproof, root) &&
           memcmp(root, t->lines, sizeof(root)) == 0;
}

static bool is_digits(const char *text, size_t length)
{
    return length > 0 && strspn(text, "0123456789") >= length;
}

/* Joined by ':', at least one. */
static bool are_hosts(const char *list)
{
    for (;;) {
        char name[256];
        size_t length = strcspn(list, ":");
        if (length >= sizeof(name))
            return false;
        memcpy(name, list, length);
        name[length] = 0;
        if (!str_valid_hostname(name))
            return false;
        if (!list[length])
            return true;
        list += length + 1;
    }
}

static bool is_mesh(const char *text)
{
    size_t rows = strcspn(text, "x");
    return text[rows] && is_digits(text, rows) && is_digits(text + rows + 1, strlen(text + rows + 1));
}

/* Variables of ours: their values decide what runs, or a script may take them for its own, and lines of files are made
 * of them. Each has the one value that follows from the ticket, or is a number or names of hosts and nothing else, or
 * is a path that the supervisor sets itself. */
static bool value_is_ours(const char *entry, const struct ticket *t, const struct ticket_start *start)
{
    const char *value;
    if ((value = variable_value(entry, "ELMER_JOB_NAME")))
        return strcmp(value, t->name) == 0;
    if ((value = variable_value(entry, "ELMER_SUBMIT_DIR")))
        return strcmp(value, start->dir) == 0;
    if (variable_value(entry, TASKS_VARIABLE) || variable_value(entry, LINES_VARIABLE) ||
        variable_value(entry, MEMORY_VARIABLE))
        return false;
    if (variable_value(entry, LINE_VARIABLE))
        return t->has_lines; /* see has_line() */
    if ((value = variable_value(entry, "ELMER_ARRAY_INDEX")))
        return t->task > 0 && is_number(value, index_of(t));
    if ((value = variable_value(entry, "ELMER_ARRAY_ID")))
        return t->task > 0 && is_number(value, start->job - t->task);
    if ((value = variable_value(entry, "ELMER_RANK")) || (value = variable_value(entry, "ELMER_NPROCS")) ||
        (value = variable_value(entry, "ELMER_JOB_ID")))
        return is_digits(value, strlen(value));
    if ((value = variable_value(entry, "ELMER_HOSTS")))
        return are_hosts(value);
    if ((value = variable_value(entry, "ELMER_MESH")))
        return is_mesh(value);
    if ((value = variable_value(entry, "ELMER_SUBMIT_HOST"))) /* of a job of before elmer knew it: none */
        return !*value || str_valid_hostname(value);
    if ((value = variable_value(entry, "ELMER_ADDRESS")))
        return *value && strspn(value, "0123456789.") == strlen(value);
    return !t->helpers || helpers_value_fits(entry, start->dir, start->tmpdir);
}

static bool variables_are_ours(const struct ticket *t, const struct ticket_start *start)
{
    for (size_t i = 0; i < start->environment.count; i++) {
        const char *entry = start->environment.items[i];
        if (ticket_variable_is_ours(entry, t->helpers) && !value_is_ours(entry, t, start))
            return false;
    }
    return true;
}

/* ---- files ---- */

/* `*path` begins with `piece`: then it is behind it. */
static bool skip(const char **path, const char *piece)
{
    size_t length = strlen(piece);
    if (strncmp(*path, piece, length) != 0)
        return false;
    *path += length;
    return true;
}

/* path is what elmer makes of the pattern (elmer/launch/paths.c). */
static bool path_fits(const char *path, const char *pattern, const struct ticket *t, uint64_t job, uint64_t rank)
{
    for (const char *c = pattern; *c; c++) {
        char text[24] = {*c, 0};
        const char *piece = text;
        if (*c == '%') {
            switch (*++c) {
            case 'j':
                snprintf(text, sizeof(text), "%" PRIu64, job);
                break;
            case 'A':
                snprintf(text, sizeof(text), "%" PRIu64, job - t->task);
                break;
            case 'a':
                snprintf(text, sizeof(text), "%" PRIu32, index_of(t));
                break;
            case 'r':
                snprintf(text, sizeof(text), "%" PRIu64, rank);
                break;
            case 'u':
                piece = t->user;
                break;
            case 'x':
                piece = t->name;
                break;
            case '%':
                break;
            default:
                return false;
            }
        }
        if (!skip(&path, piece))
            return false;
    }
    return *path == 0;
}

static bool files_fit(const struct ticket *t, const struct ticket_start *start, uint64_t rank)
{
    const char *output = *t->output ? t->output
                         : t->task  ? (t->each ? OUTPUT_TASK_EACH : OUTPUT_TASK)
                         : t->each  ? OUTPUT_EACH
                                    : OUTPUT_PLAIN;
    const char *errors = *t->errors ? t->errors : output;
    return !start->truncate && path_fits(start->output, output, t, start->job, rank) &&
           path_fits(start->errors, errors, t, start->job, rank);
}

/* ---- processes ---- */

static bool same(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, TICKET_DIGEST_BYTES) == 0;
}

/* Then what holds it has a pipe in the place of the output, and says there where it listens. */
static bool has_terminal(const struct ticket_start *start)
{
    for (size_t i = 0; i < start->environment.count; i++)
        if (variable_value(start->environment.items[i], TERMINAL_VARIABLE))
            return start->process == 0;
    return false;
}

static enum ticket_refusal check_command(const struct ticket *t, const struct ticket_start *start,
                                         const struct ticket *asked)
{
    if (start->process >= (t->each ? t->nprocs : 1))
        return TICKET_NO_SUCH_RANK;
    if (!same(t->command, asked->command))
        return TICKET_OTHER_COMMAND;
    return start->capture != has_terminal(start) || !files_fit(t, start, start->process) ? TICKET_OTHER_OUTPUT
                                                                                         : TICKET_GOOD;
}

/* What stands ready on a host for the job's own processes (rsd/courier): the host's own program, which starts nothing
 * but for who shows a pass of the job. */
static bool is_courier(const struct ticket_start *start)
{
    return start->process >= JOB_COURIERS && start->argv.count == 1 && strcmp(start->argv.items[0], JOB_COURIER) == 0 &&
           start->capture && !*start->output && !*start->errors && !start->truncate;
}

static bool agent_fits(const struct ticket *t, const struct ticket_start *start)
{
    return !start->capture && helpers_agent_fits(start->argv, start->dir) && files_fit(t, start, 0);
}

static bool daemon_fits(const struct ticket_start *start)
{
    return start->capture && !*start->output && !*start->errors && helpers_daemon_fits(start->argv);
}

static enum ticket_refusal check_helper(const struct ticket *t, const struct ticket_start *start)
{
    if (!t->helpers || start->process < t->nprocs || start->argv.count == 0)
        return TICKET_OTHER_HELPER;
    return (start->role == TICKET_DAEMON ? daemon_fits(start) : agent_fits(t, start)) ? TICKET_GOOD
                                                                                      : TICKET_OTHER_HELPER;
}

enum ticket_refusal ticket_check_start(const struct ticket *t, const struct ticket_start *start)
{
    struct ticket asked = {.helpers = t->helpers};
    enum ticket_refusal why;
    if (!names_task(t))
        return TICKET_NO_SUCH_TASK;
    if (!ticket_digest(&asked, start->argv, start->environment, start->dir, start->umask))
        return TICKET_GARBLED;
    why = start->role != TICKET_COMMAND ? check_helper(t, start)
          : is_courier(start)           ? TICKET_GOOD
                                        : check_command(t, start, &asked);
    if (why != TICKET_GOOD)
        return why;
    if (!same(t->place, asked.place))
        return TICKET_OTHER_PLACE;
    if (!same(t->environment, asked.environment))
        return TICKET_OTHER_ENVIRONMENT;
    if (!variables_are_ours(t, start) || !has_index(t, start) ||
        (t->helpers && !helpers_variables_are_there(start->environment, start->role)))
        return TICKET_ADDED_VARIABLE;
    return has_line(t, start) ? TICKET_GOOD : TICKET_OTHER_LINE;
}

enum ticket_refusal ticket_check_open(const struct ticket *t, uint64_t uid, const char *user, bool helpers,
                                      size_t processors, uint64_t memory_bytes)
{
    if (t->uid != uid || strcmp(t->user, user) != 0)
        return TICKET_OTHER_USER;
    if (t->helpers != helpers)
        return TICKET_OTHER_LAUNCHER;
    if (!names_task(t))
        return TICKET_NO_SUCH_TASK;
    if (processors > t->nprocs)
        return TICKET_TOO_MANY_PROCESSORS;
    return memory_bytes != t->memory_bytes ? TICKET_OTHER_MEMORY : TICKET_GOOD;
}
