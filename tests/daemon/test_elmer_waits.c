/* test_elmer_waits.c - what keeps elmer from listening, or from beginning, and passes: it waits, says so once in the
 * log and in its STATUS, and goes on by itself. And what it
 * reads again while it runs. */
#include "config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/pki/x509.h"
#include "tests/daemon/elmer_steps.h"
#include "tests/unit/scratch.h"

enum { PATIENCE_MS = 30000 };

/* ---- what it says ---- */

static char log_path[100], notified[65536];
static int notices = -1;

static void listen_for_notices(const struct lab *lab)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", lab->dir);
    notices = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(notices >= 0);
    assert_int_equal(bind(notices, (struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    notified[0] = '\0';
}

static bool has_notified(const char *words)
{
    size_t used = strlen(notified);
    for (ssize_t n; (n = recv(notices, notified + used, sizeof(notified) - used - 2, 0)) > 0;) {
        used += (size_t)n;
        notified[used++] = '\n';
        notified[used] = '\0';
    }
    return strstr(notified, words) != NULL;
}

static void await_notice(const char *words)
{
    for (int64_t end = mono_ms(mono_now()) + PATIENCE_MS; !has_notified(words); poll(NULL, 0, 20))
        if (mono_ms(mono_now()) > end)
            fail_msg("no \"%s\" in %s", words, notified);
}

static const char *log_text(void)
{
    static char text[65536];
    FILE *file = fopen(log_path, "re");
    size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[size] = '\0';
    if (file)
        fclose(file);
    return text;
}

static void await_log(const char *words)
{
    for (int64_t end = mono_ms(mono_now()) + PATIENCE_MS; !strstr(log_text(), words); poll(NULL, 0, 20))
        if (mono_ms(mono_now()) > end)
            fail_msg("no \"%s\" in %s", words, log_text());
}

static void logged_once(const char *words)
{
    const char *first = strstr(log_text(), words);
    if (!first || strstr(first + 1, words))
        fail_msg("\"%s\" is not there once: %s", words, log_text());
}

/* Start elmer with its log in a file; serves: wait for its sockets. */
static void start(struct lab *lab, bool serves)
{
    int kept = dup(STDERR_FILENO);
    snprintf(log_path, sizeof(log_path), "%s/log", lab->dir);
    int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    assert_true(kept >= 0 && log >= 0 && dup2(log, STDERR_FILENO) >= 0);
    close(log);
    (serves ? lab_start : lab_spawn)(lab);
    dup2(kept, STDERR_FILENO);
    close(kept);
}

static void end(struct lab *lab)
{
    if (notices >= 0)
        close(notices);
    notices = -1;
    unsetenv("NOTIFY_SOCKET");
    lab_stop(lab, SIGTERM);
}

/* ---- what it lacks ---- */

/* A port that is ours, so nobody can listen on it as long as we do. */
static int take_port(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static bool serves_port(unsigned port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool serves = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return serves;
}

static void make_pki(const char *dir)
{
    char *ca_key = NULL, *ca = NULL, *key = NULL, *request = NULL, *certificate = NULL, path[120];
    const char *names[] = {"queue"};
    int64_t now_s = wall_now().ms / 1000;
    struct pki_terms terms = {
        .server = true, .names = names, .count = 1, .begin_s = now_s - 100000, .end_s = now_s + 100000, .counter = 1};
    assert_int_equal(pki_ca_create("test", now_s - 100000, now_s + 200000, &ca_key, &ca, NULL), 0);
    assert_int_equal(pki_key_create(&key, NULL), 0);
    assert_int_equal(pki_request_create(key, "queue", &request, NULL), 0);
    assert_int_equal(pki_issue(ca_key, ca, request, &terms, &certificate, NULL), 0);
    assert_true(scratch_put(dir, "ca.crt", ca) && scratch_put(dir, "host.key.new", key));
    snprintf(path, sizeof(path), "%s/host.key.new", dir);
    assert_int_equal(chmod(path, 0600), 0);
    char place[120];
    snprintf(place, sizeof(place), "%s/host.key", dir);
    assert_int_equal(rename(path, place), 0);
    assert_true(scratch_put(dir, "host.crt", certificate));
    pki_key_free(ca_key);
    pki_key_free(key);
    free(ca);
    free(request);
    free(certificate);
}

/* ---- the address for hosts ---- */

static void test_address(void **state)
{
    char pki[] = "/tmp/elmer-pki-XXXXXX";
    struct lab lab;
    struct fake host;
    struct wire_message submission = lab_submission("a", 1), view;
    unsigned port;
    int taken = take_port(&port);
    (void)state;
    assert_non_null(scratch_dir(pki));
    lab_create(&lab, "");
    snprintf(lab.config, sizeof(lab.config),
             "name = queue\nhosts = ws1 ws2\nheartbeat = 200ms\nhost_timeout = 1s\nsettle = 0\nallocator = v1\nlisten "
             "= 127.0.0.1:%u\npki = %s\n",
             port, pki);
    lab_configure(&lab);
    listen_for_notices(&lab);
    start(&lab, true); /* its own host is served */
    await_log("needs a certificate, and there is none");
    await_notice("READY=1");
    await_notice("OTHER HOSTS CANNOT LINK: listen = 127.0.0.1:");
    make_pki(pki);
    await_log("cannot listen there: Address already in use; elmer tries again every 5 s"); /* the next obstacle */
    await_notice("Address already in use");
    host_open(&host, &lab, "ws1", 1, NULL);
    lab_submit(&host, &submission, NULL, 0);
    run_job(&host, &host, 1, 1);
    end(&lab);
    fake_close(&host);
    logged_once("needs a certificate");
    assert_null(strstr(log_text(), "cannot be looked after"));

    /* Started again, it knows ws1, which cannot link yet: nobody's silence counts. */
    start(&lab, true);
    await_log("Address already in use; elmer tries again every 5 s");
    poll(NULL, 0, 2500); /* more than twice host_timeout */
    assert_null(strstr(log_text(), "is down"));
    close(taken);
    await_log("other hosts can link now: elmer listens on 127.0.0.1:");
    assert_true(serves_port(port));
    host_open(&host, &lab, "ws1", 1,
              &(struct host_options){.holdings = &(struct wire_holding){.job = 1, .attempt = 1}, .nholdings = 1});
    lab_query(&host, 1, &view);
    assert_string_equal(only(&view)->state, "running");
    wire_message_fini(&view);
    fake_close(&host);
    await_log("host=ws1 is down"); /* now it does */
    logged_once("Address already in use");
    lab_stop(&lab, SIGTERM);
    char path[100];
    snprintf(path, sizeof(path), "%s/notify", lab.dir);
    unlink(path);
    lab_destroy(&lab);
}

/* Certificates that do not belong together do not become right by waiting. */
static void test_hopeless(void **state)
{
    char pki[] = "/tmp/elmer-pki-XXXXXX", out[4096];
    struct lab lab;
    (void)state;
    assert_non_null(scratch_dir(pki));
    make_pki(pki);
    assert_true(scratch_put(pki, "host.crt", "nothing"));
    lab_create(&lab, "");
    snprintf(lab.config, sizeof(lab.config), "hosts = ws1\nlisten = 127.0.0.1:7110\npki = %s\nlevels = 3\n", pki);
    lab_configure(&lab);
    assert_int_equal(lab_run(&lab, out, sizeof(out)), 2);
    assert_non_null(strstr(out, "cannot be used"));
    snprintf(lab.config, sizeof(lab.config), "levels = 17\nthreshold = 7\n"); /* both are told */
    lab_configure(&lab);
    assert_int_equal(lab_run(&lab, out, sizeof(out)), 2);
    assert_true(strstr(out, "levels = 17") && strstr(out, "threshold = 7"));
    lab_destroy(&lab);
}

/* ---- the configuration ---- */

/* Root reads what is closed to others, but no directory. */
static void test_unreadable(void **state)
{
    char conf[100], kept[100], folder[100];
    struct lab lab;
    (void)state;
    lab_create(&lab, LOCAL);
    snprintf(conf, sizeof(conf), "%s/elmer.conf", lab.dir);
    snprintf(kept, sizeof(kept), "%s/kept", lab.dir);
    snprintf(folder, sizeof(folder), "%s/folder", lab.dir);
    assert_int_equal(rename(conf, kept), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink(folder, conf), 0);
    listen_for_notices(&lab);
    start(&lab, false);
    await_log("elmer cannot begin: ");
    await_notice("READY=1");
    await_notice("elmer.conf: cannot be read; it tries again every 5 s");
    poll(NULL, 0, 5500); /* it has tried again */
    logged_once("elmer.conf: cannot be read; it tries again every 5 s");
    logged_once("configuration: ");
    assert_int_equal(rename(kept, conf), 0);
    await_log("elmer can begin now");
    await_notice("STATUS=0 of 1 host up");
    end(&lab);
    assert_int_equal(rmdir(folder), 0);
    lab_destroy(&lab);
}

/* ---- the store and the sockets ---- */

static void test_another_elmer(void **state)
{
    struct lab first, second;
    char path[100];
    (void)state;
    lab_create(&first, LOCAL);
    lab_start(&first);
    second = first; /* the same store, the same sockets */
    second.pid = 0;
    listen_for_notices(&second);
    start(&second, false);
    await_log("elmer cannot begin: the store ");
    await_notice("READY=1");
    await_notice("STATUS=elmer cannot begin: the store ");
    poll(NULL, 0, 5500); /* it has tried again */
    logged_once("another elmer: stop that one first; it tries again every 5 s");
    lab_stop(&first, SIGTERM);
    await_log("elmer can begin now");
    await_notice("STATUS=0 of 1 host up");
    end(&second);
    start(&second, true);
    first.pid = 0;
    lab_stop(&second, SIGTERM);
    snprintf(path, sizeof(path), "%s/notify", second.dir);
    unlink(path);
    lab_destroy(&second);
}

/* It can be stopped while it waits. */
static void test_stopped_while_it_waits(void **state)
{
    struct lab first, second;
    char live[100], taken[100];
    (void)state;
    lab_create(&first, LOCAL);
    lab_start(&first);
    lab_create(&second, LOCAL); /* its socket is another's */
    snprintf(live, sizeof(live), "%s/host.sock", first.dir);
    snprintf(taken, sizeof(taken), "%s/host.sock", second.dir);
    assert_int_equal(link(live, taken), 0);
    start(&second, false);
    await_log("another process serves this socket");
    lab_stop(&second, SIGTERM);
    await_log("ends after a signal, without having begun");
    lab_destroy(&second);
    lab_destroy(&first);
}

/* ---- what is read while it runs ---- */

static void reload(struct lab *lab, const char *config, const char *expected)
{
    snprintf(lab->config, sizeof(lab->config), "%s", config);
    lab_configure(lab);
    has_notified("");
    notified[0] = '\0';
    assert_int_equal(kill(lab->pid, SIGHUP), 0);
    await_notice(expected);
    await_notice("READY=1");
}

static void ask_for_two(struct fake *host, const char *token, const char *refusal)
{
    struct wire_message submission = lab_submission(token, 2), answer;
    host_relay(host, 2001, 2001, "alice", &submission);
    host_expect_answer(host, 2001, WIRE_submitted, &answer);
    assert_int_equal(answer.type, refusal ? WIRE_error : WIRE_submitted);
    if (refusal && !strstr(answer.u.error.text, refusal))
        fail_msg("\"%s\" does not contain \"%s\"", answer.u.error.text, refusal);
    wire_message_fini(&answer);
}

#define RELOADED "name = ws1\nhosts = ws1\nheartbeat = 1s\n"

static void test_reload(void **state)
{
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, RELOADED "max_nprocs = 1\nlevels = 2\n");
    listen_for_notices(&lab);
    start(&lab, true);
    host_open(&host, &lab, "ws1", 2, NULL);
    ask_for_two(&host, "t1", "max_nprocs");
    /* all or nothing: what is good beside what is wrong does not count */
    reload(&lab, RELOADED "max_nprocs = 2\nlevels = 99\nhistory_jobs = many\n", "THE LAST RELOAD WAS REFUSED");
    assert_non_null(strstr(notified, "RELOADING=1\nMONOTONIC_USEC="));
    assert_non_null(strstr(log_text(), "levels = 99"));
    assert_non_null(strstr(log_text(), "history_jobs = many"));
    logged_once("reload: refused, nothing has changed");
    assert_null(strstr(log_text(), "reload: max_nprocs"));
    ask_for_two(&host, "t2", "max_nprocs");
    /* what counts at once, and what needs a restart */
    reload(&lab, RELOADED "max_nprocs = 2\nlevels = 3\n[host ws1]\naddress = 192.0.2.7\n",
           "reloaded: 2 changed, 1 NEED A RESTART");
    logged_once("reload: max_nprocs = 2, was 1");
    logged_once("reload: levels = 3, was 2");
    logged_once("reload: address of host ws1 = 192.0.2.7, was what it has on its link to elmer: needs a restart");
    ask_for_two(&host, "t3", NULL);
    /* it is said until it is done, or taken back */
    reload(&lab, RELOADED "levels = 3\n", "reloaded: 1 changed");
    logged_once("reload: max_nprocs = 65536, was 2");
    reload(&lab, RELOADED "max_nprocs = 5\nlevels = 2\n", "reloaded: 2 changed");
    fake_close(&host);
    end(&lab);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address),
        cmocka_unit_test(test_hopeless),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_another_elmer),
        cmocka_unit_test(test_stopped_while_it_waits),
        cmocka_unit_test(test_reload),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
