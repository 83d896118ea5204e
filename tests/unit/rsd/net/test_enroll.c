/* test_enroll.c - a host that joins, on a file system of its own that is full, or read-only, or becomes full while
 * elmer answers. elmer is a child that signs for whoever asks. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "lib/pki/counter.h"
#include "lib/pki/pair.h"
#include "rsd/net/enroll.h"
#include "tests/unit/scratch.h"

enum { SKIPPED = 77, COUNTER = 7, DAY_S = 86400 };

/* elmer.counter, of another CA. */
#define BEFORE "0000000000000000000000000000000000000000000000000000000000000000 9\n"

/* What both processes see. */
struct shared {
    int port, asked;   /* of elmer; how many have come */
    bool fill, refuse; /* the disk, before it answers; the host */
};

static struct shared *shared;
static char dir[64], disk[80], pki[96], *ca_key, *ca;
static struct token token;
static pid_t elmer;

static void fill_disk(void)
{
    static const char page[4096];
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/other", disk);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (fd >= 0 && write(fd, page, sizeof(page)) > 0)
        ;
    close(fd);
}

/* ---- elmer ---- */

static char *issue(const char *request, bool server)
{
    const char *const names[] = {server ? "ws1" : "ws2", "127.0.0.1"};
    const struct pki_terms terms = {.server = server,
                                    .names = names,
                                    .count = server ? 2 : 1,
                                    .begin_s = time(NULL) - DAY_S,
                                    .end_s = time(NULL) + DAY_S,
                                    .counter = server ? COUNTER : 0};
    struct err err = ERR_INIT;
    char *certificate = NULL;

    return pki_issue(ca_key, ca, request, &terms, &certificate, &err) == 0 ? certificate : NULL;
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct wire_message answer = {.type = WIRE_joined, .id = message->id};

    (void)data;
    if (message->type != WIRE_join)
        return;
    if (shared->fill)
        fill_disk();
    if (shared->refuse) {
        answer.type = WIRE_error;
        answer.u.error.code = WIRE_CODE_REFUSED;
        answer.u.error.text = "not you";
    } else {
        answer.u.joined.certificate = issue(message->u.join.request, false);
        answer.u.joined.ticket_certificate = "";
    }
    (void)link_send(link, &answer);
}

static void on_close(struct link *link, const char *text, void *data)
{
    (void)link;
    (void)text;
    (void)data;
}

static void *on_accept(struct link *link, void *data)
{
    (void)link;
    shared->asked++;
    return data;
}

static void be_elmer(const char *server, int ready)
{
    static const struct link_callbacks callbacks = {.on_message = on_message, .on_close = on_close};
    struct link_options options = {
        .program = "elmer", .peer = WIRE_FROM_HOST, .out_max = 1 << 20, .hello_timeout_ms = 10000};
    struct listener *listener;
    struct err err = ERR_INIT;
    uv_loop_t loop;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (uv_loop_init(&loop) < 0 || tls_context_server(server, NULL, NULL, &options.tls, &err) < 0 ||
        listener_create(&loop, "127.0.0.1:0", 0, 8, &options, &callbacks, on_accept, &loop, &listener, &err) < 0)
        _exit(1);
    shared->port = (int)listener_port(listener);
    if (write(ready, "", 1) != 1)
        _exit(1);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    _exit(0);
}

static void begin_elmer(void)
{
    char server[96], *key = NULL, *request = NULL, *certificate;
    struct err err = ERR_INIT;
    int fd, ready[2];

    snprintf(server, sizeof(server), "%s/server", dir);
    assert_true(pki_ca_create("CA", time(NULL) - DAY_S, time(NULL) + DAY_S, &ca_key, &ca, &err) == 0 &&
                pki_key_create(&key, &err) == 0 && pki_request_create(key, "ws1", &request, &err) == 0);
    certificate = issue(request, true);
    fd = file_dir(server, 0700, &err);
    assert_true(certificate && fd >= 0 && file_write(fd, "ca.crt", ca, 0644, &err) == 0 &&
                pair_write(fd, key, certificate, &err) == 0 && pki_sha256(ca, token.pin, &err) == 0);
    close(fd);
    pki_key_free(key);
    free(request);
    free(certificate);
    assert_int_equal(pipe(ready), 0);
    elmer = fork();
    if (elmer == 0)
        be_elmer(server, ready[1]);
    close(ready[1]);
    assert_int_equal(poll(&(struct pollfd){.fd = ready[0], .events = POLLIN}, 1, 10000), 1);
    close(ready[0]);
    assert_true(elmer > 0 && shared->port > 0);
}

/* ---- the host ---- */

static int join(struct err *err)
{
    struct enrol_ticket ticket = {.key = ""};
    char address[32];

    snprintf(address, sizeof(address), "127.0.0.1:%d", shared->port);
    return enroll(address, "ws2", &token, pki, &ticket, err);
}

