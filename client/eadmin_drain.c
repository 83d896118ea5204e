/* eadmin_drain.c - drain, resume, remove: hosts that shall have no new jobs, or are not of the cluster any more.
 *
 * drain: each host is drained; with --wait until no job has a processor there, which is asked each second, also while
 * elmer is away; with --kill-after the jobs that are still there by then are ended, once, and waited for. */
#include "config.h"

#include "client/eadmin_drain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/limits.h"
#include "client/patience.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "libelmer/client.h"

enum { REASON_MAX = 200, JOBS_SAID = 16 };

static bool hosts_are_names(char **hosts, int count)
{
    for (int i = 0; i < count; i++)
        if (!str_valid_hostname(hosts[i])) {
            usage_error("'%s' is not the name of a host", hosts[i]);
            return false;
        }
    return true;
}

/* A line, as it is kept. */
static bool is_reason(const char *text)
{
    char printable[4 * REASON_MAX + 16]; /* as elmer writes it */
    bool line = strlen(text) <= REASON_MAX &&
                strcmp(str_printable(printable, sizeof(printable), text, strlen(text)), text) == 0;

    if (!line)
        usage_error("--reason wants a line of text without control characters, at most %d bytes", REASON_MAX);
    return line;
}

static int parse_hosts(int argc, char **argv)
{
    if (optind == argc)
        return usage_error("the name of a host is missing");
    return hosts_are_names(argv + optind, argc - optind) ? -1 : EXIT_USAGE;
}

int eadmin_parse_drain(struct drain *drain, int argc, char **argv)
{
    static const int may_wait[] = {OPTION_REASON, OPTION_WAIT, OPTION_KILL_AFTER, 0};
    static const int always_waits[] = {OPTION_REASON, OPTION_KILL_AFTER, 0};
    const int *takes = drain->wait ? always_waits : may_wait;
    int c;

    /* not "+": options may follow the names */
    while ((c = eadmin_option(argc, argv, "", takes)) != -1) {
        if (c == OPTION_REASON && is_reason(optarg))
            drain->reason = optarg;
        else if (c == OPTION_WAIT)
            drain->wait = true;
        else if (c == OPTION_KILL_AFTER && limit_time("--kill-after", optarg, &drain->kill_after_ms))
            drain->wait = drain->kills = true;
        else if (c == OPTION_REASON || c == OPTION_KILL_AFTER)
            return EXIT_USAGE;
        else
            return common_option(c, argv);
    }
    drain->hosts = argv + optind;
    drain->nhosts = argc - optind;
    return parse_hosts(argc, argv);
}

/* ---- what is still there ---- */

static bool is_there(const struct elmer_job *job, void *data)
{
    const struct drain *drain = data;

    for (size_t i = 0; i < job->nhosts; i++)
        for (int k = 0; k < drain->nhosts; k++)
            if (strcmp(job->hosts[i], drain->hosts[k]) == 0)
                return true;
    return false;
}

static void say_jobs(const struct elmer_jobs *jobs)
{
    printf("waiting for %zu job%s:", jobs->count, jobs->count > 1 ? "s" : "");
    for (size_t i = 0; i < jobs->count && i < JOBS_SAID; i++)
        printf(" %" PRIu64, jobs->items[i].id);
    puts(jobs->count > JOBS_SAID ? " .." : "");
    fflush(stdout);
}

static int take_done(struct wire_message *answer, void *data)
{
    if (answer->type != WIRE_done)
        return -EPROTO;
    client_error(data, 0, "%s", answer->u.done.text);
    return 0;
}

/* The owner reads why: the first of the drained hosts on which the job is. malloc'd. */
static char *why_ended(const struct drain *drain, const struct elmer_job *job)
{
    char *text = NULL;

    for (int k = 0; k < drain->nhosts && !text; k++)
        for (size_t i = 0; i < job->nhosts && !text; i++)
            if (strcmp(job->hosts[i], drain->hosts[k]) == 0)
                text = must(
                    str_format("host %s is drained%s%s", drain->hosts[k], *drain->reason ? ": " : "", drain->reason));
    return text ? text : must(strdup(""));
}

