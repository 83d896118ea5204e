/* Packs of fuzz inputs: what is written is read again, and what is not a pack is refused with a reason. */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/fuzz/pack.h"
#include "tests/unit/scratch.h"

#define MAGIC "elmer fuzz pack 1\n"

static char dir[] = "/tmp/elmer-test-pack-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[200];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void expect_refused(const char *data, size_t size, const char *reason)
{
    struct err err = ERR_INIT;
    struct pack pack;

    assert_int_equal(pack_parse(&pack, data, size, &err), -EINVAL);
    assert_int_equal(pack.count, 0);
    assert_null(pack.inputs);
    if (!strstr(err.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", err.text, reason);
}
#define REFUSED(text, reason) expect_refused(text, sizeof(text) - 1, reason)

static void reads_what_it_wrote(void **state)
{
    const char *const inputs[] = {"b", "", "end 1\n", "a", "a\0c", "1\n"};
    const size_t sizes[] = {1, 0, 6, 1, 3, 2};
    struct err err = ERR_INIT;
    struct pack pack = {0}, again;

    (void)state;
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pack_add(&pack, inputs[i], sizes[i], &err), 0);
    assert_int_equal(pack_add(&pack, "a", 1, &err), 1);
    assert_int_equal(pack.count, 6);
    assert_int_equal(pack_write(&pack, path_of("some.pack"), &err), 0);
    assert_int_equal(pack_read(&again, path_of("some.pack"), &err), 0);
    assert_int_equal(again.count, 6);
    assert_int_equal(again.bytes, 13);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(again.inputs[i].size, pack.inputs[i].size);
        assert_memory_equal(again.inputs[i].bytes, pack.inputs[i].bytes, pack.inputs[i].size);
    }
    assert_int_equal(again.inputs[0].size, 0);
    assert_memory_equal(again.inputs[1].bytes, "a", 1);
    assert_memory_equal(again.inputs[2].bytes, "b", 1);
    pack_fini(&pack);
    pack_fini(&again);
}

static void same_inputs_give_the_same_file(void **state)
{
    const char *const words[] = {"three", "one", "two"};
    struct err err = ERR_INIT;
    uint8_t *data[2];
    size_t size[2];

    (void)state;
    for (size_t order = 0; order < 2; order++) {
        struct pack pack = {0};

        for (size_t i = 0; i < 3; i++) {
            const char *word = words[order == 0 ? i : 2 - i];

            assert_int_equal(pack_add(&pack, word, strlen(word), &err), 0);
        }
        assert_int_equal(pack_write(&pack, path_of("order.pack"), &err), 0);
        assert_int_equal(pack_slurp(path_of("order.pack"), 1000, &data[order], &size[order], &err), 0);
        pack_fini(&pack);
    }
    assert_int_equal(size[0], strlen(MAGIC "3\none\n3\ntwo\n5\nthree\nend 3\n"));
    assert_memory_equal(data[0], MAGIC "3\none\n3\ntwo\n5\nthree\nend 3\n", size[0]);
    assert_int_equal(size[1], size[0]);
    assert_memory_equal(data[1], data[0], size[0]);
    free(data[0]);
    free(data[1]);
}

static void refuses_what_is_no_pack(void **state)
{
    (void)state;
    REFUSED("", "does not begin with");
    REFUSED("elmer fuzz pack 2\nend 0\n", "does not begin with");
    REFUSED(MAGIC, "byte 18: no end: the file is cut");
    REFUSED(MAGIC "x\nend 0\n", "byte 18: neither the size");
    REFUSED(MAGIC "-1\nend 0\n", "byte 18: neither the size");
    REFUSED(MAGIC "01\na\nend 1\n", "byte 18: neither the size");
    REFUSED(MAGIC "1 \na\nend 1\n", "byte 18: neither the size");
    REFUSED(MAGIC "99999999999999999999999999\na\nend 1\n", "byte 18: neither the size");
    REFUSED(MAGIC "65537\na\nend 1\n", "byte 18: an input of 65537 bytes, at most 65536");
    REFUSED(MAGIC "9\na\nend 1\n", "byte 18: an input of 9 bytes, but only 8 follow");
    REFUSED(MAGIC "1\nab\nend 1\n", "byte 21: no newline after an input of 1 bytes");
    REFUSED(MAGIC "1\na\n1\na\nend 2\n", "byte 22: the inputs are not sorted, or two are equal");
    REFUSED(MAGIC "1\nb\n1\na\nend 2\n", "byte 22: the inputs are not sorted");
    REFUSED(MAGIC "1\na\nend 2\n", "the last line says 2 inputs, there are 1");
    REFUSED(MAGIC "1\na\nend \n", "something other than");
    REFUSED(MAGIC "1\na\nend 1\n\n", "something other than");
}

