/* test_desk.c - users' side and the desk that signs, over their socket: many tickets on one connection, and no
 * submission that goes without because others are quicker. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/ticket/pass.h"
#include "lib/ticket/warrant.h"
#include "libelmer/client.h"
#include "rsd/tickets/desk.h"
#include "tests/unit/scratch.h"

enum { WAIT_MS = 5000, PATH = 80, MANY = 800 }; /* more than there are places for all users together */
static char named[PATH];                        /* the socket that the caller names: tickets are beside it */
static char socket_path[PATH + 16], rsd_path[PATH + 16];
static uint64_t nprocs = 1;
static const char *tasks = ""; /* of an array */
static int listener = -1;
static pid_t desk;
static struct ticket_keys desk_keys; /* with the secret */

static int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

static void listen_at(const char *dir)
{
    snprintf(socket_path, sizeof(socket_path), "%s/ticket.sock", dir);
    snprintf(rsd_path, sizeof(rsd_path), "%s/rsd.sock", dir);
    snprintf(named, sizeof(named), "%s/elmer.sock", dir);
    listener = listen_on(socket_path);
}

static int setup(void **state)
{
    char dir[64] = "/tmp/test_desk.XXXXXX";
    struct ticket_keys keys;
    struct err err = ERR_INIT;
    (void)state;
    assert_non_null(scratch_dir(dir));
    assert_int_equal(ticket_keys_open(&keys, dir, "ws1", &err), 0);
    listen_at(dir);
    desk_keys = keys;
    desk = desk_start(&keys, &(struct desk_believes){"all", "all", "", ""}, listener);
    assert_true(desk > 0);
    ticket_keys_close(&keys);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (desk > 0) {
        kill(desk, SIGKILL);
        waitpid(desk, NULL, 0);
    }
    close(listener);
    return 0;
}

static struct wire_message submission(void)
{
    static const char *command[] = {"/bin/true"};
    return (struct wire_message){.type = WIRE_submit,
                                 .id = 1,
                                 .u.submit = {.token = "t",
                                              .name = "x",
                                              .nprocs = nprocs,
                                              .command = {command, 1},
                                              .dir = "/d",
                                              .output = "",
                                              .errors = "",
                                              .tasks = tasks,
                                              .submit_host = "",
                                              .comment = "",
                                              .ticket = ""}};
}

/* What became of it; the number of its ticket goes into *number. */
static int submit(struct client_desk *user, int timeout_ms, uint64_t *number)
{
    int64_t deadline = mono_ms(mono_now()) + timeout_ms;
    struct wire_message answer, m = submission();
    struct ticket ticket;
    int result = client_ticket(user, &m, deadline, &answer, NULL);
    if (number && result == ELMER_OK) {
        assert_int_equal(answer.type, WIRE_ticket);
        assert_int_equal(ticket_decode(m.u.submit.ticket, &ticket), TICKET_GOOD);
        *number = ticket.counter;
    } else if (result == ELMER_OK) {
        assert_string_equal(m.u.submit.ticket, "");
    }
    wire_message_fini(&answer);
    return result;
}

static void many_on_one_connection(void **state)
{
    struct client_desk user = {.beside = named};
    uint64_t before = 0, number = 0;
    int fd = -1;
    (void)state;
    for (int i = 0; i < 300; i++) {
        assert_int_equal(submit(&user, WAIT_MS, &number), ELMER_OK);
        assert_true(i == 0 || number == before + 1);
        assert_true(user.connected && (i == 0 || user.channel.fd == fd));
        fd = user.channel.fd;
        before = number;
    }
    client_desk_close(&user);
}

/* One takes few numbers, so its user can ask for the next one, and nobody's tickets become too old by them. */
static void the_longest_arrays_one_after_the_other(void **state)
{
    struct client_desk user = {.beside = named};
    uint64_t before = 0, number = 0;
    (void)state;
    tasks = "1-100000%8";
    for (int i = 0; i < 20; i++) {
        assert_int_equal(submit(&user, WAIT_MS, &number), ELMER_OK);
        assert_true(i == 0 || (number > before && number - before < 5000));
        before = number;
    }
    tasks = "";
    client_desk_close(&user);
}

/* A connection that is not used makes room, of one user and of all; who had it gets another. */
static void nobody_goes_without(void **state)
{
    static struct client_desk users[MANY];
    uint64_t number;
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            users[i].beside = named;
            assert_int_equal(submit(&users[i], WAIT_MS, &number), ELMER_OK);
            assert_int_equal(number, round * MANY + i);
        }
    }
    for (int i = 0; i < MANY; i++)
        client_desk_close(&users[i]);
}

