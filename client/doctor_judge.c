/* doctor_judge.c - what is good, what is not, and what is to be done: each check of eadmin doctor. */
#include "config.h"

#include "client/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/config_check.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"

enum {
    CLOCK_S = 2,           /* nobody notices less */
    FILES_MIN = 1024,      /* descriptors that a program may have */
    PROCESSES_MIN = 256,   /* of the user */
    CERTIFICATE_DAYS = 14, /* of a year; it is renewed long before */
    FREE_PERCENT_BAD = 2,
    FREE_PERCENT_WARNING = 10
};
#define FREE_BAD ((uint64_t)64 << 20)

/* ---- names ---- */

void doctor_judge_name(struct findings *findings, const char *host, bool own)
{
    char text[256], address[64];

    switch (config_look_up(host, text, sizeof(text))) {
    case NAME_GOOD:
        finding_add(findings, FINDING_GOOD, host, "name", "is %s here", text);
        return;
    case NAME_UNKNOWN:
        finding_add(findings, FINDING_BAD, host, "name",
                    "is not known here (%s): write it with its address into /etc/hosts of every host, or into the DNS",
                    text);
        return;
    case NAME_LOOPBACK:
        break;
    }
    config_own_address(address, sizeof(address));
    if (own)
        finding_add(findings, FINDING_BAD, host, "name",
                    "is %s here, which no other host reaches: in /etc/hosts write \"%s %s\" in place of that line",
                    text, address[0] ? address : "ADDRESS", host);
    else
        finding_add(findings, FINDING_BAD, host, "name",
                    "is %s here, which is this host itself: write its own address into /etc/hosts", text);
}

/* ---- elmer's address ---- */

void doctor_judge_listen(struct findings *findings, const char *listen, const char *socket_path)
{
    struct err err = ERR_INIT;
    uid_t elmer;
    int who;

    if (!listen || !config_elmer_runs(socket_path, &elmer))
        return;
    who = config_who_listens(listen, elmer, &err);
    if (who == LISTENS_ELMER)
        finding_add(findings, FINDING_GOOD, "", "listen", "elmer listens on %s", listen);
    else if (who == LISTENS_OTHER)
        finding_add(
            findings, FINDING_BAD, "", "listen",
            "another program has %s, so other hosts cannot link: ss -ltnp says which; stop it, or write another "
            "port into elmer.conf, and rsd.conf of the hosts",
            listen);
    else if (who == LISTENS_NOBODY)
        finding_add(findings, FINDING_BAD, "", "listen",
                    "elmer does not listen on %s, so other hosts cannot link: systemctl status elmer says why", listen);
    else
        finding_add(findings, FINDING_BAD, "", "listen", "%s: eadmin config check says what to do", err.text);
}

/* ---- disks ---- */

void doctor_judge_disk(struct findings *findings, const char *host, const char *check, const char *path, uint64_t free,
                       uint64_t size)
{
    const double mib = 1 << 20, percent = size > 0 ? 100.0 * (double)free / (double)size : 0;

    if (size == 0) /* a file system without bounds */
        finding_add(findings, FINDING_GOOD, host, check, "%s has no bound", path);
    else if (free < FREE_BAD || percent < FREE_PERCENT_BAD)
        finding_add(findings, FINDING_BAD, host, check, "%s has %.0f MiB free of %.0f: free some", path,
                    (double)free / mib, (double)size / mib);
    else if (percent < FREE_PERCENT_WARNING)
        finding_add(findings, FINDING_WARNING, host, check, "%s has %.0f MiB free of %.0f: it will be full soon", path,
                    (double)free / mib, (double)size / mib);
    else
        finding_add(findings, FINDING_GOOD, host, check, "%s has %.1f GiB free", path, (double)free / mib / 1024);
}

/* ---- what elmer says ---- */

/* It is renewed when a third is left, so half of that is late. */
int64_t doctor_late_ms(int64_t valid_ms)
{
    const int64_t most = CERTIFICATE_DAYS * INT64_C(86400000);

    return valid_ms / 6 < most ? valid_ms / 6 : most;
}

