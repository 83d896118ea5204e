/* test_ca_key.c - the CA's key is in the memory of no process of `eadmin init` that becomes the user elmer. It runs
 * under ptrace in a mount namespace of its own, where /var/lib is empty. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/backup_file.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/pki/ca.h"
#include "lib/pki/pair.h"
#include "lib/pki/x509.h"
#include "tests/unit/scratch.h"

enum { SKIPPED = 77, ELMER_UID = 64991, SEED = 32, PROCESSES = 16 };

#define STATE  "/var/lib/elmer"
#define CONFIG "/var/lib/elmer.conf"
#define BACKUP "/var/lib/backup"

/* ---- what is looked for ---- */

struct key {
    char line[PKI_PEM_MAX];   /* of the PEM text */
    unsigned char seed[SEED]; /* what it says */
};

static void parse_key(const char *pem, struct key *key)
{
    unsigned char der[200];
    const char *begin = strchr(pem, '\n') + 1;
    int size;

    snprintf(key->line, sizeof(key->line), "%.*s", (int)strcspn(begin, "\n"), begin);
    size = EVP_DecodeBlock(der, (const unsigned char *)key->line, (int)strlen(key->line));
    assert_true(size >= SEED && size < 60); /* Ed25519: the seed is the end of it */
    memcpy(key->seed, der + size - SEED, SEED);
}

/* How often the key is in the memory of a process that stands still. */
static int copies(pid_t pid, const struct key *key)
{
    char path[40], row[400];
    int found = 0, memory;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    maps = fopen(path, "re");
    snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    memory = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(maps && memory >= 0);
    while (fgets(row, sizeof(row), maps)) {
        uint64_t from, to;
        char *bytes;
        ssize_t size;

        if (sscanf(row, "%" SCNx64 "-%" SCNx64 " rw", &from, &to) != 2 || !strstr(row, " rw") || to - from > 64 << 20)
            continue;
        bytes = malloc(to - from);
        assert_non_null(bytes);
        size = pread(memory, bytes, to - from, (off_t)from);
        for (const char *at = bytes, *end = bytes + (size > 0 ? size : 0);
             (at = memmem(at, (size_t)(end - at), key->seed, SEED)); at++)
            found++;
        for (const char *at = bytes, *end = bytes + (size > 0 ? size : 0);
             (at = memmem(at, (size_t)(end - at), key->line, strlen(key->line))); at++)
            found++;
        free(bytes);
    }
    fclose(maps);
    close(memory);
    return found;
}

/* ---- eadmin under ptrace ---- */

static uid_t user_of(pid_t pid)
{
    char path[40], row[200];
    unsigned uid = 0;
    FILE *status;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    status = fopen(path, "re");
    assert_non_null(status);
    while (fgets(row, sizeof(row), status))
        if (sscanf(row, "Uid: %u", &uid) == 1)
            break;
    fclose(status);
    return uid;
}

/* What was seen of the processes when they ended. */
struct seen {
    int users;      /* of the user elmer */
    int copies;     /* of the CA's key in their memory */
    struct key key; /* of the CA that has been made by then */
};

static void look(pid_t pid, struct seen *seen)
{
    char *pem = NULL;
    int dir = open(CA_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(file_read(dir, "ca.key", PKI_PEM_MAX, &pem, NULL), 0);
    close(dir);
    parse_key(pem, &seen->key);
    if (user_of(pid) == ELMER_UID) {
        seen->users++;
        seen->copies += copies(pid, &seen->key);
    }
    pki_key_free(pem);
}

static pid_t begin(const char *option, const char *value)
{
    const char *program = getenv("EADMIN_PROGRAM");
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* which is done by ptrace, too */
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    execl(program ? program : "client/eadmin", "eadmin", "init", option, value, (char *)NULL);
    _exit(127);
}

/* Returns the exit status of eadmin init with this option. */
static int trace_with(const char *option, const char *value, struct seen *seen)
{
    pid_t main_process = begin(option, value), pid;
    int status, code = -1;

    *seen = (struct seen){0};
    assert_int_equal(waitpid(main_process, &status, 0), main_process);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(
        ptrace(PTRACE_SETOPTIONS, main_process, NULL,
               PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT),
        0);
    ptrace(PTRACE_CONT, main_process, NULL, 0);
    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        long event = status >> 16, signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

        if (!WIFSTOPPED(status)) {
            code = pid == main_process && WIFEXITED(status) ? WEXITSTATUS(status) : code;
            continue;
        }
        if (event == PTRACE_EVENT_EXIT)
            look(pid, seen);
        ptrace(PTRACE_CONT, pid, NULL, event || signal == SIGSTOP || signal == SIGTRAP ? 0 : signal);
    }
    return code;
}

