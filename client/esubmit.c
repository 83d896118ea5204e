/* esubmit.c - submit a job. */
#include "config.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "client/look.h"
#include "client/submission.h"
#include "client/wait.h"
#include "lib/base/clock.h"
#include "lib/job/tasks.h"
#include "libelmer/client.h"

enum { TURN_MS = 5000, AGAIN_MS = 50 };

static const struct command command = {
    "esubmit",
    "Usage: esubmit [options] [NPROCS] COMMAND [ARG...]\n"
    "       esubmit [options] [NPROCS] - [ARG...] <SCRIPT\n"
    "       esubmit [options] --mesh XxY COMMAND [ARG...]\n"
    "       esubmit [options] -P N | -p FILE\n"
    "Submit COMMAND as a job on NPROCS processors (1); print its id on standard output.\n"
    "A COMMAND with lines that begin with #ELMER, and standard input, are scripts: options stand\n"
    "in these lines, too, and the text is kept with the job.\n"
    "\n",
    submission_options,
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 4 elmer not reachable, 5 not permitted, 6 not\n"
    "possible now (elmer's disk is full): try again later. With -w and --pty that of the\n"
    "job, 128+N if it died by signal N, 125 if Elmer could not run it to its end.\n",
};

static bool is_waiting(const char *state)
{
    return strcmp(state, "queued") == 0 || strcmp(state, "held") == 0;
}

/* For people; the id for programs is on stdout. */
static void tell(const struct request *request, const struct elmer_submitted *answer)
{
    char *text = NULL, *clean, why[TASKS_WHY];
    const char *tasks = request->submission.tasks;
    struct tasks array;
    size_t size;
    FILE *out = must(open_memstream(&text, &size));

    if (tasks && tasks_parse(tasks, true, &array, why) == 0)
        fprintf(out, "array %llu (%" PRIu32 " task%s) ", (unsigned long long)answer->job, array.count,
                array.count == 1 ? "" : "s");
    else
        fprintf(out, "job %llu ", (unsigned long long)answer->job);
    if (is_waiting(answer->state)) {
        fprintf(out, "%s: %lu ahead", answer->state, (unsigned long)answer->ahead);
        if (answer->reason[0])
            fprintf(out, "; %s", answer->reason);
    } else if (answer->level >= 0 && answer->nhosts > 0) {
        fprintf(out, "allocated");
        for (size_t i = 0; i < answer->nhosts; i++)
            fprintf(out, " %s", answer->hosts[i]);
        fprintf(out, " at level %d", answer->level);
    } else {
        fprintf(out, "%s", answer->state); /* it can never run, or it is the answer to a repeated submission */
        if (answer->reason[0])
            fprintf(out, ": %s", answer->reason);
    }
    if (fclose(out) != 0)
        must(NULL);
    clean = printable(text);
    fprintf(stderr, "%s\n", clean);
    free(clean);
    free(text);
}

/* mpirun, which starts processes on all hosts of the job by itself, may stand anywhere: in a line of shell, a script.
 */
static bool starts_others(const struct request *request)
{
    for (const char *const *word = request->submission.command; *word; word++)
        if (strstr(*word, "mpirun") || strstr(*word, "mpiexec"))
            return true;
    return request->script.text && (strstr(request->script.text, "mpirun") || strstr(request->script.text, "mpiexec"));
}

/* One process, on the first host. */
static bool uses_one_host(const struct request *request)
{
    return !request->submission.each && !request->submission.pvm && !request->pty.asked && !starts_others(request);
}

/* host: NULL where it is not known yet. */
static void tell_idle(FILE *out, const struct request *request, const char *host, bool several)
{
    char *first;

    if (!several || !uses_one_host(request))
        return;
    first = printable(host ? host : "its first host");
    fprintf(out, "runs on %s only: --each, --pvm or mpirun use the others\n", first);
    free(first);
}

