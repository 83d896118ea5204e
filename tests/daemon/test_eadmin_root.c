/* test_eadmin_root.c - what root does on a queue host as the README says it: there is no elmer.conf, only the fragment
 * of eadmin init. eadmin runs in namespaces of its own, where /etc and /var/lib are empty. */
#include "config.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "elmer/store/store.h"
#include "lib/base/file.h"
#include "lib/pki/ca.h"
#include "tests/unit/scratch.h"

enum { SKIPPED = 77, ELMER_UID = 64991, TEXT = 1 << 16 };

#define STORE    "/var/lib/elmer/elmer.db"
#define FRAGMENT "/etc/elmer/elmer.conf.d/50-init.conf"

static char said[TEXT];

/* The text of a file; "": it is not there. malloc'd. */
static char *text_of(const char *path)
{
    char *text = NULL;

    return file_read(AT_FDCWD, path, TEXT - 1, &text, NULL) == 0 ? text : strdup("");
}

/* The exit status; what is said is in said. */
static int eadmin(const char *args)
{
    const char *program = getenv("EADMIN_PROGRAM");
    char line[500], *text;
    int status;

    snprintf(line, sizeof(line), "%s %s >/var/lib/said 2>&1 </dev/null", program ? program : "client/eadmin", args);
    status = system(line);
    text = text_of("/var/lib/said");
    snprintf(said, sizeof(said), "%s", text);
    free(text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(int status, const char *args, const char *words)
{
    int code = eadmin(args);

    if (code != status || !strstr(said, words))
        fail_msg("eadmin %s: status %d, and \"%s\" does not say \"%s\"", args, code, said, words);
}

static void expect_same(const char *path, const char *text)
{
    char *now = text_of(path);

    assert_string_equal(now, text);
    free(now);
}

static void ignore_commit(uint64_t number, void *data)
{
    (void)number, (void)data;
}

static void ignore_text(const char *text, void *data)
{
    (void)text, (void)data;
}

/* As elmer leaves it. */
static void make_store(void)
{
    static const struct store_callbacks callbacks = {ignore_commit, ignore_text, ignore_text};
    struct store *store;
    struct err err = ERR_INIT;
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    if (store_open(&loop, STORE, &callbacks, NULL, &store, &err) != 0)
        fail_msg("%s", err.text);
    store_close(store);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(system("chown -R elmer: /var/lib/elmer"), 0);
}

/* ---- the tests, one after the other ---- */

/* The first eadmin init. */
static void a_refusal_leaves_nothing(void **state)
{
    (void)state;
    expect(2, "init --hosts queue,ws2,ws2", "--hosts names ws2 twice");
    expect(1, "init --hosts queue,ws2 --listen 192.0.2.9", "it is no address of this host");
    expect(1, "init --hosts queue,ws2 --listen 192.0.2.9 --now", "it is no address of this host");
    assert_int_equal(access("/etc/elmer/elmer.conf.d", F_OK), -1);
    assert_int_equal(access(CA_DIR, F_OK), -1);
    expect(1, "token", "there is no CA here");
    expect(1, "backup /var/lib/backup", "there is no CA here");
}

static void a_cluster_has_no_elmer_conf(void **state)
{
    (void)state;
    expect(0, "init --hosts queue,ws2", "The CA is made");
    assert_int_equal(access("/etc/elmer/elmer.conf", F_OK), -1);
    expect_same(FRAGMENT, "# Written by eadmin init; it counts more than elmer.conf.\n[elmer]\nlisten = queue:7110\n"
                          "hosts = queue ws2\n");
    expect(0, "init", "it stays");
    expect(0, "token --hosts ws2", "elmer1");
    expect(0, "config show", "50-init.conf:4");
    make_store();
    expect(0, "config check", "OK: 2 hosts, listen queue:7110");
}

/* Some hosts reach elmer by alt: each further certificate must name that, however it comes about. */
static void names_of_before_stay(void **state)
{
    (void)state;
    expect(0, "init --address alt --address 192.0.2.77 --address 2001:db8::7",
           "for queue, alt, 192.0.2.77, 2001:db8::7.");
    expect(0, "init --address other", "for queue, other, alt, 192.0.2.77, 2001:db8::7.");
    expect(0, "init", "it stays");
    assert_int_equal(system("rm /var/lib/elmer/pki/host.*"), 0); /* somebody else may have its key */
    expect(0, "init", "for queue, other, alt, 192.0.2.77, 2001:db8::7.");
    assert_int_equal(system("rm " CA_DIR "/elmer.crt"), 0); /* a CA of before this was kept */
    expect(0, "init --address alt", "for queue, alt, other, 192.0.2.77, 2001:db8::7.");
    assert_int_equal(system("rm " CA_DIR "/elmer.crt /var/lib/elmer/pki/host.*"), 0); /* so names are taken out */
    expect(0, "init --address alt", "for queue, alt.");
}

static void it_is_backed_up(void **state)
{
    (void)state;
    expect(0, "backup /var/lib/backup", "has the queue, the configuration and the CA");
    assert_int_equal(system("tar tf /var/lib/backup >/var/lib/said"), 0);
    assert_int_equal(system("grep -qx elmer-backup/etc/elmer.conf.d/50-init.conf /var/lib/said"), 0);
    assert_int_not_equal(system("grep -qx elmer-backup/etc/elmer.conf /var/lib/said"), 0);
    expect(1, "backup /var/lib/backup", "is there already");
    expect(1, "backup -c /etc/elmer/elmer.conf /var/lib/other", "/etc/elmer/elmer.conf: No such file or directory");
    expect(1, "init -c /etc/elmer/elmer.conf", "/etc/elmer/elmer.conf: No such file or directory");
}

static void a_later_refusal_leaves_what_was_there(void **state)
{
    char *before = text_of(FRAGMENT);

    (void)state;
    expect(2, "init --hosts queue,ws2,ws2 --now", "--hosts names ws2 twice");
    expect(1, "init --listen 192.0.2.9", "it is no address of this host");
    expect_same(FRAGMENT, before);
    assert_true(scratch_put("/etc/elmer", "ca.conf", "[ca]\ncertificate_valid = never\n")); /* found out after it */
    expect(1, "init --hosts queue", "certificate_valid = never");
    expect_same(FRAGMENT, before);
    assert_int_equal(unlink("/etc/elmer/ca.conf"), 0);
    assert_true(scratch_put("/etc/elmer/elmer.conf.d", "60.conf", "[elmer]\nadmin_group = nobody-knows\n"));
    expect(1, "init --hosts queue --now", "there is no such group");
    expect_same(FRAGMENT, before);
    assert_int_equal(unlink("/etc/elmer/elmer.conf.d/60.conf"), 0);
    free(before);
}

/* All hosts would lose their cluster. */
static void half_a_ca_is_not_replaced(void **state)
{
    char *key = text_of(CA_DIR "/ca.key"), *certificate = text_of(CA_DIR "/ca.crt"), *fragment = text_of(FRAGMENT);

    (void)state;
    assert_int_equal(unlink(CA_DIR "/ca.crt"), 0);
    expect(1, "init --hosts queue", CA_DIR ": ca.crt, the CA's certificate, is gone");
    expect(1, "token", "put it back from /var/lib/elmer/pki/ca.crt here");
    expect(1, "backup /var/lib/other", "ca.crt, the CA's certificate, is gone");
    expect_same(CA_DIR "/ca.key", key);
    expect_same(FRAGMENT, fragment);
    assert_int_equal(system("cp /var/lib/elmer/pki/ca.crt " CA_DIR), 0);
    expect(0, "init", "There is a CA already");
    expect_same(CA_DIR "/ca.crt", certificate);

    assert_int_equal(unlink(CA_DIR "/ca.key"), 0);
    expect(1, "token", "ca.key, the CA's key, is gone, and without it nothing can be signed");
    expect(1, "init", "put it back from a backup, where it is elmer-backup/ca/ca.key");
    assert_true(scratch_put(CA_DIR, "ca.key", ""));
    expect(1, "token", "ca.key, the CA's key, is damaged");
    assert_int_equal(system("tar xf /var/lib/backup -C " CA_DIR " --strip-components 2 elmer-backup/ca/ca.key"), 0);
    expect(0, "init", "There is a CA already");
    free(key);
    free(certificate);
    free(fragment);
}

static void it_is_restored(void **state)
{
    (void)state;
    expect(1, "init --restore /var/lib/backup", "there is a queue on this host already");
    assert_int_equal(system("rm -r /var/lib/elmer /var/lib/elmer-ca /etc/elmer"), 0);
    assert_int_equal(mkdir(CA_DIR, 0700), 0);
    assert_true(scratch_put(CA_DIR, "ca.key", "another one's")); /* whose ca.crt was lost */
    expect(1, "init --restore /var/lib/backup", "there is another CA on this host already");
    expect_same(CA_DIR "/ca.key", "another one's");
    assert_int_equal(rename(CA_DIR "/ca.key", CA_DIR "/ca.crt"), 0);
    expect(1, "init --restore /var/lib/backup", "there is another CA on this host already");
    assert_int_equal(unlink(CA_DIR "/ca.crt"), 0);
    assert_int_equal(symlink("ca.key", CA_DIR "/ca.crt"), 0); /* cannot be read */
    expect(1, "init --restore /var/lib/backup", "there is another CA on this host already");
    assert_int_equal(unlink(CA_DIR "/ca.crt"), 0);
    expect(0, "init --restore /var/lib/backup", "The queue is there again");
    assert_non_null(strstr(said, "for queue, alt."));
    assert_int_equal(access("/etc/elmer/elmer.conf", F_OK), -1);
    expect(0, "config check", "OK: 2 hosts, listen queue:7110");
    expect(0, "backup /var/lib/other", "has the queue, the configuration and the CA");
}

/* A log of SQLite's with another number of the next job, as a process that is killed leaves it. */
static void make_log(const char *path)
{
    char line[200];
    sqlite3 *db;

    snprintf(line, sizeof(line), "cp " STORE "-wal %s && chown elmer: %s", path, path);
    assert_int_equal(sqlite3_open(STORE, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL; UPDATE meta SET value = 77 WHERE key = 'next_job'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(system(line), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* By a power cut. What it leaves is not the next one's, which may be of another backup. */
static void an_interrupted_restore_begins_anew(void **state)
{
    struct stat st;

    (void)state;
    make_log(STORE ".restore-wal");
    assert_int_equal(link(STORE, STORE ".restore"), 0); /* between the link and the end */
    assert_int_equal(rename(STORE, "/var/lib/elmer/moved-away"), 0);
    expect(0, "init --restore /var/lib/backup", "the next job gets the id 2000000001.");
    assert_int_equal(stat("/var/lib/elmer/moved-away", &st), 0);
    assert_true(st.st_size > 0);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(stat(STORE, &st), 0);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(system("test \"$(ls /var/lib/elmer/elmer.db*)\" = " STORE), 0);
}

/* What was given is given again: the port, and the names by which hosts reach elmer. */
static void a_restore_that_is_not_set_up_says_how_to_go_on(void **state)
{
    (void)state;
    assert_int_equal(unlink(STORE), 0);
    expect(1, "init --restore /var/lib/backup --listen 192.0.2.9:7200 --address alt --address 192.0.2.8 --now",
           "then run: eadmin init --listen 192.0.2.9:7200 --address alt --address 192.0.2.8 --now\n");
    assert_int_equal(unlink(STORE), 0);
    assert_true(scratch_put("/etc", "hosts", "127.0.0.1 localhost\n127.0.1.1 queue\n"));
    assert_true(scratch_put("/etc/elmer/elmer.conf.d", "60.conf", "[elmer]\nlisten = other:7300\n"));
    expect(1, "init --restore /var/lib/backup", "then run: eadmin init --listen queue:7300\n");
    assert_int_equal(unlink(STORE), 0);
    assert_true(scratch_put("/etc/elmer/elmer.conf.d", "60.conf", "[elmer]\nlisten = *:7110\nadmin_group = none\n"));
    expect(1, "init --restore /var/lib/backup --now", "then run: eadmin init --listen '*' --now\n");
    assert_int_equal(unlink("/etc/elmer/elmer.conf.d/60.conf"), 0);
    assert_int_equal(unlink(STORE), 0);
    expect(1, "init --restore /var/lib/backup", "then run: eadmin init --listen queue\n");
}

/* A machine of our own, with a user elmer. */
static bool furnish(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS) == 0 && sethostname("queue", 5) == 0 &&
           mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("test", "/var/lib", "tmpfs", 0, "mode=0755") == 0 &&
           mount("test", "/etc", "tmpfs", 0, "mode=0755") == 0 &&
           scratch_put("/etc", "passwd", "root:x:0:0::/root:/bin/sh\nelmer:x:64991:64991::/:/bin/false\n") &&
           scratch_put("/etc", "group", "root:x:0:\nelmer:x:64991:\nelmer-admin:x:64992:\n") &&
           scratch_put("/etc", "nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n") &&
           scratch_put("/etc", "hosts", "127.0.0.1 localhost\n192.0.2.1 queue\n192.0.2.2 ws2\n") &&
           system("ip link set lo up && ip address add 192.0.2.1/32 dev lo") == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_leaves_nothing),
        cmocka_unit_test(a_cluster_has_no_elmer_conf),
        cmocka_unit_test(names_of_before_stay),
        cmocka_unit_test(it_is_backed_up),
        cmocka_unit_test(a_later_refusal_leaves_what_was_there),
        cmocka_unit_test(half_a_ca_is_not_replaced),
        cmocka_unit_test(it_is_restored),
        cmocka_unit_test(an_interrupted_restore_begins_anew),
        cmocka_unit_test(a_restore_that_is_not_set_up_says_how_to_go_on),
    };

    alarm(120); /* whatever goes wrong: an end */
    if (!furnish()) {
        fprintf(stderr, "skipped: only root with CAP_SYS_ADMIN can mount\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests_name("eadmin of root", tests, NULL, NULL);
}
