/* test_packed.c - what two processes of a job say to each other, as bytes: what is to be started, what was added to an
 * environment, how a look at a terminal begins. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run/added.h"
#include "lib/run/link.h"
#include "lib/run/look.h"
#include "lib/run/pack.h"

/* ---- what is to be started ---- */

static struct run_start example(void)
{
    static const char *argv[] = {"echo", "", "a b", NULL}, *environment[] = {"A=1", "B=", NULL};
    static const struct run_rank ranks[] = {{0, 1}, {4000000000U, RUN_NO_CPU}};
    return (struct run_start){.input = true,
                              .mpi = true,
                              .home = true,
                              .umask = 027,
                              .rows = 24,
                              .columns = 80,
                              .total = 9,
                              .dir = "/d",
                              .argv = {argv, 3},
                              .environment = {environment, 2},
                              .ranks = ranks,
                              .nranks = 2};
}

static void test_packed(void **state)
{
    struct run_start start = example(), read;
    void *memory;
    size_t size;
    uint8_t *bytes = run_start_pack(&start, &size);
    (void)state;
    assert_non_null(bytes);
    assert_true(run_start_unpack(bytes, size, &read, &memory));
    assert_true(read.input && read.home && read.mpi && !read.pty && !read.shell);
    assert_int_equal(read.umask, 027);
    assert_int_equal(read.rows * 1000 + read.columns, 24080);
    assert_int_equal(read.total, 9);
    assert_string_equal(read.dir, "/d");
    assert_int_equal(read.argv.count, 3);
    assert_string_equal(read.argv.items[2], "a b");
    assert_null(read.argv.items[3]);
    assert_int_equal(read.environment.count, 2);
    assert_string_equal(read.environment.items[1], "B=");
    assert_null(read.environment.items[2]);
    assert_int_equal(read.nranks, 2);
    assert_int_equal(read.ranks[1].rank, 4000000000U);
    assert_int_equal(read.ranks[1].cpu, RUN_NO_CPU);
    free(memory);
    free(bytes);
}

/* As many words as execve(2) takes, and more: how many there are is nobody's business but their bytes'. */
static void test_many_words(void **state)
{
    enum { MANY = 1000000 };
    struct run_start start = example(), read;
    const char **words = calloc(MANY + 1, sizeof(*words));
    void *memory;
    size_t size;
    uint8_t *bytes;
    (void)state;
    assert_non_null(words);
    for (size_t i = 0; i < MANY; i++)
        words[i] = i % 2 ? "" : "a";
    start.argv = start.environment = (struct run_strings){words, MANY};
    bytes = run_start_pack(&start, &size);
    assert_non_null(bytes);
    assert_true(size < RUN_FRAME_MAX);
    assert_true(run_start_unpack(bytes, size, &read, &memory));
    assert_int_equal(read.argv.count, MANY);
    assert_string_equal(read.argv.items[MANY - 1], "");
    assert_null(read.argv.items[MANY]);
    assert_int_equal(read.environment.count, MANY);
    assert_string_equal(read.environment.items[MANY - 2], "a");
    assert_null(read.environment.items[MANY]);
    free(memory);
    free(bytes);
    free(words);
}

/* Whatever is there, nothing is read beyond it; each copy ends where its memory does. */
static void test_what_is_no_start(void **state)
{
    struct run_start start = example(), read;
    void *memory;
    size_t size;
    uint8_t *bytes = run_start_pack(&start, &size);
    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);
        memcpy(copy, bytes, cut);
        assert_false(run_start_unpack(copy, cut, &read, &memory));
        free(memory);
        free(copy);
    }
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            (void)run_start_unpack(bytes, size, &read, &memory);
            free(memory);
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    free(bytes);
}

/* ---- what was added ---- */

