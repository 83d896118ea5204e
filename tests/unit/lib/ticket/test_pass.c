/* test_pass.c - passes: what they say is covered by the signature, and from which group a job is told; and what a
 * ticket lets pass as a courier, to whom they are shown. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ticket/keys.h"
#include "lib/ticket/pass.h"

static uint8_t authority[TICKET_KEY_BYTES], authority_secret[TICKET_KEY_BYTES];
static uint8_t key[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES];

static struct pass make(void)
{
    struct pass pass = {
        .host = "ws1", .job = 7, .attempt = 2, .uid = 1000, .user = "alice", .public_key = {1, 2, 3, 4, 5}};
    uint8_t bytes[TICKET_BYTES_MAX];
    assert_true(ticket_key_create(authority_secret, authority));
    assert_true(ticket_key_create(secret, key));
    assert_true(
        ticket_sign_bytes(authority_secret, bytes, ticket_certified_bytes("ws1", key, bytes), pass.certificate));
    assert_true(pass_sign(&pass, key, secret));
    return pass;
}

static struct ticket_trust trust_of(const char *own_host)
{
    struct ticket_trust trust = {.has_authority = true};
    snprintf(trust.own_host, sizeof(trust.own_host), "%s", own_host);
    memcpy(trust.authority, authority, sizeof(authority));
    return trust;
}

static void test_there_and_back(void **state)
{
    struct pass pass = make(), read;
    struct ticket_trust trust = trust_of("ws2"), alone = {.has_authority = false, .own_host = "ws1"};
    char text[PASS_TEXT_MAX + 1];
    (void)state;
    pass_encode(&pass, text);
    assert_true(pass_decode(text, &read));
    assert_memory_equal(&read, &pass, sizeof(pass));
    assert_int_equal(pass_check_chain(&read, &trust), TICKET_GOOD);
    assert_int_equal(pass_check_chain(&read, &alone),
                     TICKET_OTHER_CLUSTER); /* a key of the same name, not the host's */
    memcpy(alone.own, key, sizeof(key));
    assert_int_equal(pass_check_chain(&read, &alone), TICKET_GOOD); /* a host alone believes itself */
    memset(trust.authority, 0, sizeof(trust.authority));
    trust.next_kept = 0;
    memset(trust.kept, 0, sizeof(trust.kept));
    assert_int_equal(pass_check_chain(&read, &trust), TICKET_OTHER_CLUSTER);
}

/* Whatever is changed on the way, it is not what was signed. */
static void test_every_byte_counts(void **state)
{
    struct pass pass = make(), read;
    char text[PASS_TEXT_MAX + 1];
    size_t tried = 0, decoded = 0;
    (void)state;
    pass_encode(&pass, text);
    for (size_t i = 0; text[i]; i++) {
        struct ticket_trust trust = trust_of("ws2");
        char was = text[i];
        text[i] = was == '0' ? '1' : '0';
        tried++;
        if (pass_decode(text, &read)) {
            decoded++;
            assert_int_not_equal(pass_check_chain(&read, &trust), TICKET_GOOD);
        }
        text[i] = was;
    }
    assert_true(tried > 300 && decoded > 250);
}

static void test_what_is_none(void **state)
{
    struct pass pass = make(), read;
    char text[PASS_TEXT_MAX + 8];
    (void)state;
    assert_false(pass_decode("", &read));
    assert_false(pass_decode("00", &read));
    pass_encode(&pass, text);
    for (size_t length = strlen(text); length-- > 0;) { /* cut short anywhere */
        text[length] = 0;
        assert_false(pass_decode(text, &read));
    }
    pass_encode(&pass, text);
    snprintf(text + strlen(text), 3, "00");
    assert_false(pass_decode(text, &read));
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    assert_false(pass_decode(text, &read));
}

/* Beside its processes a job may have couriers, which are the host's own program, and nothing else. */
static void a_courier_is_nothing_else(void **state)
{
    static const char *const courier[] = {"elmer-courier"}, *const more[] = {"elmer-courier", "-x"},
                             *const other[] = {"/tmp/elmer-courier"};
    static const char *const given[] = {"PATH=/usr/bin", "LANG=C"}, *const command[] = {"sim"};
    static struct ticket t = {.nprocs = 4, .each = true, .name = "s"};
    const struct ticket_start good = {.job = 12,
                                      .role = TICKET_COMMAND,
                                      .process = 1 << 30,
                                      .argv = {courier, 1},
                                      .environment = {given, 2},
                                      .dir = "/home/a",
                                      .output = "",
                                      .errors = "",
                                      .umask = 022,
                                      .capture = true};
    struct ticket_start start = good;
    (void)state;
    assert_true(ticket_digest(&t, (struct ticket_list){command, 1}, (struct ticket_list){given, 2}, "/home/a", 022));
    assert_int_equal(ticket_check_start(&t, &start), TICKET_GOOD);
    start.process = UINT32_MAX;
    assert_int_equal(ticket_check_start(&t, &start), TICKET_GOOD);
    start.argv = (struct ticket_list){more, 2};
    assert_int_equal(ticket_check_start(&t, &start), TICKET_NO_SUCH_RANK);
    start.argv = (struct ticket_list){other, 1};
    assert_int_equal(ticket_check_start(&t, &start), TICKET_NO_SUCH_RANK);
    start = good;
    start.process = 0; /* in place of the command */
    assert_int_equal(ticket_check_start(&t, &start), TICKET_OTHER_COMMAND);
    start = good;
    start.output = "/home/a/.profile";
    assert_int_equal(ticket_check_start(&t, &start), TICKET_NO_SUCH_RANK);
    start = good;
    start.capture = false;
    assert_int_equal(ticket_check_start(&t, &start), TICKET_NO_SUCH_RANK);
    start = good;
    start.role = TICKET_AGENT;
    assert_int_equal(ticket_check_start(&t, &start), TICKET_OTHER_HELPER);
    start = good;
    start.dir = "/tmp";
    assert_int_equal(ticket_check_start(&t, &start), TICKET_OTHER_PLACE);
    start = good;
    start.environment = (struct ticket_list){given, 1};
    assert_int_equal(ticket_check_start(&t, &start), TICKET_OTHER_ENVIRONMENT);
}

