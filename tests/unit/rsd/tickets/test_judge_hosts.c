/* test_judge_hosts.c - whose a ticket is: this host's own, or another's that has to be believed. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "rsd/tickets/desk.h"
#include "rsd/tickets/judge.h"
#include "tests/unit/scratch.h"

static uint8_t ca_secret[TICKET_KEY_BYTES], ca[TICKET_KEY_BYTES];
static struct ticket_keys keys;
static struct judge judge_;
static char text[TICKET_TEXT_MAX + 1];

/* Whoever holds the key of a host that the CA has certified under its name. */
static void certify(struct ticket_keys *host)
{
    uint8_t bytes[TICKET_BYTES_MAX];
    assert_true(
        ticket_sign_bytes(ca_secret, bytes, ticket_certified_bytes(host->host, host->key, bytes), host->certificate));
    memcpy(host->authority, ca, sizeof(host->authority));
    host->certified = true;
}

static int setup(void **state)
{
    char dir[64] = "/tmp/test_judge_hosts.XXXXXX";
    struct err err = ERR_INIT;
    (void)state;
    assert_non_null(scratch_dir(dir));
    assert_int_equal(ticket_keys_open(&keys, dir, "ws1", &err), 0);
    assert_true(ticket_key_create(ca_secret, ca));
    certify(&keys);
    judge_ = (struct judge){
        .window = ticket_window_create(), .hosts = "all", .users = "all", .record_fd = -1, .grant_fd = -1};
    ticket_keys_trust(&keys, &judge_.trust);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ticket_window_destroy(judge_.window);
    ticket_keys_close(&keys);
    return 0;
}

static void sign_by(const struct ticket_keys *signer)
{
    static const char *command[] = {"/bin/true"};
    static struct ticket_counter counter;
    struct wire_submit submit = {.token = "t",
                                 .name = "x",
                                 .nprocs = 1,
                                 .command = {command, 1},
                                 .dir = "/d",
                                 .umask = 022,
                                 .output = "o",
                                 .errors = ""};
    struct err err = ERR_INIT;
    if (desk_sign(signer, &counter, &submit, 1000, "alice", text, &err) < 0)
        fail_msg("%s", err.text);
}

static struct ticket_verdict ask_open(void)
{
    const char *texts[] = {text, "alice", "", "", "", ""};
    char bytes[TICKET_TEXT_MAX + 20];
    struct ticket_ask asked = {.verb = TICKET_ASK_OPEN, .job = 1, .attempt = 1, .uid = 1000, .processors = 1};
    struct ticket_verdict verdict;
    for (size_t i = 0; i < 6; i++) {
        memcpy(bytes + asked.size, texts[i], strlen(texts[i]) + 1);
        asked.size += (uint32_t)strlen(texts[i]) + 1;
    }
    judge(&judge_, &asked, bytes, &verdict);
    return verdict;
}

/* Its disk was stolen, and the host installed anew under the same name: the CA has certified both keys. */
static void an_earlier_key_of_this_name_is_of_another_host(void **state)
{
    struct ticket_keys earlier = keys;
    struct ticket_verdict verdict;
    (void)state;
    earlier.signer = NULL;
    assert_true(ticket_key_create(earlier.secret, earlier.key));
    certify(&earlier);
    sign_by(&earlier);
    verdict = ask_open();
    assert_int_equal(verdict.why, TICKET_GOOD);
    assert_false(verdict.ours); /* deny_groups is asked */
    judge_.hosts = "all !ws1";
    assert_int_equal(ask_open().why, TICKET_NOT_VOUCHED);
    judge_.hosts = "all";
    judge_.users = "all !alice";
    assert_int_equal(ask_open().why, TICKET_NOT_VOUCHED);
    judge_.hosts = "";
    sign_by(&keys);
    verdict = ask_open();
    assert_int_equal(verdict.why, TICKET_GOOD);
    assert_true(verdict.ours);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_earlier_key_of_this_name_is_of_another_host, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