static int trace(struct seen *seen)
{
    return trace_with("-c", CONFIG, seen);
}

/* ---- the tests ---- */

static void the_key_stays_with_root(void **state)
{
    struct seen seen;
    struct stat st;
    char *pem, *again;
    int dir;

    (void)state;
    assert_int_equal(trace(&seen), 0);
    assert_int_equal(stat(STATE "/pki/host.key", &st), 0);
    assert_int_equal(st.st_uid, ELMER_UID);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_true(seen.users > 0);
    assert_int_equal(seen.copies, 0);

    dir = open(CA_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* the search finds what is there */
    assert_int_equal(file_read(dir, "ca.key", PKI_PEM_MAX, &pem, NULL), 0);
    close(dir);
    again = strdup(pem);
    assert_true(copies(getpid(), &seen.key) >= 4); /* both texts, and both in seen */
    pki_key_free(again);
    pki_key_free(pem);
}

static void nothing_is_written_again(void **state)
{
    struct seen seen;
    struct stat before, after;

    (void)state;
    assert_int_equal(stat(STATE "/pki/host.key", &before), 0);
    assert_int_equal(trace(&seen), 0);
    assert_int_equal(stat(STATE "/pki/host.key", &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(seen.copies, 0);
}

static void what_cannot_be_written_is_said(void **state)
{
    struct seen seen;

    (void)state;
    assert_int_equal(unlink(STATE "/pki/host.key"), 0);
    assert_int_equal(chmod(STATE "/pki", 0777), 0);
    assert_int_not_equal(trace(&seen), 0);
    assert_int_equal(access(STATE "/pki/host.key", F_OK), -1);
    assert_int_equal(seen.copies, 0);
    assert_int_equal(chmod(STATE "/pki", 0700), 0);
    assert_int_equal(trace(&seen), 0);
    assert_int_equal(access(STATE "/pki/host.key", F_OK), 0);
}

static void add(struct backup_out *out, const char *name, const char *file)
{
    struct err err = ERR_INIT;
    int from = open(file, O_RDONLY | O_CLOEXEC);

    assert_true(from >= 0);
    if (backup_out_add(out, name, from, &err) < 0)
        fail_msg("%s", err.text);
    close(from);
}

/* Of this CA, its key behind all else; what it has as the store is none, which is seen by the process that gets it. */
static void make_backup(void)
{
    struct backup_out out = {.fd = open(BACKUP, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    struct err err = ERR_INIT;

    assert_true(out.fd >= 0);
    assert_int_equal(
        backup_out_text(&out, BACKUP_ABOUT, "elmer backup 1\nhost queue\nmade_ms 1\nstore " STATE "/elmer.db\n", &err),
        0);
    assert_int_equal(backup_out_text(&out, BACKUP_STORE, "no database", &err), 0);
    add(&out, "ca/ca.crt", CA_DIR "/ca.crt");
    add(&out, "ca/ca.key", CA_DIR "/ca.key");
    assert_int_equal(backup_out_end(&out, &err), 0);
    close(out.fd);
    backup_out_fini(&out);
}

static void the_key_of_a_backup_stays_with_root(void **state)
{
    struct seen seen;

    (void)state;
    make_backup();
    assert_int_not_equal(trace_with("--restore", BACKUP, &seen), 0);
    assert_int_equal(seen.users, 1);
    assert_int_equal(seen.copies, 0);
}

/* A machine of our own, with a user elmer. */
static bool furnish(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 && mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("test", "/var/lib", "tmpfs", 0, "mode=0755") == 0 &&
           mount("test", "/etc", "tmpfs", 0, "mode=0755") == 0 &&
           scratch_put("/etc", "passwd", "root:x:0:0::/root:/bin/sh\nelmer:x:64991:64991::/:/bin/false\n") &&
           scratch_put("/etc", "group", "root:x:0:\nelmer:x:64991:\n") &&
           scratch_put("/etc", "nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n") &&
           scratch_put("/var/lib", "elmer.conf",
                       "[elmer]\nname = queue\npki = " STATE "/pki\nstore = " STATE "/elmer.db\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_stays_with_root),
        cmocka_unit_test(nothing_is_written_again),
        cmocka_unit_test(what_cannot_be_written_is_said),
        cmocka_unit_test(the_key_of_a_backup_stays_with_root),
    };

    alarm(120); /* whatever goes wrong: an end; eadmin ends with us */
    if (!furnish()) {
        fprintf(stderr, "skipped: only root with CAP_SYS_ADMIN can mount\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests_name("the CA's key", tests, NULL, NULL);
}