/* A command has a terminal if it was signed so, and only then a pipe in the place of its output. */
static void a_terminal_is_signed(void **state)
{
    static const char *const given[] = {"PATH=/usr/bin", "ELMER_TERMINAL=keep"}, *const command[] = {"bash"};
    static struct ticket t = {.nprocs = 4, .name = "s"};
    const struct ticket_start good = {.job = 12,
                                      .role = TICKET_COMMAND,
                                      .argv = {command, 1},
                                      .environment = {given, 2},
                                      .dir = "/home/a",
                                      .output = "elmer-12.out",
                                      .errors = "elmer-12.out",
                                      .umask = 022,
                                      .capture = true};
    struct ticket_start start = good;
    (void)state;
    assert_true(ticket_digest(&t, (struct ticket_list){command, 1}, (struct ticket_list){given, 2}, "/home/a", 022));
    assert_int_equal(ticket_check_start(&t, &start), TICKET_GOOD);
    start.capture = false; /* elmer would have its output go elsewhere */
    assert_int_equal(ticket_check_start(&t, &start), TICKET_OTHER_OUTPUT);
    start = good;
    start.output = "/home/a/.profile";
    assert_int_equal(ticket_check_start(&t, &start), TICKET_OTHER_OUTPUT);
    start = good;
    start.environment = (struct ticket_list){given, 1};
    assert_int_equal(ticket_check_start(&t, &start), TICKET_OTHER_OUTPUT);
    start.capture = false;
    assert_int_equal(ticket_check_start(&t, &start), TICKET_OTHER_ENVIRONMENT);
    assert_true(ticket_digest(&t, (struct ticket_list){command, 1}, (struct ticket_list){given, 1}, "/home/a", 022));
    assert_int_equal(ticket_check_start(&t, &start), TICKET_GOOD); /* one without */
    start.environment = (struct ticket_list){given, 2};
    start.capture = true;
    assert_int_equal(ticket_check_start(&t, &start), TICKET_OTHER_ENVIRONMENT);
}

static void test_groups(void **state)
{
    static const char *const none[] = {"/",
                                       "/job",
                                       "/7.1",
                                       "/7.1/sup",
                                       "/7.1/job/x",
                                       "/a7.1/job",
                                       "/7.1x/job",
                                       "/7/job",
                                       "/7./job",
                                       "/.1/job",
                                       "/07.1/job",
                                       "/7.01/job",
                                       "/7.1.1/job",
                                       "/-7.1/job",
                                       "/7.4294967296/job",
                                       "/x/7.1/jobs",
                                       "/99999999999999999999999.1/job",
                                       "/7 .1/job",
                                       ""};
    uint64_t job = 0;
    uint32_t attempt = 0;
    (void)state;
    assert_true(pass_job_of_group("/elmer.slice/elmer-jobs.scope/7.1/job", &job, &attempt));
    assert_int_equal(job, 7);
    assert_int_equal(attempt, 1);
    assert_true(pass_job_of_group("/12.34/job", &job, &attempt));
    assert_int_equal(job, 12);
    assert_int_equal(attempt, 34);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        if (pass_job_of_group(none[i], &job, &attempt))
            fail_msg("%s is taken for a job's group", none[i]);
}

/* A host that is believed about alice alone signs her name, whatever uid it writes beside it. */
static void test_same_job(void **state)
{
    struct pass own = make(), other = own;
    (void)state;
    snprintf(other.host, sizeof(other.host), "ws9");
    assert_true(pass_is_of_job(&other, &own));
    snprintf(other.user, sizeof(other.user), "bob");
    assert_false(pass_is_of_job(&other, &own));
    other = own;
    other.uid++;
    assert_false(pass_is_of_job(&other, &own));
    other = own;
    other.attempt++;
    assert_false(pass_is_of_job(&other, &own));
    other = own;
    other.job++;
    assert_false(pass_is_of_job(&other, &own));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_what_is_none),   cmocka_unit_test(a_terminal_is_signed),
        cmocka_unit_test(test_groups),         cmocka_unit_test(a_courier_is_nothing_else),
        cmocka_unit_test(test_same_job),
    };
    return cmocka_run_group_tests_name("pass", tests, NULL, NULL);
}
