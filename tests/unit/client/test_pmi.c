/* test_pmi.c - PMI as erun serves it: what MPICH asks, barriers, ends, and what no rank should say. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/pmi.h"
#include "lib/run/link.h"

enum { RANKS = 3 };
static struct pmi *pmi;
static struct pmi_said said;
static char heard[64 << 10]; /* of the last: "RANK<answer" for each */

static int begin(void **state)
{
    (void)state;
    pmi = pmi_create(RANKS, "elmer-7-abc", "(vector,(0,1,2),(1,1,1))");
    return 0;
}

static int end(void **state)
{
    (void)state;
    pmi_destroy(pmi);
    return 0;
}

static enum pmi_result say_bytes(uint32_t rank, const void *bytes, size_t size)
{
    struct pmi_answer answer;
    size_t used = 0;
    char *copy = malloc(size ? size : 1); /* nothing is read beyond it */
    enum pmi_result result;
    memcpy(copy, bytes, size);
    result = pmi_hear(pmi, rank, copy, size, &said);
    free(copy);
    heard[0] = 0;
    while (pmi_next(pmi, &answer))
        used += (size_t)snprintf(heard + used, sizeof(heard) - used, "%u<%.*s", (unsigned)answer.rank, (int)answer.size,
                                 answer.size ? answer.bytes : "");
    return result;
}

static enum pmi_result rank_says(uint32_t rank, const char *line)
{
    return say_bytes(rank, line, strlen(line));
}

static void expect(uint32_t rank, const char *line, const char *answers)
{
    assert_int_equal(rank_says(rank, line), PMI_GOES_ON);
    assert_string_equal(heard, answers);
}

