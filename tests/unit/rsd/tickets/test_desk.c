/* test_desk.c - users' side and the desk that signs, over their socket: many tickets on one connection, and no
 * submission that goes without because others are quicker. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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
#include "tests/unit/rsd/tickets/desk_bed.h"

enum { MANY = 800 }; /* more than there are places for all users together */

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

static int desk_files(void)
{
    char path[40];
    int count = -2; /* . and .. */
    DIR *list;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)desk);
    list = opendir(path);
    assert_non_null(list);
    while (readdir(list))
        count++;
    closedir(list);
    return count;
}

/* As another user: takes all tickets that he may have at once, then all places that he may have, and waits for more. */
static _Noreturn void take_all(uid_t uid, int said)
{
    enum { OF_A_USER = 256, ARRAYS = 100000 / 207 + 1 };
    struct client_desk user = {.beside = named};
    static struct client_desk users[OF_A_USER];
    static struct client_signing signings[OF_A_USER];
    struct wire_message m;
    uint64_t number;
    if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(1);
    tasks = "1-100000";
    for (int i = 0; i < ARRAYS; i++)
        if (submit(&user, i + 1 < ARRAYS ? WAIT_MS : 200, &number) != ELMER_OK && i + 1 < ARRAYS)
            _exit(1);
    client_desk_close(&user);
    for (int i = 0; i < OF_A_USER; i++) {
        users[i].beside = named;
        m = submission();
        client_ticket_begin(&users[i], &signings[i], &m, mono_ms(mono_now()) + WAIT_MS);
    }
    for (bool told = false;;) { /* who is put out comes again, with others between */
        for (int i = 0; i < OF_A_USER; i++) {
            struct pollfd fd = {.fd = client_desk_events(&users[i]) ? users[i].channel.fd : -1,
                                .events = client_desk_events(&users[i])};
            client_desk_step(&users[i], poll(&fd, 1, 0) > 0);
        }
        if (!told && write(said, "", 1) != 1)
            _exit(1);
        told = true;
        poll(NULL, 0, 10);
    }
}

/* Who has had too many tickets waits for the next, and gives way to those who have not, however many there are. */
static void who_waits_for_tickets_makes_room(void **state)
{
    enum { OTHERS = 4, PLACES = 768 };
    struct client_desk user = {.beside = named};
    int64_t end_ms = mono_ms(mono_now()) + WAIT_MS;
    pid_t others[OTHERS];
    char *slash = strrchr(socket_path, '/'), said[OTHERS];
    int pipes[2], before, files, result;
    uint64_t number;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root has other users\n");
        skip();
    }
    *slash = 0;
    assert_int_equal(chmod(socket_path, 0755), 0);
    *slash = '/';
    assert_int_equal(chmod(socket_path, 0666), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(submit(&user, WAIT_MS, &number), ELMER_OK);
    before = desk_files() - 1;
    client_desk_close(&user);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = fork();
        assert_true(others[i] >= 0);
        if (others[i] == 0)
            take_all((uid_t)(i + 1), pipes[1]); /* daemon, bin, sys, sync */
    }
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(read(pipes[0], said, 1), 1);
    while (desk_files() < before + PLACES && mono_ms(mono_now()) < end_ms)
        poll(NULL, 0, 10);
    files = desk_files();
    result = submit(&user, 8000, &number); /* a place is free by itself after 15 s */
    for (int i = 0; i < OTHERS; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    close(pipes[0]);
    close(pipes[1]);
    client_desk_close(&user);
    assert_true(files >= before + PLACES);
    assert_int_equal(result, ELMER_OK);
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
#ifndef __SANITIZE_ADDRESS__                                        /* which keeps what is freed for a while */
    assert_true(most < before + (24 << 20) / sysconf(_SC_PAGESIZE));
#endif
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

/* elmer would take it, and the host that runs it say that there is no ticket. */
static void what_cannot_be_signed_is_not_submitted(void **state)
{
    struct client_desk user = {.beside = named};
    struct client_signing signing = {.state = SIGNING_NONE};
    struct wire_message m = submission();
    struct elmer_error error;
    static char output[TICKET_PATH_MAX + 1], errors[TICKET_PATH_MAX + 1], odds[900] = "1";
    (void)state;
    memset(output, 'o', TICKET_PATH_MAX);
    memset(errors, 'e', TICKET_PATH_MAX);
    for (size_t i = 3, end = 1; end < sizeof(odds) - 8; i += 2)
        end += (size_t)snprintf(odds + end, sizeof(odds) - end, ",%zu", i);
    m.u.submit.output = output;
    m.u.submit.errors = errors;
    m.u.submit.tasks = odds;
    client_ticket_begin(&user, &signing, &m, mono_ms(mono_now()) + WAIT_MS);
    until_signed(&user, &signing);
    assert_int_equal(client_ticket_take(&signing, &m, &error), ELMER_REFUSED);
    assert_string_equal(error.text, "it cannot be signed: its tasks and the names of its files are too long together: "
                                    "shorten them");
    client_signing_drop(&user, &signing);
    client_desk_close(&user);
}

/* Where jobs run without one, as they did before there were tickets. */
static void what_cannot_be_signed_goes_without(void **state)
{
    struct client_desk user = {.beside = named};
    (void)state;
    nprocs = 0;
    assert_int_equal(submit(&user, WAIT_MS, NULL), ELMER_OK);
    nprocs = 1;
    client_desk_close(&user);
}

static int setup_accepting(void **state)
{
    accepts = true;
    return setup(state);
}

static int teardown_accepting(void **state)
{
    accepts = false;
    return teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_on_one_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(the_longest_arrays_one_after_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_goes_without, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_keep_their_places, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_holds_nobody_up, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits_for_tickets_makes_room, setup, teardown),
        cmocka_unit_test_setup_teardown(a_flood_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(many_floods_are_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_signed_is_not_submitted, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_signed_goes_without, setup_accepting, teardown_accepting),
        cmocka_unit_test_setup_teardown(busy_is_not_none, setup, teardown),
        cmocka_unit_test_setup_teardown(an_rsd_of_before_does_not_sign, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
