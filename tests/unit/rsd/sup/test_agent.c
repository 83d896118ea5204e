/* test_agent.c - what a supervisor hears of a job's agent, which is a process of the user: what may follow what, how
 * often, and whose number is on it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/sup/sup.h"

/* Time passes when a test says so. */
static struct mono now;

struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    return now;
}

/* And CPU time with each message that is passed on. */
static int64_t used_ns, message_ns;

int64_t __wrap_thread_time_ns(void);
int64_t __wrap_thread_time_ns(void)
{
    return used_ns;
}

/* What the root half is told. */
static char told[1000];

void sup_tell(struct sup *sup, const struct wire_message *message)
{
    size_t used = strlen(told), room = sizeof(told) - used;
    (void)sup;
    used_ns += message_ns;
    if (message->type == WIRE_pvm_spawn)
        snprintf(told + used, room, "spawn %d.%d %d %s %s\n", (int)message->u.pvm_spawn.job,
                 (int)message->u.pvm_spawn.attempt, (int)message->u.pvm_spawn.request, message->u.pvm_spawn.host,
                 message->u.pvm_spawn.command);
    else if (message->type == WIRE_pvm_ready)
        snprintf(told + used, room, "ready %d.%d\n", (int)message->u.pvm_ready.job, (int)message->u.pvm_ready.attempt);
    else if (message->type == WIRE_pvm_failed)
        snprintf(told + used, room, "failed %d.%d: %s\n", (int)message->u.pvm_failed.job,
                 (int)message->u.pvm_failed.attempt, message->u.pvm_failed.reason);
    else
        fail_msg("told %s", wire_type_name(message->type));
}

static struct sup sup;
static struct process process, command;
static struct process *processes[] = {&command, &process};
static struct channel agent; /* its end */

static void expect(const char *text)
{
    assert_string_equal(told, text);
    told[0] = '\0';
}
#define CHANGED "failed 7.2: the agent of the job's virtual machine sent what it may not: was it changed?\n"

static int begin(void **state)
{
    int pair[2];
    (void)state;
    now = (struct mono){INT64_C(1000000000000)};
    told[0] = '\0';
    message_ns = 3000; /* it takes 2 to 3 us */
    sup = (struct sup){.job = 7, .attempt = 2, .processes = processes, .count = 2};
    process = (struct process){.role = ROLE_AGENT, .has_agent = true, .may_spawn = 2};
    command = (struct process){.role = ROLE_COMMAND};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(channel_init(&process.agent, pair[0], WIRE_FROM_AGENT, 1 << 16), 0);
    assert_int_equal(channel_init(&agent, pair[1], WIRE_FROM_SUPERVISOR, 1 << 20), 0);
    process.agent.in.max = SUP_AGENT_FRAME;
    process.agent.read_max = SUP_AGENT_READ;
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (process.has_agent)
        channel_fini(&process.agent);
    agent_forget(&process);
    channel_fini(&agent);
    return 0;
}

static void say(const struct wire_message *message)
{
    assert_int_equal(channel_send(&agent, message, NULL), 0);
}

static void say_spawn(int request, const char *host)
{
    struct wire_message message = {.type = WIRE_agent_spawn};
    message.u.agent_spawn = (struct wire_agent_spawn){.request = (uint64_t)request, .host = host, .command = "pvmd -s"};
    say(&message);
}

static void say_ready(void)
{
    say(&(struct wire_message){.type = WIRE_agent_ready});
}

/* ---- what may follow what ---- */

static void test_a_machine_comes_up(void **state)
{
    (void)state;
    say_spawn(1, "ws2");
    say_spawn(2, "ws3");
    say_ready();
    agent_read(&sup, &process);
    expect("spawn 7.2 1 ws2 pvmd -s\nspawn 7.2 2 ws3 pvmd -s\nready 7.2\n");
    assert_true(process.has_agent && process.agent_ready);
}