static void test_what_mpich_asks(void **state)
{
    (void)state;
    expect(1, "cmd=init pmi_version=1 pmi_subversion=1\n",
           "1<cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    expect(1, "cmd=get_maxes\n", "1<cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=800\n");
    expect(1, "cmd=get_appnum\n", "1<cmd=appnum appnum=0\n");
    expect(1, "cmd=get_universe_size\n", "1<cmd=universe_size size=3\n");
    expect(1, "cmd=get_my_kvsname\n", "1<cmd=my_kvsname kvsname=elmer-7-abc\n");
    expect(1, "cmd=get kvsname=elmer-7-abc key=PMI_process_mapping\n",
           "1<cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,1))\n");
    expect(1, "cmd=put kvsname=elmer-7-abc key=-card-1 value=a=b=\n", "1<cmd=put_result rc=0 msg=success\n");
    expect(2, "cmd=get kvsname=elmer-7-abc key=-card-1\n", "2<cmd=get_result rc=0 msg=success value=a=b=\n");
    expect(2, "cmd=get kvsname=elmer-7-abc key=-card-2\n", "2<cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    expect(0, "cmd=lookup_name service=a\n", "0<cmd=lookup_result rc=1 msg=not_served\n");
    expect(1, "cmd=finalize\n", "1<cmd=finalize_ack\n");
}

static void test_another_version(void **state)
{
    (void)state;
    expect(0, "cmd=init pmi_version=2 pmi_subversion=0\n",
           "0<cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
    assert_int_equal(pmi_ended(pmi, 0), PMI_NOT_BEGUN);
}

/* Each piece has one answer, whether it is a part of a line or has several. */
static void test_pieces(void **state)
{
    (void)state;
    expect(0, "cmd=get_", "0<");
    expect(0, "appnum\ncmd=get_appnum\ncmd=", "0<cmd=appnum appnum=0\ncmd=appnum appnum=0\n");
    expect(0, "finalize\n", "0<cmd=finalize_ack\n");
}

static void test_what_cannot_be_put(void **state)
{
    char line[PMI_LINE_MAX + 1], value[PMI_VALUE_MAX + 1];
    (void)state;
    expect(0, "cmd=put kvsname=elmer-7-abc key=a value=\n", "0<cmd=put_result rc=0 msg=success\n");
    expect(0, "cmd=put kvsname=elmer-7-abc key=a value=b\n", "0<cmd=put_result rc=-1 msg=duplicate_key\n");
    expect(0, "cmd=put kvsname=other key=b value=b\n", "0<cmd=put_result rc=-1 msg=no_such_store\n");
    expect(0, "cmd=put kvsname=elmer-7-abc value=b\n", "0<cmd=put_result rc=-1 msg=too_long\n");
    memset(value, 'v', PMI_VALUE_MAX);
    value[PMI_VALUE_MAX] = 0;
    snprintf(line, sizeof(line), "cmd=put kvsname=elmer-7-abc key=c value=%s\n", value);
    expect(0, line, "0<cmd=put_result rc=-1 msg=too_long\n");
    snprintf(line, sizeof(line), "cmd=put kvsname=elmer-7-abc key=c value=%s\n", value + 1); /* with its NUL it fits */
    expect(0, line, "0<cmd=put_result rc=0 msg=success\n");
    value[PMI_KEY_MAX] = 0;
    snprintf(line, sizeof(line), "cmd=put kvsname=elmer-7-abc key=%s value=a\n", value);
    expect(0, line, "0<cmd=put_result rc=-1 msg=too_long\n");
}

/* More than all ranks together may put is refused, and what is there stays. */
static void test_a_store_that_is_full(void **state)
{
    char line[PMI_LINE_MAX], value[PMI_VALUE_MAX];
    size_t put = 0;
    (void)state;
    memset(value, 'v', PMI_VALUE_MAX - 1);
    value[PMI_VALUE_MAX - 1] = 0;
    do {
        snprintf(line, sizeof(line), "cmd=put kvsname=elmer-7-abc key=%zu value=%s\n", put, value);
        assert_int_equal(rank_says(0, line), PMI_GOES_ON);
    } while (strstr(heard, "rc=0") && put++ < PMI_STORE_BYTES / PMI_VALUE_MAX);
    assert_string_equal(heard, "0<cmd=put_result rc=-1 msg=the_store_is_full\n");
    assert_in_range(put, PMI_STORE_BYTES / PMI_LINE_MAX, PMI_STORE_BYTES / PMI_VALUE_MAX);
    expect(0, "cmd=get kvsname=elmer-7-abc key=PMI_process_mapping\n",
           "0<cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,1))\n");
}

static void test_barriers(void **state)
{
    uint32_t rank;
    (void)state;
    expect(0, "cmd=barrier_in\n", "");
    expect(2, "cmd=barrier_in\n", "");
    assert_false(pmi_stuck(pmi, &rank));
    expect(1, "cmd=barrier_in\n", "0<cmd=barrier_out\n1<cmd=barrier_out\n2<cmd=barrier_out\n");
    /* What is said behind it waits; several barriers at once. */
    expect(0, "cmd=barrier_in\ncmd=get_appnum\ncmd=barrier_in\ncmd=get_ap", "");
    expect(1, "cmd=barrier_in\ncmd=barrier_in\n", "");
    expect(2, "cmd=barrier_in\ncmd=barrier_in\n",
           "0<cmd=barrier_out\ncmd=appnum appnum=0\ncmd=barrier_out\n1<cmd=barrier_out\ncmd=barrier_out\n"
           "2<cmd=barrier_out\ncmd=barrier_out\n");
    expect(0, "pnum\n", "0<cmd=appnum appnum=0\n");
}

static void test_ends(void **state)
{
    uint32_t rank = 9;
    (void)state;
    assert_int_equal(pmi_ended(pmi, 2), PMI_NOT_BEGUN); /* no program of MPI, it seems */
    assert_false(pmi_stuck(pmi, &rank));
    (void)rank_says(0, "cmd=init pmi_version=1 pmi_subversion=1\n");
    (void)rank_says(0, "cmd=barrier_in\n");
    assert_true(pmi_stuck(pmi, &rank)); /* others are */
    assert_int_equal(rank, 2);
    (void)rank_says(1, "cmd=init pmi_version=1 pmi_subversion=1\ncmd=finalize\n");
    assert_int_equal(pmi_ended(pmi, 1), PMI_FINISHED);
    assert_int_equal(pmi_ended(pmi, 0), PMI_BEGUN);
    assert_int_equal(pmi_ended(pmi, 77), PMI_NOT_BEGUN);
}

static void test_abort(void **state)
{
    (void)state;
    (void)rank_says(0, "cmd=barrier_in\n");
    assert_int_equal(rank_says(2, "cmd=abort exitcode=-7\ncmd=abort exitcode=1\n"), PMI_ABORTS);
    assert_int_equal(said.rank, 2);
    assert_int_equal(said.code, -7);
    assert_int_equal(rank_says(1, "cmd=get_appnum\n"), PMI_ABORTS); /* nobody is answered any more */
    assert_string_equal(heard, "");
}

/* Once, after the last of two programs; whatever their arguments are. */
static void test_spawn(void **state)
{
    (void)state;
    expect(1, "mcmd=spawn\nnprocs=1\nexecname=./a\ntotspawns=2\nspawnssofar=1\narg1=cmd=abort exitcode=1\n", "1<");
    expect(1, "arg2=\xc3\xa4 b\targcnt=2\nendcmd\nmcmd=spawn\ntotspawns=2\nspawnssofar=2\n", "1<");
    assert_int_equal(rank_says(1, "info_num=0\nendcmd\n"), PMI_SPAWNS);
    assert_int_equal(said.rank, 1);
    assert_string_equal(heard, "1<cmd=spawn_result rc=-1 msg=not_served\n");
    expect(1, "cmd=get_appnum\n", "1<cmd=appnum appnum=0\n");
}

static void refuse_bytes(const void *bytes, size_t size)
{
    pmi_destroy(pmi);
    (void)begin(NULL);
    if (say_bytes(1, bytes, size) != PMI_WRONG)
        fail_msg("'%.*s' is taken", (int)size, (const char *)bytes);
    assert_int_equal(said.rank, 1);
    assert_true(said.text[0] != 0);
    assert_string_equal(heard, "");
}

static void test_what_no_rank_should_say(void **state)
{
    static const char *const lines[] = {"\n",
                                        "cmd\n",
                                        "=\n",
                                        "cmd=\n",
                                        "cmd=singinit\n",
                                        "mcmd=other\n",
                                        "put key=a\n",
                                        "cmd=get_appnum\t\n",
                                        "a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 cmd=get_appnum\n"};
    static char bytes[RUN_PMI_PIECE + 1];
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        refuse_bytes(lines[i], strlen(lines[i]));
    refuse_bytes("cmd=get_appnum\0\n", 16);
    memset(bytes, 'a', sizeof(bytes));
    refuse_bytes(bytes, PMI_LINE_MAX);
    refuse_bytes(bytes, RUN_PMI_PIECE + 1);
    for (size_t i = 0; i < RUN_PMI_PIECE / 9; i++) /* more answers than anybody would read */
        memcpy(bytes + 9 * i, "cmd=init\n", 9);
    refuse_bytes(bytes, RUN_PMI_PIECE / 9 * 9);
}

/* A courier that brings more before there is an answer, or of a rank that there is not. */
static void test_what_no_courier_should_bring(void **state)
{
    (void)state;
    expect(0, "cmd=barrier_in\n", "");
    assert_int_equal(rank_says(0, "cmd=get_appnum\n"), PMI_WRONG);
    pmi_destroy(pmi);
    (void)begin(NULL);
    assert_int_equal(rank_says(RANKS, "cmd=get_appnum\n"), PMI_WRONG);
    assert_int_equal(said.rank, RANKS);
}

/* Nothing that is said breaks it, whatever it is. */
static void test_anything(void **state)
{
    static const char *const parts[] = {"cmd=",
                                        "get",
                                        "put",
                                        "barrier_in\n",
                                        "kvsname=elmer-7-abc ",
                                        " ",
                                        "key=a",
                                        "\n",
                                        "value=",
                                        "mcmd=spawn\n",
                                        "endcmd\n",
                                        "=",
                                        "finalize\n",
                                        "\x01",
                                        "init ",
                                        "abort ",
                                        "exitcode=99999999999"};
    (void)state;
    srand(7);
    for (int i = 0; i < 20000; i++) {
        char text[400] = "";
        size_t used = 0;
        for (int k = rand() % 8; k >= 0; k--)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s",
                                     parts[(size_t)rand() % (sizeof(parts) / sizeof(parts[0]))]);
        if (rank_says((uint32_t)rand() % RANKS, text) <= PMI_SPAWNS)
            continue;
        pmi_destroy(pmi);
        (void)begin(NULL);
    }
}

static void test_mappings(void **state)
{
    static const struct {
        size_t hosts[8], count;
        const char *text;
    } rows[] = {
        {{0, 0, 1, 1}, 4, "(vector,(0,2,2))"},
        {{0, 1, 2, 3}, 4, "(vector,(0,4,1))"},
        {{0, 0, 0}, 3, "(vector,(0,1,3))"},
        {{0, 0, 1}, 3, "(vector,(0,1,2),(1,1,1))"},
        {{0, 1, 1}, 3, "(vector,(0,1,1),(1,1,2))"},
        {{0, 0, 1, 1, 0, 0, 1}, 7, "(vector,(0,2,2),(0,1,2),(1,1,1))"},
        {{0, 1, 0, 1, 0}, 5, "(vector,(0,2,1),(0,2,1),(0,1,1))"},
        {{0}, 1, "(vector,(0,1,1))"},
    };
    char text[100];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t length = strlen(rows[i].text);
        assert_true(pmi_mapping(rows[i].hosts, rows[i].count, text, sizeof(text)));
        assert_string_equal(text, rows[i].text);
        assert_true(pmi_mapping(rows[i].hosts, rows[i].count, text, length + 1));
        assert_false(pmi_mapping(rows[i].hosts, rows[i].count, text, length));
        assert_false(pmi_mapping(rows[i].hosts, rows[i].count, text, length - 3));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_mpich_asks, begin, end),
        cmocka_unit_test_setup_teardown(test_another_version, begin, end),
        cmocka_unit_test_setup_teardown(test_pieces, begin, end),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_put, begin, end),
        cmocka_unit_test_setup_teardown(test_a_store_that_is_full, begin, end),
        cmocka_unit_test_setup_teardown(test_barriers, begin, end),
        cmocka_unit_test_setup_teardown(test_ends, begin, end),
        cmocka_unit_test_setup_teardown(test_abort, begin, end),
        cmocka_unit_test_setup_teardown(test_spawn, begin, end),
        cmocka_unit_test_setup_teardown(test_what_no_rank_should_say, begin, end),
        cmocka_unit_test_setup_teardown(test_what_no_courier_should_bring, begin, end),
        cmocka_unit_test_setup_teardown(test_anything, begin, end),
        cmocka_unit_test(test_mappings),
    };
    return cmocka_run_group_tests_name("pmi", tests, NULL, NULL);
}