static void judge_date(struct findings *findings, const char *host, int64_t until_ms, int64_t now_ms, int64_t late_ms,
                       const char *otherwise)
{
    char until[32];

    wall_format((struct wall){until_ms}, until, sizeof(until));
    until[10] = 0;
    if (until_ms < now_ms)
        finding_add(findings, FINDING_BAD, host, "certificate", "was good until %s: %s", until, otherwise);
    else if (until_ms < now_ms + late_ms)
        finding_add(findings, FINDING_WARNING, host, "certificate",
                    "is good until %s and should have been renewed before: journalctl -u elmer-signer@*", until);
    else
        finding_add(findings, FINDING_GOOD, host, "certificate", "is good until %s", until);
}

void doctor_judge_own_certificate(struct findings *findings, int64_t until_ms, int64_t now_ms, int64_t late_ms)
{
    judge_date(findings, "", until_ms, now_ms, late_ms, "eadmin init makes another, then systemctl restart elmer");
}

static void judge_certificate(struct findings *findings, const struct wire_host_view *view, int64_t now_ms,
                              int64_t late_ms)
{
    static const char again[] = "eadmin token here, rsd --join there";

    if (view->local)
        return;
    if (view->certificate)
        judge_date(findings, view->host, view->valid_until_ms, now_ms, late_ms, again);
    else
        finding_add(findings, FINDING_BAD, view->host, "certificate", "it has none that is good: %s", again);
}

/* Of a lack's sentence the part before the colon is what is not there. */
static void judge_mode(struct findings *findings, const struct wire_host_view *view)
{
    if (strcmp(view->mode, "rt") == 0)
        finding_add(findings, FINDING_GOOD, view->host, "real-time", "is permitted: rsd has tried it");
    else if (strstr(view->reason, "the configuration says mode = "))
        finding_add(findings, FINDING_WARNING, view->host, "real-time", "is not used: %s", view->reason);
    else
        finding_add(findings, FINDING_BAD, view->host, "real-time",
                    "is not permitted (mode %s): jobs share that host without the order's full force: %s", view->mode,
                    *view->reason ? view->reason : "journalctl -u 'rsd*' there says why");
    for (size_t i = 0; i < view->lacks.count; i++)
        finding_add(findings, FINDING_WARNING, view->host, "controllers", "%s", view->lacks.items[i]);
    if (view->lacks.count == 0)
        finding_add(findings, FINDING_GOOD, view->host, "controllers", "are all there");
}

static void judge_link(struct findings *findings, const struct wire_host_view *view)
{
    const char *between = *view->reason ? ": " : "";

    if (strcmp(view->state, "up") == 0)
        finding_add(findings, FINDING_GOOD, view->host, "link", "up, from %s",
                    view->local      ? "this host"
                    : *view->address ? view->address
                                     : "there");
    else if (strcmp(view->state, "drained") == 0)
        finding_add(findings, FINDING_WARNING, view->host, "link", "drained%s%s; no job is tried: eadmin resume %s",
                    between, view->reason, view->host);
    else if (view->local && strcmp(view->state, "unusable") != 0 && strcmp(view->state, "leaving") != 0)
        finding_add(findings, FINDING_BAD, view->host, "link",
                    "%s%s%s: it is the queue host, where rsd runs only if it is to have jobs: apt install elmer-rsd "
                    "and systemctl enable --now rsd there, or systemctl status rsd says why not; or take it out of "
                    "\"hosts = ...\"",
                    view->state, between, view->reason);
    else if (strcmp(view->state, "never-seen") == 0)
        finding_add(
            findings, FINDING_BAD, view->host, "link",
            "has never been here%s%s: see rsd and the port there (systemctl status rsd), or eadmin token here and rsd "
            "--join there",
            between, view->reason);
    else
        finding_add(findings, FINDING_BAD, view->host, "link", "%s%s%s: systemctl status rsd there says what rsd knows",
                    view->state, between, view->reason);
}

bool doctor_judge_view(struct findings *findings, const struct wire_host_view *view, int64_t now_ms, int64_t late_ms)
{
    judge_link(findings, view);
    judge_certificate(findings, view, now_ms, late_ms);
    if (strcmp(view->state, "up") != 0 && strcmp(view->state, "drained") != 0)
        return false;
    judge_mode(findings, view);
    return strcmp(view->state, "up") == 0;
}