/* Of a program with hundreds of threads each keeps its connection. */
static void threads_keep_their_places(void **state)
{
    enum { THREADS = 256 };
    static struct client_desk users[THREADS];
    ino_t sockets[THREADS] = {0}; /* a new one may have the old descriptor */
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < THREADS; i++) {
            uint64_t number;
            struct stat st;
            users[i].beside = named;
            assert_int_equal(submit(&users[i], WAIT_MS, &number), ELMER_OK);
            assert_int_equal(fstat(users[i].channel.fd, &st), 0);
            assert_true(round == 0 || st.st_ino == sockets[i]);
            sockets[i] = st.st_ino;
        }
    }
    for (int i = 0; i < THREADS; i++)
        client_desk_close(&users[i]);
}

/* ---- passes ---- */

/* What becomes of a question; the words of a refusal go into text. */
static int ask(const struct wire_message *question, char text[400])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct wire_message answer = {.type = WIRE_pong};
    struct channel channel;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), got;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(channel_init(&channel, fd, WIRE_FROM_ROOT, 1 << 16), 0);
    channel.minor = WIRE_TICKET_MINOR;
    assert_int_equal(channel_send(&channel, question, NULL), 0);
    got = channel_receive(&channel, &answer, mono_ms(mono_now()) + WAIT_MS, NULL);
    snprintf(text, 400, "%s", got == 1 && answer.type == WIRE_error ? answer.u.error.text : "");
    got = got == 1 ? (int)answer.type : -1;
    wire_message_fini(&answer);
    channel_fini(&channel);
    return got;
}

/* This test is in no job, whatever it says. */
static void no_pass_outside_of_jobs(void **state)
{
    struct wire_message question = {.type = WIRE_pass_ask, .id = 1};
    char key[2 * PASS_KEY_BYTES + 1], text[400];
    (void)state;
    memset(key, 'a', sizeof(key) - 1);
    key[sizeof(key) - 1] = 0;
    question.u.pass_ask.key = key;
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_true(strstr(text, "it is no process of a job: its control group is /"));
    question.u.pass_ask.key = "abc";
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_string_equal(text, "its key is none");
}

static void passes_are_looked_at(void **state)
{
    struct wire_message question = {.type = WIRE_pass_check, .id = 1};
    struct pass pass = {.host = "ws1", .job = 7, .attempt = 1, .uid = 1, .user = "a"};
    char pass_text[PASS_TEXT_MAX + 1], text[400];
    uint8_t stranger[TICKET_KEY_BYTES], stranger_secret[TICKET_KEY_BYTES];
    (void)state;
    question.u.pass_check.pass = pass_text;
    assert_true(pass_sign(&pass, desk_keys.key, desk_keys.secret));
    pass_encode(&pass, pass_text);
    assert_int_equal(ask(&question, text), WIRE_done);
    pass_text[strlen(pass_text) - 1] ^= 1;
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_true(strstr(text, "ws1 does not believe the pass for job 7 of a process on ws1 (forged)") ||
                strstr(text, "(garbled)"));
    assert_true(ticket_key_create(stranger_secret, stranger) && pass_sign(&pass, stranger, stranger_secret));
    pass_encode(&pass, pass_text);
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_true(strstr(text, "(other-cluster)"));
    snprintf(pass_text, sizeof(pass_text), "00");
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_true(strstr(text, "(garbled)"));
}

static int connect_in_silence(void);

/* For whoever asks, about a job of which the desk knows nothing: whose it is, is seen by what holds the terminal. */
static void passes_to_look(void **state)
{
    struct wire_message question = {.type = WIRE_pass_look, .id = 1, .u.pass_look = {.job = 7}};
    char key[2 * PASS_KEY_BYTES + 1], text[PASS_TEXT_MAX + 1];
    uint8_t bytes[PASS_KEY_BYTES] = {1, 2, 3};
    struct pass pass;
    struct wire_message answer;
    struct channel channel;
    (void)state;
    ticket_hex(bytes, sizeof(bytes), key);
    question.u.pass_look.key = key;
    assert_int_equal(channel_init(&channel, connect_in_silence(), WIRE_FROM_ROOT, 1 << 16), 0);
    channel.minor = WIRE_TICKET_MINOR;
    assert_int_equal(channel_send_all(&channel, &question, mono_ms(mono_now()) + WAIT_MS, NULL), 0);
    assert_int_equal(channel_receive(&channel, &answer, mono_ms(mono_now()) + WAIT_MS, NULL), 1);
    assert_int_equal(answer.type, WIRE_pass);
    assert_true(pass_decode(answer.u.pass.pass, &pass));
    wire_message_fini(&answer);
    channel_fini(&channel);
    assert_true(pass.looks && pass.job == 7 && pass.attempt == 0 && pass.uid == getuid());
    assert_string_equal(pass.host, "ws1");
    assert_memory_equal(pass.public_key, bytes, sizeof(bytes));
    question.u.pass_look.job = 0;
    assert_int_equal(ask(&question, text), WIRE_error);
    question.u.pass_look.job = 7;
    question.u.pass_look.key = "abc";
    assert_int_equal(ask(&question, text), WIRE_error);
}