static void refused(int result, const char *words)
{
    struct err err = ERR_INIT;

    assert_int_equal(join(&err), result);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void assert_file(const char *name, const char *text)
{
    int fd = open(pki, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *found = NULL;

    assert_int_equal(file_read(fd, name, PKI_PEM_MAX, &found, NULL), 0);
    assert_string_equal(found, text);
    free(found);
    close(fd);
}

/* The certificate, its key and its CA belong together. */
static void assert_joined(void)
{
    int fd = open(pki, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *key = NULL, *certificate = NULL;
    struct err err = ERR_INIT;
    struct stat st;
    uint64_t counter;

    assert_int_equal(file_read(fd, "host.key", PKI_PEM_MAX, &key, &err), 0);
    assert_int_equal(file_read(fd, "host.crt", PKI_PEM_MAX, &certificate, &err), 0);
    assert_int_equal(pki_verify(certificate, ca, &err), 0);
    assert_int_equal(pki_key_fits(key, certificate, &err), 0);
    assert_int_equal(counter_read(fd, ca, &counter, &err), 0);
    assert_int_equal(counter, COUNTER);
    assert_true(fstatat(fd, "host.key", &st, 0) == 0 && (st.st_mode & 0777) == 0600);
    assert_true(fstatat(fd, "host.crt", &st, 0) == 0 && (st.st_mode & 0777) == 0644);
    assert_true(fstatat(fd, "ca.crt", &st, 0) == 0 && (st.st_mode & 0777) == 0644);
    assert_file("ca.crt", ca);
    free(key);
    free(certificate);
    close(fd);
}

static unsigned files(void)
{
    DIR *entries = opendir(pki);
    unsigned count = 0;

    assert_non_null(entries);
    while (readdir(entries))
        count++;
    closedir(entries);
    return count - 2;
}

/* Of another cluster, where this host was before. */
static void assert_as_before(void)
{
    assert_file("ca.crt", "ca of before");
    assert_file("elmer.counter", BEFORE);
    assert_file("host.key", "key of before");
    assert_file("host.crt", "certificate of before");
    assert_int_equal(files(), 4);
}

static int setup(void **state)
{
    (void)state;
    memset(shared, 0, sizeof(*shared));
    snprintf(dir, sizeof(dir), "/tmp/elmer-enroll-XXXXXX");
    if (!scratch_dir(dir) || !scratch_mkdir(dir, "disk"))
        return -1;
    snprintf(disk, sizeof(disk), "%s/disk", dir);
    snprintf(pki, sizeof(pki), "%s/disk/pki", dir);
    if (mount("small", disk, "tmpfs", 0, "size=128k,mode=0700") < 0 || mkdir(pki, 0700) < 0)
        return -1;
    begin_elmer();
    return scratch_put(pki, "ca.crt", "ca of before") && scratch_put(pki, "elmer.counter", BEFORE) &&
                   scratch_put(pki, "host.key", "key of before") &&
                   scratch_put(pki, "host.crt", "certificate of before")
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    kill(elmer, SIGKILL);
    waitpid(elmer, NULL, 0);
    pki_key_free(ca_key);
    free(ca);
    return umount(disk);
}

static void a_full_disk_is_found_before_elmer_is_asked(void **state)
{
    (void)state;
    fill_disk();
    refused(-ENOSPC, "cannot be written: No space left on device; elmer has not been asked");
    assert_int_equal(shared->asked, 0);
    assert_as_before();
}

static void so_is_one_that_is_read_only(void **state)
{
    (void)state;
    assert_int_equal(mount("small", disk, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=128k"), 0);
    refused(-EROFS, "Read-only");
    assert_int_equal(shared->asked, 0);
    assert_as_before();
}

static void what_fills_the_disk_meanwhile_does_no_harm(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    shared->fill = true;
    if (join(&err) < 0)
        fail_msg("%s", err.text);
    assert_joined();
    assert_int_equal(files(), 4);
    shared->fill = false;
}

static void a_refusal_leaves_what_was_there(void **state)
{
    (void)state;
    shared->refuse = true;
    refused(-EACCES, "not you");
    assert_int_equal(shared->asked, 1);
    assert_as_before();
}

static void two_do_not_mix_their_files(void **state)
{
    int fd = open(pki, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_int_equal(flock(fd, LOCK_EX), 0);
    refused(-EBUSY, "another rsd --join");
    assert_int_equal(shared->asked, 0);
    assert_as_before();
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_full_disk_is_found_before_elmer_is_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(so_is_one_that_is_read_only, setup, teardown),
        cmocka_unit_test_setup_teardown(what_fills_the_disk_meanwhile_does_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_leaves_what_was_there, setup, teardown),
        cmocka_unit_test_setup_teardown(two_do_not_mix_their_files, setup, teardown),
    };

    alarm(120);
    (void)signal(SIGPIPE, SIG_IGN);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0) {
        fprintf(stderr, "skipped: only root with CAP_SYS_ADMIN can mount\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
