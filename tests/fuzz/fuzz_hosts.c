/* fuzz_hosts.c - lists of hosts: ELMER_HOSTS as elmer_register() reads it, and the arguments of esubmit, of which
 * --hosts is one. The real main() of esubmit runs; what it would send is looked at instead. First line: ELMER_HOSTS;
 * every further line is an argument. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/look.h"
#include "client/patience.h"
#include "lib/base/str.h"
#include "libelmer/client.h"
#include "libelmer/elmer_reg.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_ARGUMENTS = 24 };

int esubmit_main(int argc, char **argv);

static unsigned submitted;

/* ---- in place of libclient and of client/common.c's words to people ---- */

static void check_submission(const struct elmer_submission *submission)
{
    FUZZ_CHECK(submission->nprocs >= 1 && submission->nprocs <= 1000000, "%u processors", (unsigned)submission->nprocs);
    FUZZ_CHECK(submission->command && submission->command[0], "no command");
    for (size_t i = 0; submission->hosts && submission->hosts[i]; i++) {
        FUZZ_CHECK(str_valid_hostname(submission->hosts[i]), "host \"%s\"", submission->hosts[i]);
        for (size_t k = 0; k < i; k++)
            FUZZ_CHECK(strcmp(submission->hosts[i], submission->hosts[k]) != 0, "%s twice", submission->hosts[i]);
    }
    for (size_t i = 0; submission->environment && submission->environment[i]; i++)
        FUZZ_CHECK(strchr(submission->environment[i], '=') > submission->environment[i], "environment");
}

struct elmer *open_elmer(void)
{
    return (struct elmer *)(void *)&submitted;
}

void elmer_close(struct elmer *elmer)
{
    (void)elmer;
}

void elmer_submitted_free(struct elmer_submitted *answer)
{
    (void)answer;
}

static int refuse(const struct elmer_submission *submission, struct elmer_error *error)
{
    check_submission(submission);
    submitted++;
    (void)snprintf(error->text, sizeof(error->text), "not sent");
    return ELMER_REFUSED;
}

int client_submit(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                  struct elmer_submitted **answer, struct elmer_error *error)
{
    (void)elmer, (void)timeout_ms, (void)answer;
    return refuse(submission, error);
}

const char *client_sendmail(const char *chosen)
{
    return chosen;
}

/* Nothing is accepted that it could be about. */
int client_notify(struct elmer *elmer, uint64_t job, const struct elmer_notices *asked, int timeout_ms,
                  const char **missed, struct elmer_error *error)
{
    (void)elmer, (void)job, (void)asked, (void)timeout_ms, (void)missed, (void)error;
    return ELMER_REFUSED;
}

void elmer_rehearsed_free(struct elmer_rehearsed *answer)
{
    (void)answer;
}

int elmer_rehearse(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                   struct elmer_rehearsed **answer, struct elmer_error *error)
{
    (void)elmer, (void)timeout_ms, (void)answer;
    return refuse(submission, error);
}

/* What elmer_register() would ask where there is no ELMER_HOSTS: nobody is there. */
int elmer_open(const struct elmer_options *options, struct elmer **elmer, struct elmer_error *error)
{
    (void)options, (void)elmer, (void)error;
    return ELMER_UNREACHABLE;
}

int elmer_query(struct elmer *elmer, bool running, bool queued, const uint64_t *ids, size_t nids, int timeout_ms,
                struct elmer_jobs **jobs, struct elmer_error *error)
{
    (void)elmer, (void)running, (void)queued, (void)timeout_ms, (void)jobs;
    FUZZ_CHECK(nids == 1 && ids[0] > 0, "asks for no array");
    (void)snprintf(error->text, sizeof(error->text), "not asked");
    return ELMER_REFUSED;
}

int patience_query(struct elmer *elmer, const uint64_t *ids, size_t nids, int64_t until_ms, struct elmer_jobs **jobs,
                   struct elmer_error *error)
{
    (void)until_ms;
    return elmer_query(elmer, false, false, ids, nids, ANSWER_MS, jobs, error);
}

int elmer_query_hosts(struct elmer *elmer, int timeout_ms, struct elmer_host_list **hosts, struct elmer_error *error)
{
    (void)elmer, (void)timeout_ms, (void)hosts, (void)error;
    return ELMER_UNREACHABLE;
}

void elmer_host_list_free(struct elmer_host_list *hosts)
{
    (void)hosts;
}

void elmer_jobs_free(struct elmer_jobs *jobs)
{
    (void)jobs;
}

bool parse_id(const char *text, uint64_t *id)
{
    return str_to_u64(text, id) && *id > 0;
}

void say_where(const char *place)
{
    FUZZ_CHECK(!place || *place, "an empty place");
}

void command_begin(const struct command *command)
{
    FUZZ_CHECK(command->help[0] != '\0', "no help");
    opterr = 0;
}

static void make_text(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void make_text(const char *format, va_list args)
{
    char *text = NULL;

    FUZZ_CHECK(vasprintf(&text, format, args) > 0, "no text");
    free(text);
}

void say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    make_text(format, args);
    va_end(args);
}

int usage_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    make_text(format, args);
    va_end(args);
    return EXIT_USAGE;
}

int common_option(int c, char **argv)
{
    (void)argv;
    return c == 'h' || c == 'V' ? EXIT_DONE : EXIT_USAGE;
}

int say_result(int result, const struct elmer_error *error)
{
    say("%s", error->text);
    return result;
}

char *printable(const char *text)
{
    return must(strdup(text));
}

void *must(void *memory)
{
    FUZZ_CHECK(memory != NULL, "no memory");
    return memory;
}

int finish_output(int code)
{
    return code;
}

void wait_catch_signals(uint64_t job)
{
    (void)job;
}

int wait_for_job(struct elmer *elmer, uint64_t job)
{
    (void)elmer;
    return (int)job;
}

bool look_possible(bool keep)
{
    return keep;
}

int look_at(struct elmer *elmer, uint64_t job, const struct look_options *options)
{
    (void)elmer;
    (void)options;
    return (int)job;
}

/* ---- the input ---- */

static void check_register(const char *list)
{
    int n, again;
    char **names;
    size_t length = 0;

    (void)setenv("ELMER_HOSTS", list, 1);
    n = elmer_register();
    if (n < 0)
        return;
    names = elmer_hosts(&again);
    FUZZ_CHECK(n == again && n > 0 && !names[n], "%d names and %d", n, again);
    for (int i = 0; i < n; i++)
        length += strlen(names[i]) + 1;
    FUZZ_CHECK(length == strlen(list) + 1, "%zu bytes of %s", length, list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    char *arguments[MAX_ARGUMENTS + 1] = {NULL};
    char *list = input_line(&input);
    int count = 0;

    check_register(list);
    free(list);
    if (!freopen("/dev/null", "r", stdin)) /* `esubmit -` reads it */
        return 0;
    arguments[count++] = strdup("esubmit");
    while (input.left > 0 && count < MAX_ARGUMENTS)
        arguments[count++] = input_line(&input);
    optind = 0; /* getopt begins anew */
    FUZZ_CHECK(esubmit_main(count, arguments) >= 0, "a negative status");
    for (int i = 0; i < MAX_ARGUMENTS; i++)
        free(arguments[i]);
    return 0;
}
