/* test_join.c - what rsd --join writes beside rsd.conf; what elmer remembers of certificates is in test_store.c. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/file.h"
#include "rsd/admin/join.h"
#include "tests/unit/scratch.h"

#define OURS "# Written by rsd --join; it counts more than rsd.conf.\n[rsd]\nelmer = ws1:7110\n"

static char dir[40];
static int dir_fd;

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/elmer-join-XXXXXX");
    dir_fd = scratch_dir(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return dir_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    return close(dir_fd);
}

/* NULL: there is no such file. */
static void assert_file(const char *name, const char *text)
{
    char *found = NULL;

    assert_int_equal(file_read(dir_fd, name, 4096, &found, NULL) == 0, text != NULL);
    if (text)
        assert_string_equal(found, text);
    free(found);
}

/* Returns its result; said: what it prints. */
static int write_it(const char *elmer, const char *name, char *said, size_t size)
{
    struct err err = ERR_INIT;
    int saved = dup(STDOUT_FILENO), out = openat(dir_fd, "said", O_RDWR | O_CREAT | O_TRUNC, 0600), result;
    ssize_t got;

    fflush(stdout);
    assert_true(saved >= 0 && out >= 0 && dup2(out, STDOUT_FILENO) >= 0);
    result = join_conf_write(dir, elmer, name, &err);
    fflush(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    got = pread(out, said, size - 1, 0);
    assert_true(got >= 0);
    said[got] = 0;
    close(out);
    close(saved);
    return result;
}

static void fragment_has_what_is_needed(void **state)
{
    char *text = join_conf_text("ws1:7110", NULL);

    (void)state;
    assert_string_equal(text, "# Written by rsd --join; it counts more than rsd.conf.\n[rsd]\nelmer = ws1:7110\n");
    free(text);
    text = join_conf_text("ws1:7110", "ws7");
    assert_non_null(strstr(text, "[rsd]\nelmer = ws1:7110\nname = ws7\n"));
    free(text);
}

static void what_it_wrote_before_is_written_anew(void **state)
{
    char said[1000];

    (void)state;
    assert_int_equal(write_it("ws1:7110", "ws7", said, sizeof(said)), 0);
    assert_file("50-join.conf", OURS "name = ws7\n");
    assert_int_equal(write_it("ws1:7110", NULL, said, sizeof(said)), 0);
    assert_file("50-join.conf", OURS);
    assert_int_equal(write_it("ws1:7110", NULL, said, sizeof(said)), 0);
    assert_string_equal(said, "");
    assert_file("50-join.conf.old", NULL);
}

static void what_else_it_says_is_kept(void **state)
{
    static const char *const texts[] = {
        "# Written by rsd --join; it counts more than rsd.conf.\n[rsd]\nelmer = ws9:7110\nmode = idle\n",
        "# Written by rsd --join; it counts more than rsd.conf.\n[rsd]\nmode = idle\nelmer = ws9:7110\n",
        OURS "name = ws7\nmemory = 4G\n",
        OURS "# ours is the third cluster\n",
        "[rsd]\nvouch = ws4\n",
    };
    char said[1000], words[200];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        (void)unlinkat(dir_fd, "50-join.conf.old", 0);
        assert_true(scratch_put(dir, "50-join.conf", texts[i]));
        assert_int_equal(fchmodat(dir_fd, "50-join.conf", 0600, 0), 0);
        assert_int_equal(write_it("ws1:7110", NULL, said, sizeof(said)), 0);
        assert_file("50-join.conf", OURS);
        assert_file("50-join.conf.old", texts[i]);
        snprintf(words, sizeof(words), "What %s/50-join.conf said is in 50-join.conf.old now, ", dir);
        assert_non_null(strstr(said, words));
    }
}

/* Not at the cost of what was kept before. */
static void what_was_kept_before_stays(void **state)
{
    char said[1000], name[100], *at;

    (void)state;
    assert_true(scratch_put(dir, "50-join.conf.old", "first") &&
                scratch_put(dir, "50-join.conf", OURS "mode = idle\n"));
    assert_int_equal(write_it("ws1:7110", NULL, said, sizeof(said)), 0);
    assert_file("50-join.conf.old", "first");
    at = strstr(said, "50-join.conf.old.");
    assert_non_null(at);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, " "), at);
    assert_file(name, OURS "mode = idle\n");
}

/* As a link to somewhere: no text of ours. */
static void what_cannot_be_read_is_kept(void **state)
{
    char said[1000], target[100];

    (void)state;
    assert_int_equal(symlinkat("nowhere", dir_fd, "50-join.conf"), 0);
    assert_int_equal(write_it("ws1:7110", NULL, said, sizeof(said)), 0);
    assert_file("50-join.conf", OURS);
    assert_int_equal(readlinkat(dir_fd, "50-join.conf.old", target, sizeof(target)), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fragment_has_what_is_needed),
        cmocka_unit_test_setup_teardown(what_it_wrote_before_is_written_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(what_else_it_says_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_kept_before_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
