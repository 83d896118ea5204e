/* test_doctor.c - each thing that eadmin doctor looks at, as it should be and broken: what it says of it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "client/doctor.h"
#include "tests/unit/client/config_bed.h"

static struct findings findings;

static int fini(void **state)
{
    (void)state;
    findings_fini(&findings);
    return 0;
}

/* The one of this check, which is the only one. */
static const struct finding *of(const char *check)
{
    const struct finding *found = NULL;

    for (size_t i = 0; i < findings.count; i++)
        if (strcmp(findings.items[i].check, check) == 0) {
            assert_null(found);
            found = &findings.items[i];
        }
    assert_non_null(found);
    return found;
}

static void expect(const char *check, enum finding_level level, const char *words)
{
    const struct finding *finding = of(check);

    if (finding->level != level || !strstr(finding->text, words))
        fail_msg("%s: level %d, \"%s\"", check, (int)finding->level, finding->text);
    findings_fini(&findings);
}

/* ---- of a host, from here ---- */

#define NOW_MS INT64_C(1795000000000)
#define DAY_MS INT64_C(86400000)

static struct wire_host_view well(void)
{
    static const char state[] = "up", mode[] = "rt";

    return (struct wire_host_view){.host = "ws2",
                                   .state = state,
                                   .mode = mode,
                                   .processors = 2,
                                   .address = "10.0.0.2",
                                   .certificate = true,
                                   .valid_until_ms = NOW_MS + 300 * DAY_MS,
                                   .reason = ""};
}

static bool judge(const struct wire_host_view *view)
{
    findings_fini(&findings);
    return doctor_judge_view(&findings, view, NOW_MS, doctor_late_ms(365 * DAY_MS));
}

static void test_view_well(void **state)
{
    struct wire_host_view view = well();

    (void)state;
    assert_true(judge(&view));
    assert_int_equal(findings.count, 4);
    assert_int_equal(findings_code(&findings), EXIT_DONE);
    expect("link", FINDING_GOOD, "up, from 10.0.0.2");
    view.local = true;
    view.certificate = false; /* it needs none */
    assert_true(judge(&view));
    assert_int_equal(findings.count, 3);
    expect("link", FINDING_GOOD, "up, from this host");
}

static void test_view_links(void **state)
{
    static const struct {
        const char *state, *reason, *words;
        enum finding_level level;
    } table[] = {
        {"down", "refused 8 s ago: certificate revoked",
         "down: refused 8 s ago: certificate revoked: systemctl status rsd", FINDING_BAD},
        {"silent", "", "silent: systemctl status rsd", FINDING_BAD},
        {"never-seen", "", "eadmin token", FINDING_BAD},
        {"unusable", "no CPU of elmer.conf is there", "unusable: no CPU of elmer.conf is there: systemctl",
         FINDING_BAD},
        {"drained", "drained by carol: disk", "eadmin resume ws2", FINDING_WARNING},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct wire_host_view view = well();

        view.state = table[i].state;
        view.reason = table[i].reason;
        assert_false(judge(&view)); /* no job is tried there */
        assert_int_equal(findings_code(&findings), table[i].level == FINDING_BAD ? EXIT_REFUSED : EXIT_DONE);
        expect("link", table[i].level, table[i].words);
    }
}

/* The queue host has no certificate, and needs none: who follows such advice is refused by rsd --join. */
static void test_view_queue_host(void **state)
{
    static const char *const states[] = {"never-seen", "down", "suspect"};

    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
        struct wire_host_view view = well();

        view.local = true;
        view.certificate = false;
        view.state = states[i];
        view.reason = "not heard";
        assert_false(judge(&view));
        assert_int_equal(findings.count, 1);
        assert_null(strstr(findings.items[0].text, "eadmin token"));
        expect("link", FINDING_BAD,
               ": not heard: it is the queue host, where rsd runs only if it is to have jobs: apt");
    }
}

