/* test_commands_sign.c - administrators on a host of admin_hosts: what elmer refuses as it stands is signed by the
 * local rsd with elmer's challenge, and asked again. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

static const char challenge[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static void refuse(struct world *w, uint64_t id, const char *text)
{
    struct wire_message message = {.type = WIRE_error, .id = id};

    message.u.error.code = WIRE_CODE_NOT_PERMITTED;
    message.u.error.text = text;
    peer_send(&w->elmer, &message);
}

/* The first answer to a request of that type, and whether the program then may sign. */
static void refuse_first(struct world *w, enum wire_type type, bool challenges)
{
    struct wire_message message = peer_expect(&w->elmer, type), ask;
    struct wire_message given = {.type = WIRE_challenge, .u.challenge.challenge = challenge};

    refuse(w, message.id, "job 7 belongs to alice: only its owner may do this");
    wire_message_fini(&message);
    ask = peer_expect(&w->elmer, WIRE_challenge_ask);
    given.id = ask.id;
    if (challenges)
        peer_send(&w->elmer, &given);
    else
        refuse(w, ask.id, "there is nothing to sign");
    wire_message_fini(&ask);
}

static int desk_listen(const struct world *w, char path[128])
{
    snprintf(path, 128, "%s/ticket.sock", w->dir);
    return peer_listen(path);
}

/* What is asked to be signed, which the caller frees. */
static struct wire_message desk_hear(int listening, struct channel *desk)
{
    assert_int_equal(channel_init(desk, peer_accept_fd(listening), WIRE_FROM_CLIENT, 1 << 20), 0);
    desk->minor = WIRE_TICKET_MINOR;
    return peer_expect(desk, WIRE_warrant_ask);
}

static void desk_sign(struct channel *desk, uint64_t id)
{
    struct wire_message answer = {.type = WIRE_warrant, .id = id, .u.warrant.warrant = "abcd"};

    peer_send(desk, &answer);
}

static void done(struct world *w, uint64_t id, const char *text)
{
    struct wire_message message = {.type = WIRE_done, .id = id, .u.done.text = text};

    peer_send(&w->elmer, &message);
}

static void test_signed(void **data)
{
    struct world *w = *data;
    struct wire_message asked, decide, inner;
    struct channel desk;
    struct err err = ERR_INIT;
    char path[128];
    int listening = desk_listen(w, path);

    RUN(w, "ekill", "7");
    accept_command(w);
    refuse_first(w, WIRE_kill, true);
    asked = desk_hear(listening, &desk);
    assert_string_equal(asked.u.warrant_ask.challenge, challenge);
    desk_sign(&desk, asked.id);
    decide = peer_expect(&w->elmer, WIRE_decide);
    assert_string_equal(decide.u.decide.warrant, "abcd");
    assert_int_equal(decide.u.decide.minor, WIRE_WARRANT_MINOR); /* that elmer does not say what it reads */
    assert_string_equal(decide.u.decide.request, asked.u.warrant_ask.request); /* byte for byte what was signed */
    assert_int_equal(wire_decode(decide.u.decide.request, strlen(decide.u.decide.request),
                                 (unsigned)decide.u.decide.minor, &inner, &err),
                     0);
    assert_int_equal(inner.type, WIRE_kill);
    assert_int_equal(inner.u.kill.job, 7);
    done(w, decide.id, "job 7 is being ended");
    assert_int_equal(finish(w), 0);
    assert_non_null(strstr(w->stderr_text, "job 7 is being ended"));
    assert_null(strstr(w->stderr_text, "belongs to alice"));
    wire_message_fini(&inner);
    wire_message_fini(&asked);
    wire_message_fini(&decide);
    channel_fini(&desk);
    close(listening);
    unlink(path);
}