/* ---- warrants ---- */

static void certify_key(void)
{
    uint8_t ca[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES], bytes[TICKET_BYTES_MAX], signature[TICKET_SIGNATURE_BYTES];
    struct ticket_keys keys;
    struct err err = ERR_INIT;
    char dir[64];
    assert_true(ticket_key_create(secret, ca));
    assert_true(ticket_sign_bytes(secret, bytes, ticket_certified_bytes("ws1", desk_keys.key, bytes), signature));
    snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(socket_path, '/') - socket_path), socket_path);
    assert_int_equal(ticket_keys_open(&keys, dir, "ws1", &err), 0);
    assert_int_equal(ticket_keys_certify(&keys, ca, signature, &err), 0);
    ticket_keys_close(&keys);
}

/* Who asks is who the kernel says, and what is signed is what he asks, with elmer's challenge. */
static void warrants_say_who_and_what(void **state)
{
    char challenge[2 * WARRANT_CHALLENGE_BYTES + 1], text[400], *json = NULL;
    struct wire_message kill7 = {.type = WIRE_kill, .u.kill = {.job = 7}}, decide, answer = {.type = WIRE_pong};
    struct wire_message question = {.type = WIRE_warrant_ask, .id = 1};
    struct client_desk user = {.beside = named};
    struct elmer_error error = {{0}};
    struct warrant warrant;
    uint8_t digest[TICKET_DIGEST_BYTES];
    (void)state;
    memset(challenge, 'a', sizeof(challenge) - 1);
    challenge[sizeof(challenge) - 1] = 0;
    question.u.warrant_ask.challenge = challenge;
    question.u.warrant_ask.request = "{}";
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_non_null(strstr(text, "the key of this host's tickets is not certified"));
    certify_key();
    question.u.warrant_ask.challenge = "abc";
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_string_equal(text, "elmer's challenge is none");
    assert_int_equal(client_warrant(&user, &kill7, WIRE_MINOR, challenge, mono_ms(mono_now()) + WAIT_MS, &decide,
                                    &answer, &json, &error),
                     ELMER_OK);
    assert_true(warrant_decode(decide.u.decide.warrant, &warrant));
    assert_string_equal(warrant.host, "ws1");
    assert_int_equal(warrant.uid, getuid());
    assert_int_equal(warrant.challenge[0], 0xaa);
    assert_true(ticket_digest_text(decide.u.decide.request, digest));
    assert_memory_equal(digest, warrant.request, sizeof(digest));
    wire_message_fini(&answer);
    free(json);
    client_desk_close(&user);
}

static int connect_in_silence(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Connections that say nothing, as many as there may be, hold nobody up. */
static void silence_holds_nobody_up(void **state)
{
    struct client_desk user = {.beside = named};
    int silent[MANY];
    uint64_t number;
    (void)state;
    for (int i = 0; i < MANY; i++)
        silent[i] = connect_in_silence();
    assert_int_equal(submit(&user, WAIT_MS, &number), ELMER_OK);
    for (int i = 0; i < MANY; i++)
        close(silent[i]);
    client_desk_close(&user);
}

static long desk_pages(void)
{
    char path[40];
    long all = 0, resident = 0;
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)desk);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &all, &resident), 2);
    fclose(file);
    return resident;
}

/* Who does not wait for his answers, and reads none, does not fill the memory. */
static void a_flood_is_not_kept(void **state)
{
    enum { BYTES = 32 << 20 };
    struct client_desk user = {.beside = named};
    struct wire_message m = submission();
    struct channel channel;
    long before = desk_pages();
    int64_t end = mono_ms(mono_now()) + WAIT_MS;
    uint64_t number;
    (void)state;
    assert_int_equal(channel_init(&channel, connect_in_silence(), WIRE_FROM_ROOT, BYTES), 0);
    channel.minor = WIRE_TICKET_MINOR;
    while (!channel.dead && channel_send(&channel, &m, NULL) == 0 && mono_ms(mono_now()) < end)
        ;
    assert_true(desk_pages() < before + (4 << 20) / sysconf(_SC_PAGESIZE));
    channel_fini(&channel);
    assert_int_equal(submit(&user, WAIT_MS, &number), ELMER_OK);
    client_desk_close(&user);
}

