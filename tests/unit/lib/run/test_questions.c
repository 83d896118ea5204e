/* test_questions.c - what elmer-tickets of this host is asked, also one of before that does not know it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/run/desk.h"
#include "tests/unit/scratch.h"

enum { WAIT_MS = 20000 };
enum age { OF_NOW, OF_BEFORE, ENDS };

static pid_t desk;

static int64_t deadline(void)
{
    return mono_ms(mono_now()) + WAIT_MS;
}

/* A list holds for who would have something done here: it refuses what is asked so. */
static void answer(struct channel *channel, const struct wire_message *request)
{
    struct wire_message message = {.type = WIRE_done, .id = request->id, .u.done = {.text = ""}};
    if (request->type == WIRE_pass_check && strcmp(request->u.pass_check.pass, "denied") == 0)
        message = (struct wire_message){
            .type = WIRE_error, .id = request->id, .u.error = {.code = WIRE_CODE_REFUSED, .text = "he is denied"}};
    (void)channel_send_all(channel, &message, deadline(), NULL);
}

static _Noreturn void serve(int listener, enum age age)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        struct channel channel;
        struct wire_message request;
        if (fd < 0 || channel_init(&channel, fd, WIRE_FROM_CLIENT, 1 << 16) < 0)
            _exit(1);
        channel.minor = WIRE_TICKET_MINOR;
        if (channel_receive(&channel, &request, deadline(), NULL) > 0) {
            if (age != ENDS && (age == OF_NOW || request.type != WIRE_pass_trust))
                answer(&channel, &request);
            wire_message_fini(&request);
        }
        channel_fini(&channel);
    }
}

static void begin(enum age age)
{
    char dir[64] = "/tmp/test_questions.XXXXXX", path[96];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_non_null(scratch_dir(dir));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/ticket.sock", dir);
    snprintf(path, sizeof(path), "%s/elmer.sock", dir);
    setenv("ELMER_SOCKET", path, 1);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 16), 0);
    desk = fork();
    assert_true(desk >= 0);
    if (desk == 0)
        serve(listener, age);
    close(listener);
}

static int end(void **state)
{
    (void)state;
    kill(desk, SIGKILL);
    waitpid(desk, NULL, 0);
    unsetenv("ELMER_SOCKET");
    return 0;
}

static int check(const char *pass)
{
    struct err err = ERR_INIT;
    struct run_desk question;
    int result = run_desk_ask_check(&question, pass, &err);
    return result == 0 ? run_desk_wait(&question, NULL, deadline(), &err) : result;
}

static int trust(const char *pass)
{
    struct err err = ERR_INIT;
    struct run_desk question;
    int result = run_desk_ask_trust(&question, pass, &err);
    return result == 0 ? run_desk_wait(&question, NULL, deadline(), &err) : result;
}

static void test_two_questions(void **state)
{
    (void)state;
    begin(OF_NOW);
    assert_int_equal(check("good"), 0);
    assert_int_equal(check("denied"), -EACCES);
    assert_int_equal(trust("good"), 0);
    assert_int_equal(trust("denied"), 0);
}

static void test_one_of_before(void **state)
{
    (void)state;
    begin(OF_BEFORE);
    assert_int_equal(check("good"), 0);
    assert_int_equal(trust("good"), 0);
    assert_int_equal(trust("denied"), -EACCES);
}

/* Asked once more, and no more often. */
static void test_one_that_ends(void **state)
{
    (void)state;
    begin(ENDS);
    assert_int_equal(check("good"), -ECONNRESET);
    assert_int_equal(trust("good"), -ECONNRESET);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, end)
    const struct CMUnitTest tests[] = {
        CASE(test_two_questions),
        CASE(test_one_of_before),
        CASE(test_one_that_ends),
    };
    return cmocka_run_group_tests_name("questions", tests, NULL, NULL);
}