/* What has no answer yet, when the link to elmer was cut. */
static void test_says_it_again(void **state)
{
    struct wire_message spawned = {.type = WIRE_pvm_spawned, .u.pvm_spawned = {.request = 1, .line = "ddpro<1>"}};
    (void)state;
    say_spawn(1, "ws2");
    say_spawn(2, "ws3");
    agent_read(&sup, &process);
    expect("spawn 7.2 1 ws2 pvmd -s\nspawn 7.2 2 ws3 pvmd -s\n");
    agent_hear_root(&sup, &spawned);
    agent_resend(&sup, &process);
    expect("spawn 7.2 2 ws3 pvmd -s\n");
    spawned.u.pvm_spawned.request = 2;
    agent_hear_root(&sup, &spawned);
    agent_hear_root(&sup, &spawned);
    agent_resend(&sup, &process);
    expect("");
    say_ready();
    agent_read(&sup, &process);
    agent_resend(&sup, &process);
    expect("ready 7.2\nready 7.2\n");
}

static void test_no_more_hosts_than_it_has(void **state)
{
    (void)state;
    for (int i = 1; i <= 4; i++)
        say_spawn(i, "ws2");
    agent_read(&sup, &process);
    expect("spawn 7.2 1 ws2 pvmd -s\nspawn 7.2 2 ws2 pvmd -s\n" CHANGED);
    assert_false(process.has_agent);
}

static void test_nothing_after_ready(void **state)
{
    (void)state;
    say_ready();
    say_spawn(1, "ws2");
    agent_read(&sup, &process);
    expect("ready 7.2\n" CHANGED);
    assert_false(process.has_agent);
}

static void test_ready_once(void **state)
{
    (void)state;
    say_ready();
    say_ready();
    agent_read(&sup, &process);
    expect("ready 7.2\n" CHANGED);
}

static void test_failed_is_the_last_word(void **state)
{
    struct wire_message message = {.type = WIRE_agent_failed};
    (void)state;
    message.u.agent_failed.reason = "no pvmd";
    say(&message);
    say_spawn(1, "ws2");
    agent_read(&sup, &process);
    expect("failed 7.2: no pvmd\n");
    assert_false(process.has_agent);
}

/* ---- what is no message of an agent ---- */

static void test_what_is_not_decoded(void **state)
{
    static const char frame[] = "\0\0\0\4junk";
    (void)state;
    assert_int_equal(write(agent.fd, frame, sizeof(frame) - 1), (int)sizeof(frame) - 1);
    agent_read(&sup, &process);
    expect(CHANGED);
    assert_false(process.has_agent);
}

static void test_what_an_agent_may_not_send(void **state)
{
    struct wire_message message = {.type = WIRE_pvm_ready};
    (void)state;
    message.u.pvm_ready = (struct wire_pvm_ready){.job = 8, .attempt = 1}; /* of another job, too */
    say(&message);
    agent_read(&sup, &process);
    expect(CHANGED);
    assert_false(process.has_agent);
}

static void test_a_frame_that_is_too_long(void **state)
{
    const unsigned char header[] = {0, 0, SUP_AGENT_FRAME >> 8, 1};
    (void)state;
    assert_int_equal(write(agent.fd, header, sizeof(header)), (int)sizeof(header));
    agent_read(&sup, &process);
    expect(CHANGED);
    assert_false(process.has_agent);
}

/* Its exit tells how it ended; what it has said before that counts. */
static void test_its_end_is_no_failure(void **state)
{
    (void)state;
    say_spawn(1, "ws2");
    assert_int_equal(shutdown(agent.fd, SHUT_RDWR), 0);
    agent_read(&sup, &process);
    if (process.has_agent)
        agent_read(&sup, &process);
    expect("spawn 7.2 1 ws2 pvmd -s\n");
    assert_false(process.has_agent);
}

/* ---- how often ---- */