static void test_view_certificates(void **state)
{
    struct wire_host_view view = well();

    (void)state;
    view.valid_until_ms = NOW_MS + 13 * DAY_MS;
    judge(&view);
    expect("certificate", FINDING_WARNING, "elmer-signer");
    view.valid_until_ms = NOW_MS - 1;
    judge(&view);
    expect("certificate", FINDING_BAD, "eadmin token");
    view.certificate = false;
    judge(&view);
    expect("certificate", FINDING_BAD, "none that is good");
    view = well();
    judge(&view);
    expect("certificate", FINDING_GOOD, "good until 2027-");
    doctor_judge_own_certificate(&findings, NOW_MS - 1, NOW_MS, 14 * DAY_MS); /* elmer's */
    expect("certificate", FINDING_BAD, "eadmin init makes another");
    doctor_judge_own_certificate(&findings, NOW_MS + 15 * DAY_MS, NOW_MS, 14 * DAY_MS);
    expect("certificate", FINDING_GOOD, "good until 2026-");
    assert_int_equal(doctor_late_ms(365 * DAY_MS), 14 * DAY_MS);
    assert_int_equal(doctor_late_ms(12 * DAY_MS), 2 * DAY_MS); /* it is renewed when four days are left */
    doctor_judge_own_certificate(&findings, NOW_MS + 3 * DAY_MS, NOW_MS, 2 * DAY_MS);
    expect("certificate", FINDING_GOOD, "good until 2026-");
    doctor_judge_own_certificate(&findings, NOW_MS + DAY_MS, NOW_MS, 2 * DAY_MS);
    expect("certificate", FINDING_WARNING, "should have been renewed before");
}

static void test_view_kernel(void **state)
{
    const char *lacks[] = {"no controller cpu: a bomb makes logins slow"};
    struct wire_host_view view = well();

    (void)state;
    view.mode = "idle";
    judge(&view);
    expect("real-time", FINDING_BAD, "not permitted (mode idle)");
    view.reason = "RestrictRealtime= in the unit";
    judge(&view);
    expect("real-time", FINDING_BAD, "full force: RestrictRealtime= in the unit");
    view.reason = "the configuration says mode = idle"; /* nobody has to mend it */
    judge(&view);
    expect("real-time", FINDING_WARNING, "is not used: the configuration says mode = idle");
    view.lacks.items = lacks;
    view.lacks.count = 1;
    judge(&view);
    expect("controllers", FINDING_WARNING, "no controller cpu: a bomb makes logins slow");
}

static void test_disk(void **state)
{
    const uint64_t gib = UINT64_C(1) << 30;

    (void)state;
    doctor_judge_disk(&findings, "", "store", "/var/lib/elmer", 50 * gib, 100 * gib);
    expect("store", FINDING_GOOD, "50.0 GiB free");
    doctor_judge_disk(&findings, "", "store", "/var/lib/elmer", 9 * gib, 100 * gib);
    expect("store", FINDING_WARNING, "full soon");
    doctor_judge_disk(&findings, "", "store", "/var/lib/elmer", gib, 100 * gib);
    expect("store", FINDING_BAD, "1024 MiB free of 102400: free some");
    doctor_judge_disk(&findings, "", "store", "/var/lib/elmer", 60 << 20, 200 << 20);
    expect("store", FINDING_BAD, "free some");
    doctor_judge_disk(&findings, "", "scratch", "/x", 0, 0);
    expect("scratch", FINDING_GOOD, "no bound");
}

static void expect_listen(const char *host, unsigned port, enum finding_level level, const char *words)
{
    char path[100], listen[64];

    snprintf(path, sizeof(path), "%s/s", bed.dir);
    snprintf(listen, sizeof(listen), "%s:%u", host, port);
    doctor_judge_listen(&findings, listen, path);
    expect("listen", level, words);
}