static void test_added(void **state)
{
    static const char added[] = "OMP_NUM_THREADS=2 GOMAXPROCS=2", *at = added, *name;
    (void)state;
    assert_true(run_added_is(added, "OMP_NUM_THREADS=2"));
    assert_true(run_added_is(added, "GOMAXPROCS=2"));
    assert_true(run_added_is(added, "ELMER_ADDED=x"));
    assert_false(run_added_is(added, "GOMAXPROCS=3")); /* the user's */
    assert_false(run_added_is(added, "GOMAXPROCS=22"));
    assert_false(run_added_is(added, "OMP_NUM_THREADS="));
    assert_false(run_added_is(NULL, "GOMAXPROCS=2"));
    assert_int_equal(run_added_next(&at, &name), strlen("OMP_NUM_THREADS"));
    assert_memory_equal(name, "OMP_NUM_THREADS", 15);
    assert_int_equal(run_added_next(&at, &name), strlen("GOMAXPROCS"));
    assert_int_equal(run_added_next(&at, &name), 0);
}

/* ---- terminals ---- */

static void test_look(void **state)
{
    const struct run_look look = {UINT64_MAX - 5, 0x123456789abcdef0, 40, 132};
    const struct run_looking looking = {7, 1ULL << 40, 3, 100, 99};
    struct run_look look_back;
    struct run_looking back;
    uint8_t bytes[64];
    (void)state;
    run_look_pack(&look, bytes);
    for (size_t size = 0; size <= sizeof(bytes); size++)
        assert_int_equal(run_look_unpack(bytes, size, &look_back), size == RUN_LOOK_BYTES);
    assert_true(run_look_unpack(bytes, RUN_LOOK_BYTES, &look_back));
    assert_true(look_back.session == look.session && look_back.seen == look.seen);
    assert_true(look_back.rows == 40 && look_back.columns == 132);
    run_looking_pack(&looking, bytes);
    for (size_t size = 0; size <= sizeof(bytes); size++)
        assert_int_equal(run_looking_unpack(bytes, size, &back), size == RUN_LOOKING_BYTES);
    assert_true(run_looking_unpack(bytes, RUN_LOOKING_BYTES, &back));
    assert_true(back.session == 7 && back.from == 1ULL << 40 && back.lost == 3 && back.came == 100 && back.went == 99);
    bytes[39] = 101; /* more has gone on than has come */
    assert_false(run_looking_unpack(bytes, RUN_LOOKING_BYTES, &back));
}

/* A pass of somebody who looks is none of a process of the job, and the other way round. */
static void test_passes_to_look(void **state)
{
    struct pass process = {.host = "ws1", .job = 7, .attempt = 2, .uid = 1000, .user = "alice"}, other = process, back;
    struct pass look = {.looks = true, .host = "ws2", .job = 7, .uid = 1000, .user = "alice"};
    uint8_t key[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES];
    struct ticket_trust trust = {.has_authority = false};
    char text[PASS_TEXT_MAX + 1], turned[PASS_TEXT_MAX + 1];
    (void)state;
    assert_true(ticket_key_create(secret, key));
    memcpy(trust.own, key, sizeof(key));
    snprintf(trust.own_host, sizeof(trust.own_host), "ws2");
    assert_true(pass_sign(&look, key, secret) && pass_sign(&process, key, secret));
    pass_encode(&look, text);
    assert_true(pass_decode(text, &back) && back.looks && back.job == 7 && back.attempt == 0);
    assert_int_equal(pass_check_chain(&back, &trust), TICKET_GOOD);
    back.looks = false; /* the signature is for what it is */
    back.attempt = 2;
    assert_int_equal(pass_check_chain(&back, &trust), TICKET_FORGED);
    look.attempt = 2; /* none has an attempt */
    pass_encode(&look, turned);
    assert_false(pass_decode(turned, &back));
    look.attempt = 0;
    assert_true(pass_may_look(&look, &process));
    assert_false(pass_may_look(&process, &look) || pass_may_look(&look, &look) || pass_may_look(&process, &process));
    assert_false(pass_is_of_job(&look, &process) || pass_is_of_job(&process, &look) || pass_is_of_job(&look, &look));
    other.job = 8;
    assert_false(pass_may_look(&look, &other));
    other = process;
    other.uid = 1001;
    assert_false(pass_may_look(&look, &other));
    other = process;
    snprintf(other.user, sizeof(other.user), "bob");
    assert_false(pass_may_look(&look, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_look),       cmocka_unit_test(test_passes_to_look),   cmocka_unit_test(test_packed),
        cmocka_unit_test(test_many_words), cmocka_unit_test(test_what_is_no_start), cmocka_unit_test(test_added),
    };
    return cmocka_run_group_tests_name("packed", tests, NULL, NULL);
}
