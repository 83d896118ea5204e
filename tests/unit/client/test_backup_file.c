/* test_backup_file.c - the file of a backup: what is written comes out again, tar understands it, and a file that is
 * damaged anywhere, cut or of a stranger is none. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/backup_file.h"
#include "client/backup_tar.h"
#include "tests/unit/scratch.h"

static char dir[] = "/tmp/elmer-backup-XXXXXX", file[200];

#define ABOUT "elmer backup 1\nhost ws1\nmade_ms 1790000000000\nnew thing\nstore /var/lib/elmer/elmer.db\n"

/* In the place of a store that has so many bytes, of a backup of them: where the last byte would be; 0: real files. */
static int64_t huge, reached;

ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at);

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    if (huge == 0)
        return __real_read(fd, bytes, size);
    size = (int64_t)size < huge - 1 ? size : (size_t)huge - 1; /* one is left, or it would be a real one */
    huge -= (int64_t)size;
    return (ssize_t)size;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    if (huge == 0)
        return __real_pwrite(fd, bytes, size, at);
    reached = at + (off_t)size;
    return (ssize_t)size;
}

static void put(struct backup_out *out, const char *name, const char *text)
{
    struct err err = ERR_INIT;

    if (backup_out_text(out, name, text, &err) != 0)
        fail_msg("%s", err.text);
}

/* A whole one, whose store has so many bytes. */
static void write_backup(const char *about, size_t size)
{
    struct backup_out out = {.made_s = 1790000000};
    struct err err = ERR_INIT;
    int pipe_ends[2];
    char bytes[3000];

    assert_true(size <= sizeof(bytes));
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 7);
    unlink(file);
    out.fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(out.fd >= 0);
    put(&out, "ABOUT", about);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(write(pipe_ends[1], bytes, size), size);
    close(pipe_ends[1]);
    assert_int_equal(backup_out_add(&out, "elmer.db", pipe_ends[0], &err), 0);
    close(pipe_ends[0]);
    put(&out, "etc/elmer.conf.d/50-init.conf", "[elmer]\n");
    put(&out, "ca/used/0123456789abcdef", "token");
    put(&out, "ca/ca.key", "key");
    put(&out, "ca/ca.crt", "");
    assert_int_equal(backup_out_end(&out, &err), 0);
    close(out.fd);
    backup_out_fini(&out);
}

static void expect_refusal(const char *word)
{
    struct backup_in in;
    struct err err = ERR_INIT;

    assert_true(backup_in_open(&in, file, &err) < 0);
    if (!strstr(err.text, word) || !strstr(err.text, "cannot be used"))
        fail_msg("\"%s\" does not say %s", err.text, word);
    assert_int_equal(in.fd, -1);
}

static void test_round(void **state)
{
    static const size_t sizes[] = {0, 1, 511, 512, 513, 3000};
    struct backup_in in;
    struct err err = ERR_INIT;
    char *text, command[400];

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        write_backup(ABOUT, sizes[i]);
        if (backup_in_open(&in, file, &err) != 0)
            fail_msg("%s", err.text);
        assert_int_equal(in.count, 7);
        assert_int_equal(in.made_ms, 1790000000000);
        assert_string_equal(in.host, "ws1");
        assert_string_equal(in.store, "/var/lib/elmer/elmer.db");
        assert_int_equal(backup_in_find(&in, "elmer.db")->size, sizes[i]);
        assert_null(backup_in_find(&in, "etc/elmer.conf"));
        assert_int_equal(backup_in_text(&in, backup_in_find(&in, "ca/ca.key"), 3, &text, &err), 0);
        assert_string_equal(text, "key");
        free(text);
        assert_true(backup_in_text(&in, backup_in_find(&in, "ca/ca.key"), 2, &text, &err) < 0);
        err_clear(&err);
        backup_in_close(&in);
    }
    /* With what every system has. */
    snprintf(command, sizeof(command), "cd %s && tar xf b && cd elmer-backup && sha256sum --quiet -c SHA256SUMS", dir);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof(command), "rm -rf %s/elmer-backup", dir);
    assert_int_equal(system(command), 0);
}

