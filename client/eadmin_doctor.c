/* eadmin_doctor.c - doctor: is the cluster well, and if not, what is to be done?
 *
 * Elmer's address, the disk of its store, and as root its certificate, are looked at first, where they are on this
 * host; then elmer is asked for its hosts, names are looked up, and jobs are tried. Jobs are a user's: where root asks,
 * the rest is done as the user that --user names, or that has called sudo. All that was found is printed at the end,
 * the worst is the exit status. */
#include "config.h"

#include "client/eadmin.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/host_pages.h"
#include "client/config_check.h"
#include "client/doctor.h"
#include "client/eadmin_root.h"
#include "client/table.h"
#include "elmer/settings.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/pki/ca.h"
#include "lib/pki/x509.h"

enum { CERTIFICATE_BYTES = 65536 };

struct doctor {
    bool json, no_jobs;
    const char *user;
    char **names; /* argv: of the hosts, or patterns */
    int nnames;
    struct findings findings;
};

static int parse(struct doctor *doctor, int argc, char **argv)
{
    static const int takes[] = {OPTION_JSON, OPTION_USER, OPTION_NO_JOBS, 0};
    int c;

    while ((c = eadmin_option(argc, argv, "", takes)) != -1) {
        if (c == OPTION_JSON)
            doctor->json = true;
        else if (c == OPTION_USER)
            doctor->user = optarg;
        else if (c == OPTION_NO_JOBS)
            doctor->no_jobs = true;
        else
            return common_option(c, argv);
    }
    doctor->names = argv + optind;
    doctor->nnames = argc - optind;
    return -1;
}

/* ---- this host ---- */

static void judge_disk(struct findings *findings, const char *path)
{
    struct statvfs disk;

    if (statvfs(path, &disk) == 0)
        doctor_judge_disk(findings, "", "store", path, (uint64_t)disk.f_bavail * disk.f_frsize,
                          (uint64_t)disk.f_blocks * disk.f_frsize);
}

/* Users cannot read it; on other hosts there is none. */
static void look_at_certificate(struct findings *findings, const char *pki)
{
    struct pki_certificate facts;
    struct err err = ERR_INIT;
    char *text = NULL, *path = must(str_format("%s/host.crt", pki));

    if (file_read(AT_FDCWD, path, CERTIFICATE_BYTES, &text, &err) >= 0 && pki_inspect(text, &facts, NULL) == 0)
        doctor_judge_own_certificate(findings, facts.end_s * 1000, wall_now().ms,
                                     doctor_late_ms((facts.end_s - facts.begin_s) * 1000));
    free(text);
    free(path);
}

/* A configuration that cannot be read is elmer's matter, which says so. */
static void look_here(struct findings *findings)
{
    struct settings settings = {0};
    bool known = settings_load(&settings, ELMER_SYSCONFDIR "/elmer.conf", false, NULL) == 0;
    char *store = must(strdup(known ? settings.store : ELMER_STATEDIR "/elmer.db"));

    if (known)
        doctor_judge_listen(findings, settings.listen, settings.socket);
    judge_disk(findings, dirname(store));
    look_at_certificate(findings, known ? settings.pki : ELMER_STATEDIR "/pki");
    free(store);
    settings_fini(&settings);
}

/* Of hosts' certificates, which are signed here for so long; elsewhere, where no ca.conf is, for a year. */
static int64_t late_ms(void)
{
    struct ca ca = {.valid_ms = CA_VALID_MS};

    (void)ca_configure(&ca, EADMIN_CA_CONFIG, NULL);
    return doctor_late_ms(ca.valid_ms);
}

/* ---- hosts ---- */

static bool is_meant(const struct doctor *doctor, const char *host, bool *found)
{
    bool meant = doctor->nnames == 0;

    for (int i = 0; i < doctor->nnames; i++)
        if (fnmatch(doctor->names[i], host, 0) == 0)
            meant = found[i] = true;
    return meant;
}

static size_t judge_hosts(struct doctor *doctor, const struct host_pages *pages, struct doctor_host **hosts)
{
    bool *found = must(calloc((size_t)doctor->nnames + 1, sizeof(*found)));
    int64_t late = late_ms();
    size_t count = 0;

    *hosts = NULL;
    for (size_t i = 0; i < pages->count; i++)
        for (size_t k = 0; k < pages->items[i].u.hosts.hosts.count; k++) {
            const struct wire_host_view *view = &pages->items[i].u.hosts.hosts.items[k];

            if (!is_meant(doctor, view->host, found))
                continue;
            doctor_judge_name(&doctor->findings, view->host, view->local);
            if (!doctor_judge_view(&doctor->findings, view, wall_now().ms, late))
                continue;
            *hosts = must(reallocarray(*hosts, count + 1, sizeof(**hosts)));
            (*hosts)[count++] = (struct doctor_host){view->host, view->version};
        }
    for (int i = 0; i < doctor->nnames; i++)
        if (!found[i])
            finding_add(&doctor->findings, FINDING_BAD, doctor->names[i], "link",
                        "is no host of this cluster: eadmin hosts shows them; hosts = in elmer.conf");
    free(found);
    return count;
}

static void ask(struct doctor *doctor)
{
    struct host_pages pages = {.count = 0};
    struct elmer_error error = {{0}};
    struct doctor_host *hosts = NULL;
    struct elmer *elmer = open_elmer();
    size_t count = 0;
    int result = elmer ? host_pages_ask(elmer, &pages, &error) : ELMER_FAILED;

    if (result == ELMER_OK) {
        finding_add(&doctor->findings, FINDING_GOOD, "", "elmer", "answers");
        count = judge_hosts(doctor, &pages, &hosts);
    } else {
        finding_add(&doctor->findings, FINDING_BAD, "", "elmer", "%s", elmer ? error.text : "out of memory");
    }
    if (count > 0 && !doctor->no_jobs && geteuid() == 0)
        finding_add(&doctor->findings, FINDING_WARNING, "", "job",
                    "no job was tried, because root runs none: eadmin doctor --user NAME");
    else if (count > 0 && !doctor->no_jobs)
        doctor_try(&doctor->findings, elmer, hosts, count);
    free(hosts);
    host_pages_free(&pages);
    elmer_close(elmer);
}

/* As the user: what is found after the change of process is printed there. */
static int work(void *data)
{
    struct doctor *doctor = data;
    int code;

    ask(doctor);
    if (doctor->json)
        findings_print_json(&doctor->findings);
    else
        findings_print(&doctor->findings, table_terminal_width());
    code = findings_code(&doctor->findings);
    findings_fini(&doctor->findings);
    return finish_output(code);
}

int eadmin_doctor(int argc, char **argv)
{
    struct doctor doctor = {.user = NULL};
    const struct passwd *user = NULL;
    int code = parse(&doctor, argc, argv);

    if (code >= 0)
        return code;
    if (!doctor.user && geteuid() == 0)
        doctor.user = getenv("SUDO_USER");
    if (doctor.user && !(user = getpwnam(doctor.user)))
        return usage_error("there is no user '%s'", doctor.user);
    if (user && geteuid() != 0 && user->pw_uid != geteuid()) {
        say("only root tries jobs of another user");
        return EXIT_PERMISSION;
    }
    look_here(&doctor.findings);
    code = user ? config_as_user(user, work, &doctor) : work(&doctor);
    findings_fini(&doctor.findings); /* of a user's process they are a copy */
    return code;
}