/* By what is asked for alone; a mesh has a processor of each host. */
static bool asks_for_several_hosts(const struct elmer_submission *s)
{
    return s->nprocs > 1 && (s->mesh_rows > 0 || (s->per_host > 0 && s->nprocs > s->per_host));
}

/* Of a host that has never been seen it may not be known how many it has. */
static bool no_host_has(struct elmer *elmer, uint32_t nprocs)
{
    struct elmer_host_list *hosts;
    bool none;

    if (elmer_query_hosts(elmer, ANSWER_MS, &hosts, NULL) != ELMER_OK)
        return false;
    none = hosts->count > 0;
    for (size_t i = 0; i < hosts->count; i++)
        none = none && hosts->items[i].processors > 0 && hosts->items[i].processors < nprocs;
    elmer_host_list_free(hosts);
    return none;
}

/* Of one that waits. ask: for the hosts as well, where a person reads what is said of it; scripts submit many in a row.
 */
static bool gets_several_hosts(struct elmer *elmer, const struct request *request, bool ask)
{
    const struct elmer_submission *s = &request->submission;

    return asks_for_several_hosts(s) ||
           (ask && s->nprocs > 1 && uses_one_host(request) && no_host_has(elmer, s->nprocs));
}

/* ---- --dry-run ---- */

/* What elmer says may have bytes that move the cursor. */
static void put(const char *before, const char *text)
{
    char *clean = printable(text);

    printf("%s%s", before, clean);
    free(clean);
}

/* All that is said of an array is said of the first of its tasks. */
static void say_tasks(const struct request *request)
{
    const char *tasks = request->submission.tasks;
    char why[TASKS_WHY];
    struct tasks array;

    if (!tasks || tasks_parse(tasks, true, &array, why) < 0)
        return;
    printf("of %" PRIu32 " task%s", array.count, array.count == 1 ? "" : "s");
    if (array.limit)
        printf(", %" PRIu32 " at a time,", array.limit);
    printf(" the first ");
}

static void say_start(const struct request *request, const struct elmer_rehearsed *r)
{
    printf("would start now:");
    for (size_t i = 0, end; i < r->nranks; i = end) {
        for (end = i + 1; end < r->nranks && strcmp(r->ranks[end], r->ranks[i]) == 0;)
            end++;
        put(i ? ", " : " ", r->ranks[i]);
        printf(" (%zu processor%s)", end - i, end - i == 1 ? "" : "s");
    }
    printf(" at level %d", r->level);
    for (size_t i = 0; i < r->nabove; i++)
        printf("%s%llu", i ? ", " : r->nabove > 1 ? ", below jobs " : ", below job ", (unsigned long long)r->above[i]);
    putchar('\n');
    if (request->pty.asked) {
        put("its terminal would be on ", r->ranks[0]);
        puts(request->pty.keep ? ", and stay while nobody looks" : "");
    }
    tell_idle(stdout, request, r->ranks[0], strcmp(r->ranks[0], r->ranks[r->nranks - 1]) != 0);
    if (r->note[0]) {
        put("", r->note);
        putchar('\n');
    }
}

static void say_wait(struct elmer *elmer, const struct request *request, const struct elmer_rehearsed *r)
{
    printf("would wait: %lu job%s ahead", (unsigned long)r->ahead, r->ahead == 1 ? "" : "s");
    put(r->reason[0] ? "; " : "", r->reason);
    putchar('\n');
    if (r->first) {
        printf("job %llu is the first of them", (unsigned long long)r->first);
        put(": ", r->first_reason);
        putchar('\n');
    }
    tell_idle(stdout, request, NULL, gets_several_hosts(elmer, request, true));
}

static void say_never(const struct elmer_rehearsed *r)
{
    put("would be ", r->state);
    put(r->reason[0] ? ": " : "", r->reason);
    putchar('\n');
}