/* A connection that breaks takes the challenge along: all of it is done again. */
static void test_again(void **data)
{
    struct world *w = *data;
    struct wire_message asked, decide;
    struct channel desk;
    char path[128];
    int listening = desk_listen(w, path);

    RUN(w, "eadmin", "drain", "ws1");
    accept_command(w);
    refuse_first(w, WIRE_drain, true);
    asked = desk_hear(listening, &desk);
    desk_sign(&desk, asked.id);
    wire_message_fini(&asked);
    peer_expect_gone(&w->elmer, WIRE_decide);
    accept_command(w); /* the one before is closed */
    refuse_first(w, WIRE_drain, true);
    asked = peer_expect(&desk, WIRE_warrant_ask);
    desk_sign(&desk, asked.id);
    wire_message_fini(&asked);
    decide = peer_expect(&w->elmer, WIRE_decide);
    done(w, decide.id, "host ws1 takes no new jobs");
    wire_message_fini(&decide);
    assert_int_equal(finish(w), 0);
    channel_fini(&desk);
    close(listening);
    unlink(path);
}

/* Who is no administrator reads the first answer; what is wrong with the signature is told instead of it. */
static void test_refused(void **data)
{
    struct world *w = *data;
    struct wire_message asked, decide;
    struct channel desk;
    char path[128];
    int listening;

    RUN(w, "ekill", "7");
    accept_command(w);
    refuse_first(w, WIRE_kill, false);
    assert_int_equal(finish(w), 5);
    assert_non_null(strstr(w->stderr_text, "job 7 belongs to alice: only its owner may do this"));
    listening = desk_listen(w, path);
    RUN(w, "ekill", "7");
    accept_command(w);
    refuse_first(w, WIRE_kill, true);
    asked = desk_hear(listening, &desk);
    desk_sign(&desk, asked.id);
    wire_message_fini(&asked);
    decide = peer_expect(&w->elmer, WIRE_decide);
    refuse(w, decide.id, "the decision is refused: other-cluster: the key is not certified");
    wire_message_fini(&decide);
    assert_int_equal(finish(w), 5);
    assert_non_null(strstr(w->stderr_text, "the decision is refused: other-cluster"));
    channel_fini(&desk);
    close(listening);
    unlink(path);
}

/* Nobody signs, or he says why not. */
static void test_no_signature(void **data)
{
    struct world *w = *data;
    struct wire_message asked, error = {.type = WIRE_error};
    struct channel desk;
    char path[128];
    int listening;

    RUN(w, "ekill", "7");
    accept_command(w);
    refuse_first(w, WIRE_kill, true);
    assert_int_equal(finish(w), 5);
    assert_non_null(strstr(w->stderr_text, "rsd of this host does not sign it"));
    listening = desk_listen(w, path);
    RUN(w, "ekill", "7"); /* an rsd of before: it does not know the question, and hangs up */
    accept_command(w);
    refuse_first(w, WIRE_kill, true);
    asked = desk_hear(listening, &desk);
    channel_fini(&desk);
    wire_message_fini(&asked);
    assert_int_equal(finish(w), 5);
    assert_non_null(strstr(w->stderr_text, "it is from before protocol 1.10, or does not run"));
    RUN(w, "ekill", "7");
    accept_command(w);
    refuse_first(w, WIRE_kill, true);
    asked = desk_hear(listening, &desk);
    error.id = asked.id;
    error.u.error.code = WIRE_CODE_REFUSED;
    error.u.error.text = "the key of this host's tickets is not certified";
    peer_send(&desk, &error);
    wire_message_fini(&asked);
    assert_int_equal(finish(w), 5);
    assert_non_null(strstr(w->stderr_text, "the key of this host's tickets is not certified"));
    channel_fini(&desk);
    close(listening);
    unlink(path);
}

/* An elmer or rsd of before gives no challenges, and is not asked for one. */
static void test_earlier_elmer(void **data)
{
    struct world *w = *data;
    struct wire_message message;

    RUN(w, "ekill", "7");
    accept_twice_of_minor(w, 9); /* kill has a field more since */
    message = peer_expect(&w->elmer, WIRE_kill);
    refuse(w, message.id, "job 7 belongs to alice: only its owner may do this");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 5);
    assert_non_null(strstr(w->stderr_text, "job 7 belongs to alice"));
}

int main(void)
{
#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_signed),       WITH_ELMER(test_again),         WITH_ELMER(test_refused),
        WITH_ELMER(test_no_signature), WITH_ELMER(test_earlier_elmer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
