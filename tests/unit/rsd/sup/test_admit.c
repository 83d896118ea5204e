/* test_admit.c - who may run jobs of other hosts here, with a user database that is a table, and with programs in place
 * of the one that asks PAM. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/sup/admit.h"
#include "tests/unit/scratch.h"

enum { SUDO = 27, USERS = 100, DOCKER = 998, ALICE = 2001, SOON_MS = 20000 };

static char alice_name[] = "alice", top[] = "/tmp/test-admit-XXXXXX";

static int uid_of(const char *name, id_t *id)
{
    if (strcmp(name, "broken") == 0)
        return -EIO;
    if (strcmp(name, "alice") != 0 && strcmp(name, "alias") != 0)
        return -ENOENT;
    *id = ALICE;
    return 0;
}

static int gid_of(const char *name, id_t *id)
{
    static const struct {
        const char *name;
        id_t gid;
    } groups[] = {{"sudo", SUDO}, {"admins", SUDO}, {"users", USERS}, {"docker", DOCKER}};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (strcmp(name, groups[i].name) == 0) {
            *id = groups[i].gid;
            return 0;
        }
    }
    return strcmp(name, "broken") == 0 ? -EIO : -ENOENT;
}

static void judge(gid_t primary, gid_t other, const char *users, const char *groups, int expected, const char *words)
{
    gid_t all[] = {primary, other};
    struct user alice = {
        .uid = ALICE, .gid = primary, .name = alice_name, .groups = all, .group_count = other > 0 ? 2 : 1};
    struct admit_lists lists = {users, groups, uid_of, gid_of};
    struct err err = ERR_INIT;
    assert_int_equal(admit_judge(&alice, &lists, &err), expected);
    assert_string_equal(err.text, words);
}

#define REFUSED(what, name)                                                                                            \
    "jobs of " what " " name " from other hosts are refused (deny_" what "s in rsd.conf): submit "
#define OF_user(name)  REFUSED("user", name) "on the host that is to run them, or ask its administrator"
#define OF_group(name) REFUSED("group", name) "as a user without that group, or on the host that is to run them"

static void test_lists(void **state)
{
    (void)state;
    judge(USERS, 0, NULL, NULL, 0, "");
    judge(USERS, SUDO, NULL, NULL, 0, "");
    judge(USERS, 0, "bob carol", "sudo docker", 0, "");
    judge(USERS, SUDO, NULL, "docker sudo", -EPERM, OF_group("sudo"));
    judge(SUDO, 0, NULL, "sudo", -EPERM, OF_group("sudo"));         /* the primary one */
    judge(USERS, SUDO, NULL, "admins", -EPERM, OF_group("admins")); /* the same by another name */
    judge(USERS, DOCKER, "alice", "docker", -EPERM, OF_user("alice"));
    judge(USERS, 0, "alias", NULL, -EPERM, OF_user("alias"));
    judge(USERS, DOCKER, "nobody", "wheel lxd docker", -EPERM, OF_group("docker")); /* this host has no wheel */
    judge(USERS, 0, NULL, "sudo wheel docker lxd disk libvirt adm", 0, "");
    judge(USERS, 0, " ", "  users  ", -EPERM, OF_group("users"));
    judge(USERS, DOCKER, NULL, "27 998", -EPERM, OF_group("998")); /* a name with blanks in it can be given so */
    judge(USERS, 0, "2001", NULL, -EPERM, OF_user("2001"));
    judge(USERS, 0, "0x7d1 2001a 4294969297", "27 998 99999999999999999999", 0, "");
}

/* Who cannot be looked up may be one of them. */
static void test_no_user_database(void **state)
{
    (void)state;
    judge(USERS, 0, NULL, "broken sudo", -EIO,
          "group broken of deny_groups in rsd.conf cannot be looked up: Input/output error");
    judge(USERS, 0, "broken", NULL, -EIO,
          "user broken of deny_users in rsd.conf cannot be looked up: Input/output error");
    judge(USERS, SUDO, NULL, "sudo broken", -EPERM, OF_group("sudo"));
}

/* ---- a program in place of elmer-account ---- */

static gid_t no_groups;
static const struct user somebody = {
    .uid = ALICE, .gid = ALICE, .name = alice_name, .groups = &no_groups, .group_count = 0};