/* Of many large requests at once, each without its last byte: the kernel keeps what is not read. */
static void many_floods_are_not_kept(void **state)
{
    enum { CONNECTIONS = 256, BYTES = 1 << 20 };
    struct client_desk user = {.beside = named};
    static int fds[CONNECTIONS];
    char *frame = calloc(1, BYTES + WIRE_FRAME_HEADER);
    int64_t until = mono_ms(mono_now()) + 2000;
    long before = desk_pages(), most = 0;
    size_t sent[CONNECTIONS] = {0};
    uint64_t number;
    (void)state;
    assert_non_null(frame);
    wire_frame_header((uint8_t *)frame, BYTES);
    for (size_t i = 0; i < CONNECTIONS; i++)
        fds[i] = connect_in_silence();
    while (mono_ms(mono_now()) < until) { /* as much as it takes */
        for (size_t i = 0; i < CONNECTIONS; i++) {
            size_t left = BYTES + WIRE_FRAME_HEADER - 1 - sent[i];
            ssize_t n = send(fds[i], frame + sent[i], left, MSG_DONTWAIT | MSG_NOSIGNAL);
            sent[i] += n > 0 ? (size_t)n : 0;
        }
        most = desk_pages() > most ? desk_pages() : most;
    }
    print_message("256 connections: %ld KiB at most\n", (most - before) * sysconf(_SC_PAGESIZE) / 1024);
    assert_true(most > before + (4 << 20) / sysconf(_SC_PAGESIZE)); /* it did read */
    assert_true(most < before + (24 << 20) / sysconf(_SC_PAGESIZE));
    assert_int_equal(submit(&user, WAIT_MS, &number), ELMER_OK);
    for (size_t i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    client_desk_close(&user);
    free(frame);
}

static void end_desk(void)
{
    kill(desk, SIGKILL);
    waitpid(desk, NULL, 0);
    desk = 0;
}

/* While rsd starts again nobody listens, or nobody answers: that is not the same as no desk. */
static void busy_is_not_none(void **state)
{
    struct client_desk user = {.beside = named};
    uint64_t number;
    (void)state;
    assert_int_equal(submit(&user, WAIT_MS, &number), ELMER_OK);
    end_desk();
    assert_int_equal(submit(&user, 200, NULL), ELMER_UNAVAILABLE);
    close(listener);
    assert_int_equal(submit(&user, 200, NULL), ELMER_UNAVAILABLE);
    unlink(socket_path);
    assert_int_equal(submit(&user, WAIT_MS, NULL), ELMER_OK);
}

static void touch(const char *path, time_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A downgrade leaves the socket of the desk where it was: where the socket of rsd is newer nobody expects a ticket;
 * where rsd starts again, or is stopped, everybody does. */
static void an_rsd_of_before_does_not_sign(void **state)
{
    struct client_desk user = {.beside = named};
    int rsd;
    (void)state;
    end_desk();
    close(listener);
    assert_int_equal(submit(&user, 1000, NULL), ELMER_UNAVAILABLE);
    rsd = listen_on(rsd_path);
    touch(rsd_path, 1000);
    touch(socket_path, 1001);
    assert_int_equal(submit(&user, 1000, NULL), ELMER_UNAVAILABLE);
    touch(rsd_path, 1002);
    assert_int_equal(submit(&user, WAIT_MS, NULL), ELMER_OK);
    close(rsd);
    assert_int_equal(submit(&user, 1000, NULL), ELMER_UNAVAILABLE);
}

/* What elmer would refuse goes to it as it is; it says so better. */
static void what_cannot_be_signed_goes_without(void **state)
{
    struct client_desk user = {.beside = named};
    (void)state;
    nprocs = 0;
    assert_int_equal(submit(&user, WAIT_MS, NULL), ELMER_OK);
    nprocs = 1;
    client_desk_close(&user);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_on_one_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(the_longest_arrays_one_after_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_goes_without, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_keep_their_places, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_holds_nobody_up, setup, teardown),
        cmocka_unit_test_setup_teardown(a_flood_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(many_floods_are_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_signed_goes_without, setup, teardown),
        cmocka_unit_test_setup_teardown(no_pass_outside_of_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(passes_to_look, setup, teardown),
        cmocka_unit_test_setup_teardown(passes_are_looked_at, setup, teardown),
        cmocka_unit_test_setup_teardown(warrants_say_who_and_what, setup, teardown),
        cmocka_unit_test_setup_teardown(busy_is_not_none, setup, teardown),
        cmocka_unit_test_setup_teardown(an_rsd_of_before_does_not_sign, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