static void test_bit_by_bit(void **state)
{
    static const char bit[] = "\0"; /* of the header of a frame, which is never whole */
    int reads = 0;
    (void)state;
    assert_int_equal(agent_wait_ms(&process, mono_ms(now)), 0);
    for (; reads < 100 && agent_wait_ms(&process, mono_ms(now)) == 0; reads++) {
        if (reads < 3)
            assert_int_equal(write(agent.fd, bit, 1), 1);
        agent_read(&sup, &process);
    }
    assert_int_equal(reads, 4);
    assert_int_equal(agent_wait_ms(&process, mono_ms(now)), 100);
    now.ns += INT64_C(99000000);
    assert_int_equal(agent_wait_ms(&process, mono_ms(now)), 1);
    now.ns += INT64_C(1000000);
    assert_int_equal(agent_wait_ms(&process, mono_ms(now)), 0);
    agent_read(&sup, &process);
    assert_int_equal(agent_wait_ms(&process, mono_ms(now)), 800);
    expect("");
    process.has_agent = false; /* none: nothing to wait for */
    assert_int_equal(agent_wait_ms(&process, 0), 0);
    process.has_agent = true;
}

/* Whole messages go through as many at a time. */
static void test_whole_messages(void **state)
{
    int reads = 0;
    (void)state;
    process.may_spawn = 100;
    for (; reads < 100 && agent_wait_ms(&process, mono_ms(now)) == 0; reads++) {
        say_spawn(reads + 1, "ws2");
        agent_read(&sup, &process);
        told[0] = '\0';
    }
    assert_int_equal(reads, 32);
}

/* As the agent asks for them, and with commands as PVM makes them. */
static void say_hosts(int count)
{
    struct wire_message message = {.type = WIRE_agent_spawn};
    for (int i = 1; i <= count; i++) {
        char host[40], words[120];
        snprintf(host, sizeof(host), "ws%d.example.org", i);
        snprintf(words, sizeof(words), "pvmd -s -d0x0 -n%s 1 0a4d0001:c198 4080 %d 0a4d%04x:0000", host, i, i);
        message.u.agent_spawn = (struct wire_agent_spawn){.request = (uint64_t)i, .host = host, .command = words};
        say(&message);
    }
}

/* Looks as often as it may until all is heard that is said; by the clock, in ms. */
static int64_t hear_all(size_t left)
{
    const struct mono begin = now;
    while (process.has_agent && process.may_spawn > left && now.ns - begin.ns < INT64_C(60000000000)) {
        now.ns += agent_wait_ms(&process, mono_ms(now)) * 1000000;
        assert_int_equal(channel_flush(&agent), 0);
        agent_read(&sup, &process);
    }
    assert_int_equal(process.may_spawn, left);
    return (now.ns - begin.ns) / 1000000;
}

/* As many at a time as have come, or the last hosts would be too late for the agent's deadline of 10 s. */
static void test_requests_of_a_large_machine(void **state)
{
    enum { HOSTS = 960, ONE_BY_ONE = 60 };
    (void)state;
    process.may_spawn = HOSTS;
    for (size_t left = HOSTS - 1; left >= HOSTS - ONE_BY_ONE; left--) {
        say_hosts(1);
        hear_all(left);
    }
    assert_true(agent_wait_ms(&process, mono_ms(now)) > 0);
    say_hosts(HOSTS - ONE_BY_ONE);
    assert_in_range(hear_all(0), 1, 2000);
}

static int waiting(void)
{
    int bytes = 0;
    assert_int_equal(ioctl(process.agent.fd, FIONREAD, &bytes), 0);
    return bytes;
}

static void test_a_look_has_an_end(void **state)
{
    (void)state;
    process.may_spawn = 1000;
    say_hosts(1000);
    for (int pass = 0; pass < 2; pass++) {
        const int before = waiting();
        assert_true(before > 20 * SUP_AGENT_READ);
        message_ns = pass == 0 ? 0 : 100000; /* then a read has more than three of them */
        agent_read(&sup, &process);
        assert_int_equal(before - waiting(), pass == 0 ? 16 * SUP_AGENT_READ : SUP_AGENT_READ);
        assert_int_equal(channel_flush(&agent), 0);
    }
}

/* ---- what it wrote last ---- */