/* Where the queue is long elmer tries few of them: others have their turn, and then we do. */
static int ask_rehearsed(struct elmer *elmer, const struct request *request, struct elmer_rehearsed **answer,
                         struct elmer_error *error)
{
    int64_t deadline = mono_ms(mono_now()) + TURN_MS;
    int result;

    while ((result = elmer_rehearse(elmer, &request->submission, ANSWER_MS, answer, error)) == ELMER_UNAVAILABLE &&
           mono_ms(mono_now()) < deadline)
        poll(NULL, 0, AGAIN_MS);
    return result;
}

static int rehearse(const struct request *request)
{
    struct elmer_error error = {{0}};
    struct elmer_rehearsed *answer;
    struct elmer *elmer = open_elmer();
    int result;

    if (!elmer)
        return EXIT_REFUSED;
    result = ask_rehearsed(elmer, request, &answer, &error);
    if (result != ELMER_OK) {
        elmer_close(elmer);
        return say_result(result, &error);
    }
    say_tasks(request);
    if (answer->nranks)
        say_start(request, answer);
    else if (is_waiting(answer->state))
        say_wait(elmer, request, answer);
    else
        say_never(answer);
    elmer_rehearsed_free(answer);
    elmer_close(elmer);
    return finish_output(EXIT_DONE);
}

static int submit(const struct request *request)
{
    struct elmer_error error = {{0}};
    struct elmer_submitted *answer;
    struct elmer *elmer = open_elmer();
    int result, code, told;

    if (!elmer)
        return EXIT_REFUSED;
    if (request->pty.asked && !request->pty.detach && !look_possible(request->pty.keep)) {
        elmer_close(elmer);
        return EXIT_UNAVAILABLE;
    }
    result = client_submit(elmer, &request->submission, ANSWER_MS, &answer, &error);
    if (result != ELMER_OK) {
        code = say_result(result, &error);
        elmer_close(elmer);
        return code;
    }
    told = notices_submit(elmer, &request->notices, answer->job);
    if (request->pty.asked && !request->pty.detach) {
        struct look_options look = {.keep = request->pty.keep, .own = true};

        tell(request, answer);
        code = look_at(elmer, answer->job, &look);
        code = code == EXIT_DONE && told >= 0 ? told : code;
        elmer_submitted_free(answer);
        elmer_close(elmer);
        return code;
    }
    if (request->wait)
        wait_catch_signals(answer->job);
    printf("%llu\n", (unsigned long long)answer->job);
    code = finish_output(EXIT_DONE);
    tell(request, answer);
    if (answer->nhosts)
        tell_idle(stderr, request, answer->hosts[0], answer->nhosts > 1);
    else if (is_waiting(answer->state))
        tell_idle(stderr, request, NULL, gets_several_hosts(elmer, request, isatty(STDERR_FILENO)));
    if (request->machine.asked)
        machine_tell(elmer, answer);
    if (request->wait && code == EXIT_DONE)
        code = wait_for_job(elmer, answer->job);
    if (code == EXIT_DONE && told >= 0)
        code = told;
    elmer_submitted_free(answer);
    elmer_close(elmer);
    return code;
}

/* Before anything is submitted, tasks of arrays that it waits for get their ids. */
static int name_tasks(struct request *request)
{
    struct elmer *elmer;
    int code;

    if (!request->after.tasks)
        return -1;
    elmer = open_elmer();
    if (!elmer)
        return EXIT_REFUSED;
    code = after_resolve(elmer, &request->after);
    elmer_close(elmer);
    request->submission.after = (const char *const *)request->after.items;
    return code;
}

int main(int argc, char **argv)
{
    struct request request;
    int result;

    command_begin(&command);
    result = request_parse(&request, argc, argv);
    if (result < 0)
        result = name_tasks(&request);
    if (result < 0)
        result = request.dry_run ? rehearse(&request) : submit(&request);
    request_fini(&request);
    return result;
}