/* ---- what a job there says ---- */

bool doctor_find(const char *said, const char *word, char value[DOCTOR_VALUE_BYTES])
{
    size_t length = strlen(word);

    for (const char *line = said; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, word, length) == 0 && line[length] == ' ') {
            snprintf(value, DOCTOR_VALUE_BYTES, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
            return true;
        }
    return false;
}

static void judge_clock(struct findings *findings, const char *host, const char *value, const struct doctor_facts *here)
{
    int64_t there = strtoll(value, NULL, 10), off = 0;

    if (there < here->before_s)
        off = there - here->before_s;
    else if (there > here->after_s)
        off = there - here->after_s;
    if (llabs(off) <= CLOCK_S)
        finding_add(findings, FINDING_GOOD, host, "clock", "agrees with the one here");
    else
        finding_add(findings, FINDING_WARNING, host, "clock",
                    "is %" PRId64
                    " s %s the one here: Elmer needs no clock, but files and logs are hard to compare; timedatectl "
                    "set-ntp true there",
                    (int64_t)llabs(off), off < 0 ? "behind" : "before");
}

static void judge_user(struct findings *findings, const char *host, const char *value, const struct doctor_facts *here)
{
    char expected[DOCTOR_VALUE_BYTES];

    snprintf(expected, sizeof(expected), "%s %" PRIu32, here->user, here->uid);
    if (strcmp(value, expected) == 0)
        finding_add(findings, FINDING_GOOD, host, "user", "%s has the number %" PRIu32 ", as here", here->user,
                    here->uid);
    else
        finding_add(
            findings, FINDING_BAD, host, "user",
            "the job of %s runs as \"%s\" there, here that is \"%s\": give users the same name and number everywhere",
            here->user, value, expected);
}

static void judge_home(struct findings *findings, const char *host, const char *value, const struct doctor_facts *here)
{
    if (strcmp(value, "yes") == 0)
        finding_add(findings, FINDING_GOOD, host, "home", "is there, and may be written");
    else if (strstr(value, " may not be written"))
        finding_add(findings, FINDING_BAD, host, "home",
                    "%s: programs of %s have no place for their files there; let it be his (chown), and the file "
                    "system writable",
                    value, here->user);
    else
        finding_add(findings, FINDING_BAD, host, "home",
                    "%s: programs and files of %s are not found there; share the homes, or make it", value, here->user);
}

static void judge_others(struct findings *findings, const char *host, const char *value)
{
    if (strcmp(value, "yes") == 0)
        finding_add(findings, FINDING_GOOD, host, "other-names", "are known there");
    else
        finding_add(findings, FINDING_WARNING, host, "other-names",
                    "%s there, so what goes by names does not reach it: write it with its own address into /etc/hosts "
                    "there, or into the DNS",
                    value);
}

/* Jobs have the limits of rsd-spawn's unit: no session is opened for them. */
static void judge_limit(struct findings *findings, const char *host, const char *what, const char *key,
                        const char *value, uint64_t least)
{
    uint64_t limit;

    if (strcmp(value, "unlimited") == 0 || (str_to_u64(value, &limit) && limit >= least))
        finding_add(findings, FINDING_GOOD, host, "limits", "%s: %s", what, value);
    else
        finding_add(findings, FINDING_WARNING, host, "limits",
                    "%s: %s, and many programs want %" PRIu64 ": systemctl edit rsd-spawn there, [Service] %s=%" PRIu64
                    ", systemctl restart rsd",
                    what, value, least, key, least);
}

static void judge_program(struct findings *findings, const char *host, const char *word, const char *value,
                          const char *without)
{
    if (strcmp(value, "no") != 0)
        finding_add(findings, FINDING_GOOD, host, word, "%s", value);
    else
        finding_add(findings, FINDING_WARNING, host, word, "%s", without);
}