static void run_into_debt(void)
{
    for (int i = 0; i < 100 && agent_wait_ms(&process, mono_ms(now)) == 0; i++)
        agent_read(&sup, &process);
    assert_true(agent_wait_ms(&process, mono_ms(now)) > 0);
}

static void test_last_message_is_long(void **state)
{
    struct wire_message message = {.type = WIRE_agent_spawn};
    char words[2049]; /* six bytes for each */
    (void)state;
    run_into_debt();
    memset(words, 1, sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    message.u.agent_spawn = (struct wire_agent_spawn){.request = 1, .host = "ws2", .command = words};
    say(&message);
    assert_true(waiting() > 12 * SUP_AGENT_READ);
    agent_drain(&sup, &process);
    assert_false(process.has_agent);
    assert_int_equal(process.may_spawn, 1);
}

static void test_last_messages_are_many(void **state)
{
    (void)state;
    process.may_spawn = 101;
    run_into_debt();
    say_hosts(100);
    assert_true(waiting() > 8 * SUP_AGENT_READ);
    agent_drain(&sup, &process);
    assert_int_equal(process.may_spawn, 1);
}

/* A child of its own may go on with it. */
static void test_last_words_have_an_end(void **state)
{
    enum { HOSTS = 1000, LEAST_BYTES = 120 /* of a request */ };
    (void)state;
    process.may_spawn = HOSTS;
    say_hosts(HOSTS);
    assert_true(waiting() > 2 * (SUP_AGENT_FRAME + SUP_AGENT_READ));
    message_ns = 100000;
    agent_drain(&sup, &process);
    assert_false(process.has_agent);
    assert_in_range(HOSTS - process.may_spawn, 1, (SUP_AGENT_FRAME + SUP_AGENT_READ) / LEAST_BYTES);
}

/* ---- what it is told ---- */

static void hears(enum wire_type type, struct wire_message *message)
{
    assert_int_equal(channel_fill(&agent, NULL), 0);
    assert_int_equal(channel_next(&agent, message, NULL), 1);
    assert_int_equal(message->type, type);
}

static void test_answers_of_hosts(void **state)
{
    struct wire_message message = {.type = WIRE_pvm_spawned}, heard;
    (void)state;
    message.u.pvm_spawned = (struct wire_pvm_spawned){.job = 7, .attempt = 2, .request = 5, .line = "ddpro<2316>"};
    agent_hear_root(&sup, &message);
    hears(WIRE_agent_spawned, &heard);
    assert_int_equal(heard.u.agent_spawned.request, 5);
    assert_string_equal(heard.u.agent_spawned.line, "ddpro<2316>");
    wire_message_fini(&heard);
    agent_hear_root(&sup, &(struct wire_message){.type = WIRE_pvm_finish});
    hears(WIRE_agent_finish, &heard);
    wire_message_fini(&heard);
}

/* A root half that has adopted us does not know yet. */
static void test_ready_is_said_again(void **state)
{
    (void)state;
    agent_resend(&sup, &process);
    expect("");
    say_ready();
    agent_read(&sup, &process);
    expect("ready 7.2\n");
    agent_resend(&sup, &process);
    expect("ready 7.2\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_a_machine_comes_up),
        TEST(test_says_it_again),
        TEST(test_no_more_hosts_than_it_has),
        TEST(test_nothing_after_ready),
        TEST(test_ready_once),
        TEST(test_failed_is_the_last_word),
        TEST(test_what_is_not_decoded),
        TEST(test_what_an_agent_may_not_send),
        TEST(test_a_frame_that_is_too_long),
        TEST(test_its_end_is_no_failure),
        TEST(test_bit_by_bit),
        TEST(test_whole_messages),
        TEST(test_requests_of_a_large_machine),
        TEST(test_a_look_has_an_end),
        TEST(test_last_message_is_long),
        TEST(test_last_messages_are_many),
        TEST(test_last_words_have_an_end),
        TEST(test_answers_of_hosts),
        TEST(test_ready_is_said_again),
    };
    return cmocka_run_group_tests_name("agent of a job", tests, NULL, NULL);
}