static const char *program(const char *text)
{
    static char path[100];
    FILE *file;
    snprintf(path, sizeof(path), "%s/program", top);
    unlink(path);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static void ask(const char *text, int64_t limit_ms, int expected, const char *words)
{
    struct err err = ERR_INIT;
    int result = account_ask(program(text), &somebody, false, limit_ms, &err);
    if (result != expected)
        fail_msg("%d: %s", result, err.text);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void test_answers(void **state)
{
    (void)state;
    ask("echo yes", SOON_MS, 0, "");
    ask("[ \"$1 $#\" = 'alice 1' ] && echo yes", SOON_MS, 0, "");
    ask("echo no User account has expired", SOON_MS, -EKEYREJECTED,
        "the account of alice may not be used here: User account has expired (PAM, service elmer)");
    ask("printf 'no \\033[31m\\n'", SOON_MS, -EKEYREJECTED, "here: \\x1B[31m (PAM");
    ask("echo Authentication service cannot retrieve", SOON_MS, -EPROTO,
        "whether the account of alice may be used cannot be found out: Authentication service cannot retrieve");
    ask("printf yes", SOON_MS, -EPROTO, "found out: yes"); /* cut off: no answer */
    ask("echo no", SOON_MS, -EPROTO, "found out: no");
    ask("echo yesterday", SOON_MS, -EPROTO, "found out: yesterday");
    ask("exit 0", SOON_MS, -EPROTO, "elmer-account said nothing");
    ask("kill -SEGV $$", SOON_MS, -EPROTO, "elmer-account said nothing");
    ask("while :; do printf yyyyyyyyyyyyyyyy; done", SOON_MS, -EPROTO, "found out: yyyy");
    struct err err = ERR_INIT;
    assert_int_equal(account_ask("/no/such/program", &somebody, false, SOON_MS, &err), -EPROTO);
}

/* Gone, or dead and not yet waited for by whoever is its parent now. */
static bool is_dead(pid_t pid)
{
    char path[64], stat[200] = "";
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (!file)
        return true;
    if (!fgets(stat, sizeof(stat), file))
        stat[0] = 0;
    fclose(file);
    return !stat[0] || strstr(stat, ") Z ");
}

/* One that hangs, with what a module of it has started, which hangs too. */
static void test_no_answer(void **state)
{
    char text[300];
    int64_t begin = mono_ms(mono_now());
    (void)state;
    snprintf(text, sizeof(text), "sleep 300 & echo $! >%s/helper; echo $$ >%s/self; sleep 300", top, top);
    ask(text, 1500, -ETIMEDOUT, "did not answer in 1500 ms");
    assert_true(mono_ms(mono_now()) - begin >= 1500);
    if (scratch_pid(top, "self") == 0) /* a machine so slow that it had not begun */
        return;
    for (int i = 0; i < SOON_MS && !is_dead(scratch_pid(top, "self")); i++)
        poll(NULL, 0, 1);
    assert_true(is_dead(scratch_pid(top, "self")));
    for (int i = 0; i < SOON_MS && !is_dead(scratch_pid(top, "helper")); i++)
        poll(NULL, 0, 1);
    assert_true(is_dead(scratch_pid(top, "helper")));
}

/* It has no descriptor of ours, no signal is blocked or ignored, and its CPU time is limited. */
static void test_what_it_has(void **state)
{
    sigset_t block, before;
    (void)state;
    assert_int_equal(dup2(0, 77), 77); /* without close-on-exec */
    sigfillset(&block);
    sigprocmask(SIG_SETMASK, &block, &before);
    signal(SIGPIPE, SIG_IGN);
    const uint64_t ignored[4] = {1}; /* SIG_IGN, as posix_spawn() leaves the library's own signals, and so make(1) */
    assert_int_equal(syscall(SYS_rt_sigaction, 32, ignored, NULL, (NSIG - 1) / 8), 0);
    setenv("LD_LIBRARY_PATH", "/x", 1);
    ask("[ -z \"$LD_LIBRARY_PATH\" ] || echo \"its library path\"\n"
        "[ \"$(ulimit -t)\" = 2 ] || echo \"CPU time $(ulimit -t)\"\n"
        "[ \"$(readlink /proc/$$/fd/0)\" = /dev/null ] || echo \"something to read\"\n"
        "[ ! -e /proc/$$/fd/77 ] || echo \"descriptors\"\n"
        /* without another program: the shell blocks signals while it starts one */
        "while read -r key value; do\n"
        "case $key$value in SigIgn:*[1-9a-f]* | SigBlk:*[1-9a-f]*) echo \"$key $value\" ;; esac\n"
        "done </proc/$$/status\necho yes",
        SOON_MS, 0, "");
    unsetenv("LD_LIBRARY_PATH");
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(77);
}

/* ---- both ---- */

static void test_as_the_root_half_asks(void **state)
{
    gid_t none = 65000;
    struct user alice = {.uid = 65001, .gid = none, .name = alice_name, .groups = &none, .group_count = 1};
    struct user root = {.uid = 65001, .gid = 0, .name = alice_name, .groups = &none, .group_count = 1};
    struct err err = ERR_INIT;
    (void)state;
    setenv("ELMER_DENY_GROUPS", "no-such-group root", 1);
    assert_int_equal(admit(&alice, false, &err), 0);
    setenv("ELMER_ACCOUNT", program("echo no Permission denied"), 1);
    assert_int_equal(admit(&alice, false, &err), -EKEYREJECTED);
    err_clear(&err);
    assert_int_equal(admit(&root, false, &err), -EPERM); /* PAM is not asked then */
    assert_string_equal(err.text, OF_group("root"));
    unsetenv("ELMER_DENY_GROUPS");
    setenv("ELMER_ACCOUNT", program("echo yes"), 1);
    err_clear(&err);
    assert_int_equal(admit(&root, false, &err), 0);
    setenv("ELMER_DENY_USERS", "root", 1);
    assert_int_equal(admit(&alice, false, &err), 0);
    alice.uid = 0;
    assert_int_equal(admit(&alice, false, &err), -EPERM);
    unsetenv("ELMER_DENY_USERS");
    unsetenv("ELMER_ACCOUNT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),       cmocka_unit_test(test_no_user_database),
        cmocka_unit_test(test_answers),     cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_what_it_has), cmocka_unit_test(test_as_the_root_half_asks),
    };
    if (!scratch_dir(top) || chmod(top, 0777) < 0) /* the program is somebody else */
        return 1;
    return cmocka_run_group_tests_name("admit", tests, NULL, NULL);
}