static void test_listen(void **state)
{
    char path[100];
    unsigned port;
    int elmer, fd;

    (void)state;
    bed_begin();
    snprintf(path, sizeof(path), "%s/s", bed.dir);
    doctor_judge_listen(&findings, "ws1:7110", path); /* this is no queue host */
    elmer = bed_serve();
    doctor_judge_listen(&findings, NULL, path);
    assert_int_equal(findings.count, 0);
    fd = bed_listen("0.0.0.0", geteuid(), &port);
    expect_listen("*", port, FINDING_GOOD, "elmer listens on *:");
    expect_listen("ws1", port, FINDING_GOOD, "elmer listens on ws1:");
    expect_listen("[fd00::1]", port, FINDING_BAD, "elmer does not listen on [fd00::1]:");
    expect_listen("ws1", 1, FINDING_BAD,
                  "not listen on ws1:1, so other hosts cannot link: systemctl status elmer says");
    expect_listen("ghost", port, FINDING_BAD, "cannot find the address of ghost:");
    close(fd);
    expect_listen("ws1", port, FINDING_BAD, "elmer does not listen on ws1:");
    if (access("/proc/net/if_inet6", F_OK) == 0) {
        fd = bed_listen("::", geteuid(), &port);
        expect_listen("*", port, FINDING_GOOD, "elmer listens on *:");
        expect_listen("ws1", port, FINDING_GOOD, "elmer listens on ws1:");
        expect_listen("[fd00::1]", port, FINDING_GOOD, "elmer listens on [fd00::1]:");
        close(fd);
    }
    close(elmer);
}

static void test_listen_others(void **state)
{
    const uid_t nobody = 65534;
    unsigned port;
    int elmer, fd;

    (void)state;
    if (geteuid() != 0)
        skip(); /* only root makes sockets of others */
    bed_begin();
    elmer = bed_serve();
    fd = bed_listen("127.0.0.1", nobody, &port);
    expect_listen("*", port, FINDING_BAD, "so other hosts cannot link: ss -ltnp says which; stop it");
    expect_listen("127.0.0.1", port, FINDING_BAD, "another program has 127.0.0.1:");
    expect_listen("ws1", port, FINDING_BAD, "elmer does not listen on ws1:");
    close(fd);
    fd = bed_listen("0.0.0.0", nobody, &port);
    expect_listen("ws1", port, FINDING_BAD, "another program has ws1:");
    close(fd);
    close(elmer);
}

static void test_names(void **state)
{
    static const char *const names[][2] = {{"ws2", "10.0.0.2"}, {"ws1", "127.0.1.1"}};

    (void)state;
    memset(&bed, 0, sizeof(bed)); /* whose name service it is */
    memcpy(bed.names, names, sizeof(names));
    doctor_judge_name(&findings, "ws2", false);
    expect("name", FINDING_GOOD, "10.0.0.2");
    doctor_judge_name(&findings, "ws1", true);
    expect("name", FINDING_BAD, "127.0.1.1 here, which no other host reaches: in /etc/hosts write");
    doctor_judge_name(&findings, "ws1", false);
    expect("name", FINDING_BAD, "which is this host itself");
    doctor_judge_name(&findings, "ws3", false);
    expect("name", FINDING_BAD, "not known here");
}

/* ---- of a host, from there ---- */

#define WELL                                                                                                           \
    "user alice 2001\nhome yes\nown-name 10.0.0.2\nother-names yes\ntime 1000\nfiles 1024\nprocesses 9000\n"           \
    "scratch 5000000 9000000\npvm /usr/bin/pvmd\nmpi /usr/bin/mpirun\nversion 1.0\nend yes\n"

static const struct doctor_facts here = {
    .user = "alice", .uid = 2001, .version = "1.0", .running = "", .before_s = 999, .after_s = 1001};

static void test_facts_well(void **state)
{
    (void)state;
    doctor_judge_facts(&findings, "ws2", WELL, &here);
    assert_int_equal(findings.count, 11);
    for (size_t i = 0; i < findings.count; i++) {
        assert_int_equal(findings.items[i].level, FINDING_GOOD);
        assert_string_equal(findings.items[i].host, "ws2");
    }
    char value[DOCTOR_VALUE_BYTES];
    assert_true(doctor_find(WELL, "end", value));
    assert_string_equal(value, "yes");
    assert_true(doctor_find(WELL, "mpi", value));
    assert_string_equal(value, "/usr/bin/mpirun");
    assert_false(doctor_find(WELL, "en", value));
    assert_false(doctor_find("end", "end", value));
}