/* Of the file there, and of the program that runs: after an upgrade that has not started it again these are two. */
static void judge_version(struct findings *findings, const char *host, const char *value,
                          const struct doctor_facts *here)
{
    bool same = strcmp(value, here->version) == 0, runs = !*here->running || strcmp(value, here->running) == 0;
    char running[DOCTOR_VALUE_BYTES] = "";

    if (!runs)
        snprintf(running, sizeof(running),
                 "; the rsd that runs there is still %.32s: systemctl restart rsd there, jobs run on", here->running);
    if (same)
        finding_add(findings, runs ? FINDING_GOOD : FINDING_WARNING, host, "version", "%s, as here%s", value, running);
    else
        finding_add(findings, FINDING_WARNING, host, "version",
                    "%s, here %s: each works with the next one; bring all to one%s", value, here->version, running);
}

void doctor_judge_facts(struct findings *findings, const char *host, const char *said, const struct doctor_facts *here)
{
    char value[DOCTOR_VALUE_BYTES];
    uint64_t free, size;

    if (doctor_find(said, "user", value))
        judge_user(findings, host, value, here);
    if (doctor_find(said, "home", value))
        judge_home(findings, host, value, here);
    if (doctor_find(said, "own-name", value)) {
        if (strncmp(value, "127.", 4) == 0)
            finding_add(findings, FINDING_BAD, host, "own-name",
                        "the host's own name is %s there: PVM and MPI tell others that address; give it its own in "
                        "/etc/hosts there",
                        value);
        else if (strcmp(value, "no") == 0)
            finding_add(findings, FINDING_BAD, host, "own-name",
                        "the host does not know its own name: write it with its address into /etc/hosts there");
        else
            finding_add(findings, FINDING_GOOD, host, "own-name", "is %s there", value);
    }
    if (doctor_find(said, "other-names", value))
        judge_others(findings, host, value);
    if (doctor_find(said, "time", value))
        judge_clock(findings, host, value, here);
    if (doctor_find(said, "files", value))
        judge_limit(findings, host, "open files", "LimitNOFILE", value, FILES_MIN);
    if (doctor_find(said, "processes", value))
        judge_limit(findings, host, "processes of a user", "LimitNPROC", value, PROCESSES_MIN);
    if (doctor_find(said, "scratch", value) && sscanf(value, "%" SCNu64 " %" SCNu64, &free, &size) == 2)
        doctor_judge_disk(findings, host, "scratch", "the directory for files of jobs", free << 10, size << 10);
    if (doctor_find(said, "pvm", value))
        judge_program(findings, host, "pvm", value,
                      "is not installed: jobs with --pvm do not start there; apt install pvm");
    if (doctor_find(said, "mpi", value))
        judge_program(findings, host, "mpi", value,
                      "neither Open MPI nor MPICH is installed: apt install openmpi-bin, or mpich");
    if (doctor_find(said, "version", value))
        judge_version(findings, host, value, here);
}

/* ---- how a job went ---- */

/* One that waits only finds other jobs there. One that has begun and comes to no end is what a firewall between hosts
 * makes of it: the programs of a job, PVM and MPI choose their ports themselves. */
static void judge_late(struct findings *findings, const char *where, const char *check,
                       const struct doctor_trial *trial)
{
    if (strcmp(trial->state, "queued") == 0 || strcmp(trial->state, "held") == 0)
        finding_add(findings, FINDING_WARNING, where, check, "the job has not begun in %ld s: %s", trial->seconds,
                    *trial->reason ? trial->reason : "equery --why says more, before it ends");
    else
        finding_add(findings, FINDING_BAD, where, check, "the job has been %s for %ld s%s%s: %s", trial->state,
                    trial->seconds, *trial->reason ? ", " : "", trial->reason,
                    trial->hosts > 1 ? "can the hosts of the job reach each other on any port above 1023 (firewall)?"
                                     : "journalctl -u 'rsd*' there says more");
}

void doctor_judge_trial(struct findings *findings, const char *where, const char *check,
                        const struct doctor_trial *trial)
{
    if (!trial->ended)
        judge_late(findings, where, check, trial);
    else if (trial->exit_status == 0)
        finding_add(findings, FINDING_GOOD, where, check, "has run");
    else
        finding_add(findings, FINDING_BAD, where, check, "the job has failed: %s",
                    *trial->reason ? trial->reason : trial->state);
}