static void test_damage(void **state)
{
    struct stat st;
    struct err err = ERR_INIT;
    struct backup_in in;
    int tried = 0;

    (void)state;
    write_backup(ABOUT, 700);
    assert_int_equal(stat(file, &st), 0);
    for (off_t at = 0; at < st.st_size - 2 * TAR_BLOCK; at += 37) { /* the end's zeros mean nothing */
        int fd = open(file, O_RDWR | O_CLOEXEC);
        unsigned char byte, other;

        assert_int_equal(pread(fd, &byte, 1, at), 1);
        other = byte ^ 0x11;
        assert_int_equal(pwrite(fd, &other, 1, at), 1);
        err_clear(&err);
        if (backup_in_open(&in, file, &err) == 0) {
            backup_in_close(&in);
            assert_int_equal(byte, 0); /* it only fills a block */
        }
        tried += byte != 0;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
    }
    assert_true(tried > 20);
    for (off_t size = 0; size < st.st_size - 3 * TAR_BLOCK; size += 300) {
        write_backup(ABOUT, 700);
        assert_int_equal(truncate(file, size), 0);
        expect_refusal("whole");
    }
}

static void test_strangers(void **state)
{
    struct backup_out out = {.made_s = 1};
    struct err err = ERR_INIT;

    (void)state;
    write_backup("elmer backup 2\n", 1);
    expect_refusal("newer elmer");
    write_backup("elmer backup 1\nhost ../x\nmade_ms 1\nstore /x\n", 1);
    expect_refusal("cannot be understood");
    write_backup("elmer backup 1\nhost ws1\nmade_ms 1\nstore x\n", 1);
    expect_refusal("cannot be understood");
    assert_true(scratch_put(dir, "b",
                            "this is no backup, but a text that is longer than one header of tar. .........."
                            "................................................................................"
                            "................................................................................"
                            "................................................................................"
                            "................................................................................"
                            "................................................................................"
                            "................................................................................"));
    expect_refusal("no backup of eadmin");
    unlink(file);
    out.fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    put(&out, "ABOUT", ABOUT);
    put(&out, "elmer.db", "x");
    assert_int_equal(backup_out_end(&out, &err), 0);
    close(out.fd);
    backup_out_fini(&out);
    expect_refusal("it has no ca/ca.key");
    unlink(file);
    expect_refusal("No such file");
    assert_int_equal(mkfifo(file, 0600), 0);
    expect_refusal("it is no file");
}

static void test_names(void **state)
{
    static const char *const bad[] = {
        "",
        "/etc/passwd",
        "ca/../x",
        "ca/used/",
        "ca/tokens/0123456789abcdef",
        "ca/used/../ca.key",
        "ca/used/a/b",
        "ca/used/.x",
        "etc/passwd",
        "etc/elmer.conf.d/.conf",
        "etc/elmer.conf.d/../x.conf",
        "etc/elmer.conf.d/a/b.conf",
        "etc/elmer.conf.d/a\\b.conf",
        "etc/elmer.conf.d/a\nb.conf",
        "etc/elmer.conf.d/\xc3\xa4.conf",
        "etc/elmer.conf.d/.x.conf",
        "etc/elmer.conf.d/012345678901234567890123456789012345678901234567890123456789.conf",
        "ca/used/a b",
        "etc/elmer.conf.d/x",
        "ca/used/0123456789012345678901234567890123456789012345678901234567890123456"};
    struct backup_out out = {.fd = -1};
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(backup_name_good(bad[i]));
    assert_true(backup_name_good("etc/elmer.conf.d/50-init.conf"));
    assert_true(backup_name_good("ca/used/0123456789abcdef"));
    assert_true(backup_name_good("ca/elmer.crt"));
    assert_true(backup_name_good("etc/elmer.conf.d/a b.conf")); /* elmer takes them */
    assert_true(backup_name_good("etc/elmer.conf.d/a+(b).conf"));
    assert_true(backup_out_add(&out, "etc/elmer.conf.d/a\\b.conf", -1, &err) < 0);
    assert_non_null(strstr(err.text, "does not go into a backup"));
}

static char *text_of(size_t size)
{
    char *text = malloc(size + 1);

    assert_non_null(text);
    memset(text, '#', size);
    text[size] = '\0';
    return text;
}