static int kill_jobs(struct elmer *elmer, struct drain *drain, const struct elmer_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++) {
        struct elmer_error text = {{0}}, error = {{0}};
        char *why = why_ended(drain, &jobs->items[i]), reason[REASON_MAX + 1];
        struct wire_message request = {.type = WIRE_kill,
                                       .u.kill = {.job = jobs->items[i].id,
                                                  .tasks = "",
                                                  .reason = str_printable(reason, sizeof(reason), why, strlen(why))}};
        struct client_call call = {.take = take_done, .data = &text};
        int result = client_call(elmer, &request, &call, ANSWER_MS, &error);

        free(why);
        if (patience_passes(result, &error)) {
            drain->kills = true; /* those that are still there by then */
            break;
        }
        if (result == ELMER_OK)
            puts(text.text);
        else if (result != ELMER_WRONG_STATE && result != ELMER_NO_SUCH_JOB) /* it has ended meanwhile */
            return say_result(result, &error);
    }
    fflush(stdout);
    return EXIT_DONE;
}

static int wait_until_free(struct elmer *elmer, struct drain *drain)
{
    int64_t begin_ms = mono_ms(mono_now());
    size_t said = 0;
    int code = EXIT_DONE;

    for (;;) {
        struct elmer_error error = {{0}};
        struct elmer_jobs *jobs = NULL;
        int result = elmer_list(elmer, true, false, ANSWER_MS, &jobs, &error);

        if (patience_passes(result, &error)) {
            sleep(1);
            continue;
        }
        if (result != ELMER_OK)
            return say_result(result, &error);
        if (waiting_was_said())
            say("elmer is back, still waiting until there are no jobs");
        elmer_jobs_keep(jobs, is_there, drain);
        if (jobs->count > 0 && jobs->count != said)
            say_jobs(jobs);
        said = jobs->count;
        if (said > 0 && drain->kills && mono_ms(mono_now()) - begin_ms >= (int64_t)drain->kill_after_ms) {
            drain->kills = false;
            code = kill_jobs(elmer, drain, jobs);
        }
        elmer_jobs_free(jobs);
        if (said == 0 || code != EXIT_DONE)
            return code;
        sleep(1);
    }
}

/* ---- the verbs ---- */

static struct wire_message drain_request(const char *host, const char *reason, bool drained)
{
    return (struct wire_message){.type = WIRE_drain, .u.drain = {.host = host, .drained = drained, .reason = reason}};
}

static int worse(int a, int b)
{
    return a > b ? a : b;
}

int eadmin_drain_hosts(struct drain *drain)
{
    struct elmer *elmer = open_elmer();
    int code = EXIT_DONE;

    if (!elmer)
        return EXIT_REFUSED;
    for (int i = 0; i < drain->nhosts; i++) {
        struct wire_message request = drain_request(drain->hosts[i], drain->reason, true);

        code = worse(code, eadmin_done(elmer, &request));
    }
    if (code == EXIT_DONE && drain->wait) {
        code = wait_until_free(elmer, drain);
        for (int i = 0; code == EXIT_DONE && i < drain->nhosts; i++)
            printf("host %s has no jobs\n", drain->hosts[i]);
    }
    elmer_close(elmer);
    return finish_output(code);
}

int eadmin_drain(int argc, char **argv)
{
    struct drain drain = {.reason = ""};
    int code = eadmin_parse_drain(&drain, argc, argv);

    return code < 0 ? eadmin_drain_hosts(&drain) : code;
}

/* No options but the common ones, and names. */
static int each_host(int argc, char **argv, struct wire_message (*request_for)(const char *host))
{
    static const int takes[] = {0};
    int c = eadmin_option(argc, argv, "", takes), code;
    struct elmer *elmer;

    if (c != -1)
        return common_option(c, argv);
    code = parse_hosts(argc, argv);
    if (code >= 0)
        return code;
    elmer = open_elmer();
    if (!elmer)
        return EXIT_REFUSED;
    code = EXIT_DONE;
    for (int i = optind; i < argc; i++) {
        struct wire_message request = request_for(argv[i]);

        code = worse(code, eadmin_done(elmer, &request));
    }
    elmer_close(elmer);
    return finish_output(code);
}

static struct wire_message resume_request(const char *host)
{
    return drain_request(host, "", false);
}

int eadmin_resume(int argc, char **argv)
{
    return each_host(argc, argv, resume_request);
}

static struct wire_message remove_request(const char *host)
{
    return (struct wire_message){.type = WIRE_remove_host, .u.remove_host = {.host = host}};
}

int eadmin_remove(int argc, char **argv)
{
    return each_host(argc, argv, remove_request);
}
