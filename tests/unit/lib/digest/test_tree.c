/* test_tree.c - a digest of lines, and what shows that one is at its place. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/digest/tree.h"

static char *lines_of(uint32_t count)
{
    char *text = malloc(count * (size_t)16), *at = text;
    for (uint32_t i = 0; i < count; i++)
        at += snprintf(at, 16, "line %u\n", (unsigned)i);
    return text;
}

/* Each line of so many is shown to be the one at its place, and no other is. */
static void each_line_is_shown(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 97, 1000, 1025};
    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        uint32_t count = counts[c];
        char *text = lines_of(count);
        struct tree *tree = tree_create(text);
        uint8_t root[TREE_DIGEST_BYTES], proof[TREE_PROOF_MAX][TREE_DIGEST_BYTES], made[TREE_DIGEST_BYTES];
        assert_non_null(tree);
        assert_int_equal(tree_count(tree), count);
        tree_root(tree, root);
        for (uint32_t i = 0; i < count; i++) {
            char expected[20];
            size_t length;
            const char *line = tree_line(tree, i, &length);
            int nproof = tree_proof(tree, i, proof);
            const uint8_t(*given)[TREE_DIGEST_BYTES] = (const uint8_t(*)[TREE_DIGEST_BYTES])proof;
            snprintf(expected, sizeof(expected), "line %u", (unsigned)i);
            assert_int_equal(length, strlen(expected));
            assert_memory_equal(line, expected, length);
            assert_in_range(nproof, 0, TREE_PROOF_MAX);
            assert_true(tree_root_of(line, length, i, count, given, (size_t)nproof, made));
            assert_memory_equal(made, root, sizeof(root));
            assert_true(tree_root_of("line x", 6, i, count, given, (size_t)nproof, made));
            assert_memory_not_equal(made, root, sizeof(root));
            assert_false(tree_root_of(line, length, i ^ 1, count, given, (size_t)nproof, made) &&
                         memcmp(made, root, sizeof(root)) == 0);
            assert_false(tree_root_of(line, length, i, count, given, (size_t)nproof + 1, made));
            assert_false(nproof > 0 && tree_root_of(line, length, i, count, given, (size_t)nproof - 1, made));
            assert_false(tree_root_of(line, length, i + count, count, given, (size_t)nproof, made));
        }
        tree_destroy(tree);
        free(text);
    }
}

/* RFC 9162 in numbers: the leaf of "" is SHA-256 of a byte 0; two leaves give that of 1, left, right. */
static void digests_are_those_of_the_rfc(void **state)
{
    static const uint8_t of_empty[] = {0x6e, 0x34, 0x0b, 0x9c, 0xff, 0xb3, 0x7a, 0x98, 0x9c, 0xa5, 0x44,
                                       0xe6, 0xbb, 0x78, 0x0a, 0x2c, 0x78, 0x90, 0x1d, 0x3f, 0xb3, 0x37,
                                       0x38, 0x76, 0x85, 0x11, 0xa3, 0x06, 0x17, 0xaf, 0xa0, 0x1d};
    uint8_t root[TREE_DIGEST_BYTES];
    (void)state;
    assert_true(tree_root_of("", 0, 0, 1, NULL, 0, root));
    assert_memory_equal(root, of_empty, sizeof(root));
    assert_null(tree_create(""));
}

/* What 100,000 lines take of memory beside their text. */
static void a_tree_is_small(void **state)
{
    char *text = lines_of(100000);
    struct tree *tree = tree_create(text);
    uint8_t proof[TREE_PROOF_MAX][TREE_DIGEST_BYTES];
    (void)state;
    assert_non_null(tree);
    assert_int_equal(tree_proof(tree, 12345, proof), TREE_PROOF_MAX);
    tree_destroy(tree);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_line_is_shown),
                                       cmocka_unit_test(digests_are_those_of_the_rfc),
                                       cmocka_unit_test(a_tree_is_small)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