/* What a restore refuses is not written. */
static void add_text(size_t size, bool damaged, const char *name, int expected, const char *word)
{
    struct backup_out out = {.made_s = 1};
    struct err err = ERR_INIT;
    char *text = text_of(size);
    int from;

    text[size / 2] = damaged ? '\0' : '#';
    unlink(file);
    from = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(write(from, text, size), size);
    assert_int_equal(lseek(from, 0, SEEK_SET), 0);
    unlink(file);
    out.fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(backup_out_add(&out, name, from, &err), expected);
    if (!strstr(err.text, word))
        fail_msg("\"%s\" does not say %s", err.text, word);
    close(from);
    close(out.fd);
    backup_out_fini(&out);
    free(text);
}

static void test_what_restore_refuses(void **state)
{
    struct backup_out out = {.made_s = 1, .count = BACKUP_MEMBERS - 2};
    struct err err = ERR_INIT;

    (void)state;
    add_text(BACKUP_TEXT_MAX, false, "etc/elmer.conf", 0, "");
    add_text(BACKUP_TEXT_MAX + 1, false, "etc/elmer.conf", -EFBIG, "etc/elmer.conf has more than 1048576 bytes");
    add_text(BACKUP_TEXT_MAX + 1, true, "elmer.db", 0, "");
    add_text(100, true, "ca/ca.crt", -EINVAL, "ca/ca.crt is no text");
    unlink(file);
    out.fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    put(&out, "ca/used/0123456789abcdef", "token"); /* the list of sums is the last that fits */
    assert_int_equal(backup_out_text(&out, "ca/used/0123456789abcdee", "token", &err), -E2BIG);
    assert_non_null(strstr(err.text, "more than 65535 files"));
    close(out.fd);
    backup_out_fini(&out);
}

/* elmer says how large the store is: one that does not fit takes no more room than one that does. */
static void test_huge_store(void **state)
{
    struct backup_out out = {.fd = -1, .made_s = 1};
    struct err err = ERR_INIT;

    (void)state;
    huge = TAR_SIZE_MAX + (1 << 20);
    assert_int_equal(backup_out_add(&out, BACKUP_STORE, -1, &err), -EFBIG);
    huge = 0;
    assert_non_null(strstr(err.text, "elmer.db has more than 8 GB"));
    assert_true(reached > TAR_SIZE_MAX - (1 << 20) && reached <= TAR_SIZE_MAX + TAR_BLOCK);
    backup_out_fini(&out);
}

/* As many as there can be are restored, and the list of sums takes no longer for the last than for the first. */
static void test_many(void **state)
{
    struct backup_out out = {.made_s = 1790000000};
    struct err err = ERR_INIT;
    struct backup_in in;
    char name[64];

    (void)state;
    unlink(file);
    out.fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    put(&out, "ABOUT", ABOUT);
    put(&out, "elmer.db", "x");
    for (size_t i = 0; i < BACKUP_MEMBERS - 5; i++) {
        snprintf(name, sizeof(name), "ca/used/%016zx", i);
        put(&out, name, "");
    }
    put(&out, "ca/ca.key", "key");
    put(&out, "ca/ca.crt", "");
    if (backup_out_end(&out, &err) != 0 || backup_in_open(&in, file, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(in.count, BACKUP_MEMBERS);
    backup_in_close(&in);
    close(out.fd);
    backup_out_fini(&out);
}

static void test_full(void **state)
{
    struct backup_out out = {.made_s = 1};
    struct err err = ERR_INIT;

    (void)state;
    out.fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    assert_true(out.fd >= 0);
    assert_true(backup_out_text(&out, "ABOUT", ABOUT, &err) < 0);
    assert_non_null(strstr(err.text, "No space left on device; make room there"));
    close(out.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round),
                                       cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_strangers),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_what_restore_refuses),
                                       cmocka_unit_test(test_huge_store),
                                       cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_full)};
    int failed;

    if (!scratch_dir(dir))
        return 99;
    snprintf(file, sizeof(file), "%s/b", dir);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(file);
    rmdir(dir);
    return failed;
}