static void test_facts_broken(void **state)
{
    static const struct {
        const char *line, *check, *words;
        enum finding_level level;
    } table[] = {
        {"user alice 1000", "user", "same name and number everywhere", FINDING_BAD},
        {"user bob 2001", "user", "same name and number everywhere", FINDING_BAD},
        {"home /home/alice is not there", "home", "share the homes", FINDING_BAD},
        {"home /home/alice may not be written", "home", "let it be his (chown)", FINDING_BAD},
        {"own-name 127.0.1.1", "own-name", "/etc/hosts there", FINDING_BAD},
        {"own-name no", "own-name", "does not know its own name", FINDING_BAD},
        {"other-names ws3 is not known, ws4 is 127.0.1.1", "other-names",
         "ws4 is 127.0.1.1 there, so what goes by names does not reach it: write it", FINDING_WARNING},
        {"time 940", "clock", "59 s behind the one here", FINDING_WARNING},
        {"time 31536000", "clock", "before the one here", FINDING_WARNING},
        {"files 256", "limits",
         "open files: 256, and many programs want 1024: systemctl edit rsd-spawn there, [Service] LimitNOFILE=1024",
         FINDING_WARNING},
        {"processes 64", "limits", "LimitNPROC=256", FINDING_WARNING},
        {"scratch 100 9000000", "scratch", "free some", FINDING_BAD},
        {"pvm no", "pvm", "apt install pvm", FINDING_WARNING},
        {"mpi no", "mpi", "apt install openmpi-bin", FINDING_WARNING},
        {"version 0.9", "version", "0.9, here 1.0", FINDING_WARNING},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        doctor_judge_facts(&findings, "ws2", table[i].line, &here);
        assert_int_equal(findings.count, 1);
        expect(table[i].check, table[i].level, table[i].words);
    }
    struct doctor_facts runs = here;
    runs.running = "1.0";
    doctor_judge_facts(&findings, "ws2", "version 1.0\n", &runs);
    expect("version", FINDING_GOOD, "1.0, as here");
    runs.running = "0.9";
    doctor_judge_facts(&findings, "ws2", "version 1.0\n", &runs);
    expect("version", FINDING_WARNING, "1.0, as here; the rsd that runs there is still 0.9: systemctl restart rsd");
    doctor_judge_facts(&findings, "ws2", "version 0.8\n", &runs);
    expect("version", FINDING_WARNING, "bring all to one; the rsd that runs there is still 0.9");
    doctor_judge_facts(&findings, "ws2", "files unlimited\n", &here);
    expect("limits", FINDING_GOOD, "unlimited");
    doctor_judge_facts(&findings, "ws2", "what\nis it\n\n", &here); /* of a later version */
    assert_int_equal(findings.count, 0);
}

/* ---- how its jobs went ---- */

static void test_trials(void **state)
{
    static const struct {
        struct doctor_trial trial;
        enum finding_level level;
        const char *words;
    } table[] = {
        {{"done", "", 1, true, 0, 1}, FINDING_GOOD, "has run"},
        {{"done", "exit status 3", 2, true, 3, 1}, FINDING_BAD, "the job has failed: exit status 3"},
        {{"queued", "waits for ws2", 2, false, -1, 31}, FINDING_WARNING, "not begun in 31 s: waits for ws2"},
        {{"queued", "", 2, false, -1, 31}, FINDING_WARNING, "not begun in 31 s: equery --why"},
        {{"running", "", 2, false, -1, 31}, FINDING_BAD, "running for 31 s: can the hosts of the job reach each other"},
        {{"starting", "", 2, false, -1, 31}, FINDING_BAD, "starting for 31 s: can the hosts"},
        {{"ending", "asks ws2", 2, false, -1, 31}, FINDING_BAD, "ending for 31 s, asks ws2: can the hosts"},
        {{"running", "", 1, false, -1, 31}, FINDING_BAD, "running for 31 s: journalctl -u 'rsd*' there"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        doctor_judge_trial(&findings, "ws2", "job", &table[i].trial);
        assert_int_equal(findings_code(&findings), table[i].level == FINDING_BAD ? EXIT_REFUSED : EXIT_DONE);
        expect("job", table[i].level, table[i].words);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, fini)
    const struct CMUnitTest tests[] = {
        TEST(test_view_well),     TEST(test_view_links), TEST(test_view_queue_host), TEST(test_view_certificates),
        TEST(test_view_kernel),   TEST(test_disk),       TEST(test_names),           TEST(test_listen),
        TEST(test_listen_others), TEST(test_facts_well), TEST(test_facts_broken),    TEST(test_trials)};

    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