/* Whatever is cut off: an error, never a smaller pack. */
static void refuses_every_part_of_a_pack(void **state)
{
    static const char whole[] = MAGIC "0\n\n3\nend\n12\nabcdefghijkl\nend 3\n";
    struct err err = ERR_INIT;
    struct pack pack;

    (void)state;
    for (size_t size = 0; size < sizeof(whole) - 1; size++) {
        char *part = malloc(size + 1); /* so that a sanitizer sees a read beyond it */

        assert_non_null(part);
        memcpy(part, whole, size);
        expect_refused(part, size, "");
        free(part);
    }
    assert_int_equal(pack_parse(&pack, whole, sizeof(whole) - 1, &err), 0);
    assert_int_equal(pack.count, 3);
    pack_fini(&pack);
}

static void bounds_what_it_holds(void **state)
{
    struct err err = ERR_INIT;
    struct pack pack = {0};
    static uint8_t large[PACK_INPUT_MAX + 1];
    size_t i = 0;
    int result;

    (void)state;
    assert_int_equal(pack_add(&pack, large, sizeof(large), &err), -E2BIG);
    assert_non_null(strstr(err.text, "an input of 65537 bytes"));
    err_clear(&err);
    do {
        memcpy(large, &i, sizeof(i));
        result = pack_add(&pack, large, PACK_INPUT_MAX, &err);
    } while (result == 0 && ++i < 1000);
    assert_int_equal(result, -E2BIG);
    assert_int_equal(pack.count, i);
    assert_non_null(strstr(err.text, "the pack is full"));
    err_clear(&err);
    assert_int_equal(pack_write(&pack, path_of("full.pack"), &err), 0);
    pack_fini(&pack);
    assert_int_equal(pack_read(&pack, path_of("full.pack"), &err), 0); /* what was written can be read */
    assert_int_equal(pack.count, i);
    pack_fini(&pack);
    assert_int_equal(truncate(path_of("full.pack"), PACK_BYTES_MAX + 1), 0);
    assert_int_equal(pack_read(&pack, path_of("full.pack"), &err), -E2BIG);
    assert_non_null(strstr(err.text, "full.pack: more than 16777216 bytes"));
}

static void says_which_file_is_bad(void **state)
{
    struct err err = ERR_INIT;
    struct pack pack;
    FILE *file = fopen(path_of("bad.pack"), "we");

    (void)state;
    assert_non_null(file);
    fputs(MAGIC "3\nabc\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(pack_read(&pack, path_of("bad.pack"), &err), -EINVAL);
    assert_non_null(strstr(err.text, "bad.pack: byte 24: no end"));
    err_clear(&err);
    assert_int_equal(pack_read(&pack, path_of("none.pack"), &err), -ENOENT);
    assert_non_null(strstr(err.text, "none.pack: No such file"));
    assert_true(pack_is_name("a/b.pack"));
    assert_false(pack_is_name(".pack"));
    assert_false(pack_is_name("a/pack"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_wrote),     cmocka_unit_test(same_inputs_give_the_same_file),
        cmocka_unit_test(refuses_what_is_no_pack), cmocka_unit_test(refuses_every_part_of_a_pack),
        cmocka_unit_test(bounds_what_it_holds),    cmocka_unit_test(says_which_file_is_bad),
    };

    if (!scratch_dir(dir))
        return 99;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
