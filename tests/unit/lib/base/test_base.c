/* test_base.c - errors, log, clock and strings. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "lib/base/variable.h"

/* ---- err ---- */

static void the_first_error_wins(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(err_set(&err, -EINVAL, "no %s", "hosts"), -EINVAL);
    assert_int_equal(err_set(&err, -ENOMEM, "later"), -ENOMEM);
    assert_string_equal(err.text, "no hosts");
    err_prefix(&err, "%s:%d", "elmer.conf", 7);
    assert_string_equal(err.text, "elmer.conf:7: no hosts");
    err_clear(&err);
    assert_string_equal(err.text, "");
    assert_int_equal(err_set(NULL, -EIO, "nobody reads it"), -EIO);
    err_prefix(NULL, "x");
    err_clear(NULL);
}

static void long_errors_are_cut(void **state)
{
    struct err err = ERR_INIT;
    char text[3000];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)err_set(&err, -1, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    err_prefix(&err, "front");
    assert_int_equal(strncmp(err.text, "front: aaa", 10), 0);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    err_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

/* ---- clock ---- */

static void clocks_run_and_print(void **state)
{
    struct mono a = mono_now(), b = mono_now();
    char text[32];

    (void)state;
    assert_true(b.ns >= a.ns && a.ns > 0);
    assert_int_equal(mono_ms((struct mono){.ns = 1999999}), 1);
    assert_true(wall_now().ms > 1600000000000);
    wall_format((struct wall){.ms = 1769860800123}, text, sizeof(text));
    assert_string_equal(text, "2026-01-31T12:00:00.123Z");
    wall_format((struct wall){.ms = 0}, text, sizeof(text));
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    wall_format((struct wall){.ms = -1}, text, sizeof(text));
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
    wall_format((struct wall){.ms = 253402300799999}, text, sizeof(text));
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    wall_format((struct wall){.ms = INT64_MAX}, text, sizeof(text));
    assert_string_equal(text, "0000-00-00T00:00:00.000Z");
    wall_format((struct wall){.ms = INT64_MIN}, text, sizeof(text));
    assert_string_equal(text, "0000-00-00T00:00:00.000Z");
}

/* ---- str ---- */

static void utf8_is_told_from_bytes(void **state)
{
    const char *const good[] = {"",
                                "abc",
                                "\xC2\x80",
                                "\xDF\xBF",
                                "\xE0\xA0\x80",
                                "\xED\x9F\xBF",
                                "\xEF\xBF\xBF",
                                "\xF0\x90\x80\x80",
                                "\xF4\x8F\xBF\xBF"};
    const char *const bad[] = {"\x80",
                               "\xC0\x80",
                               "\xC1\xBF",
                               "\xC2",
                               "\xE0\x9F\xBF",
                               "\xED\xA0\x80",
                               "\xE2\x82",
                               "\xF0\x8F\xBF\xBF",
                               "\xF4\x90\x80\x80",
                               "\xF5\x80\x80\x80",
                               "\xFF",
                               "a\xC3(",
                               "\xF0\x9F\x98"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_true(str_valid_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(str_valid_utf8(bad[i], strlen(bad[i])));
}

static void control_characters_become_printable(void **state)
{
    char out[64], small[8];

    (void)state;
    assert_string_equal(str_printable(out, sizeof(out), "a\nb\033[2J\x7F", 8), "a\\x0Ab\\x1B[2J\\x7F");
    assert_string_equal(str_printable(out, sizeof(out), "\xC3\xA9\xC2\x9B\xFF", 5), "\xC3\xA9\\xC2\\x9B\\xFF");
    assert_string_equal(str_printable(out, sizeof(out), "a\0b", 3), "a\\x00b");
    /* what would show "cba" as "abc", and the marks around it; letters from right to left are letters */
    static const char turned[] = {'a', '\xE2', '\x80', '\xAE',
                                  'b', 'c',    '\0'}; /* no literal: clang-tidy warns of these */
    assert_string_equal(str_printable(out, sizeof(out), turned, 6), "a\\xE2\\x80\\xAE"
                                                                    "bc");
    assert_string_equal(str_printable(out, sizeof(out), "\xE2\x81\xA6-\xE2\x81\xA9", 7),
                        "\\xE2\\x81\\xA6-\\xE2\\x81\\xA9");
    assert_string_equal(str_printable(out, sizeof(out), "\xE2\x80\xA9\xE2\x81\xAA\xD7\x90", 8),
                        "\xE2\x80\xA9\xE2\x81\xAA\xD7\x90");
    assert_string_equal(str_printable(small, sizeof(small), "1234567", 7), "1234567");
    assert_string_equal(str_printable(small, sizeof(small), "12345678", 8), "1234...");
    assert_string_equal(str_printable(small, sizeof(small), "123\n5", 5), "123...");
    assert_string_equal(str_printable(small, sizeof(small), "12\xE2\x82\xAC\xE2\x82\xAC", 8), "12...");
    assert_string_equal(str_printable(small, 1, "abc", 3), "");
    assert_string_equal(str_printable(small, 3, "abc", 3), "..");
    assert_string_equal(str_printable(small, sizeof(small), "", 0), "");
}

static void host_names_are_checked(void **state)
{
    char name[300];

    (void)state;
    assert_true(str_valid_hostname("ws1"));
    assert_true(str_valid_hostname("a-b.example.org"));
    assert_false(str_valid_hostname(""));
    assert_false(str_valid_hostname("-a"));
    assert_false(str_valid_hostname(".a"));
    assert_false(str_valid_hostname("a b"));
    assert_false(str_valid_hostname("a:b"));
    assert_false(str_valid_hostname("a/../b"));
    assert_false(str_valid_hostname("\xC3\xA9"));
    memset(name, 'a', sizeof(name));
    name[255] = '\0';
    assert_true(str_valid_hostname(name));
    name[255] = 'a';
    name[256] = '\0';
    assert_false(str_valid_hostname(name));
}

static void decimals_are_whole(void **state)
{
    const char *const bad[] = {
        "", "-1", "+1", " 1", "1 ", "1x", "0x1", "18446744073709551616", "99999999999999999999", "1.0"};
    uint64_t n = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(str_to_u64(bad[i], &n));
    assert_false(str_to_u64(NULL, &n));
    assert_int_equal(n, 7);
    assert_true(str_to_u64("18446744073709551615", &n) && n == UINT64_MAX);
    assert_true(str_to_u64("007", &n) && n == 7);
}

static void distances(void **state)
{
    char long_a[200], long_b[200];

    (void)state;
    assert_int_equal(str_distance("", ""), 0);
    assert_int_equal(str_distance("abc", ""), 3);
    assert_int_equal(str_distance("kitten", "sitting"), 3);
    assert_int_equal(str_distance("levels", "level"), 1);
    assert_int_equal(str_distance("nmae", "name"), 1); /* neighbours that are swapped */
    assert_int_equal(str_distance("wyh", "why"), 1);
    assert_int_equal(str_distance("jsno", "json"), 1);
    assert_int_equal(str_distance("badcfe", "abcdef"), 3);
    assert_int_equal(str_distance("abc", "cba"), 2); /* no neighbours */
    assert_int_equal(str_distance("ca", "abc"), 3);  /* swapped, they stay together */
    assert_int_equal(str_distance("ba", "a"), 1);
    assert_int_equal(str_distance("ab", "ba"), 1);
    memset(long_a, 'a', sizeof(long_a));
    memset(long_b, 'b', sizeof(long_b));
    long_a[199] = long_b[199] = '\0';
    assert_int_equal(str_distance(long_a, long_b), 63); /* bounded */
}

static void tokens_differ_and_are_in_order(void **state)
{
    char a[33], b[33], later[33];

    (void)state;
    assert_int_equal(str_unique_token(a), 0);
    assert_int_equal(str_unique_token(b), 0);
    assert_int_equal(strspn(a, "0123456789abcdef"), 32);
    assert_string_not_equal(a + 12, b + 12);
    for (int64_t begin = wall_now().ms; wall_now().ms < begin + 2;)
        ;
    assert_int_equal(str_unique_token(later), 0);
    assert_true(strcmp(a, later) < 0);
}

static void formatted_strings(void **state)
{
    char *text = str_format("%s-%d", "a", 5);

    (void)state;
    assert_string_equal(text, "a-5");
    free(text);
}

/* ---- log ---- */

struct capture {
    int saved, fds[2];
};

/* stderr is one end of a pipe or socketpair from here on. */
static void capture_begin(struct capture *capture, bool use_socket)
{
    (void)fflush(stderr);
    if (use_socket)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, capture->fds), 0);
    else
        assert_int_equal(pipe(capture->fds), 0);
    assert_int_equal(fcntl(capture->fds[0], F_SETFL, O_NONBLOCK), 0);
    capture->saved = dup(STDERR_FILENO);
    assert_true(capture->saved >= 0);
    assert_int_equal(dup2(capture->fds[1], STDERR_FILENO), STDERR_FILENO);
}

static char *captured(struct capture *capture, char *out, size_t size)
{
    ssize_t n = read(capture->fds[0], out, size - 1);

    out[n > 0 ? n : 0] = '\0';
    return out;
}

static void capture_end(struct capture *capture)
{
    (void)dup2(capture->saved, STDERR_FILENO);
    (void)close(capture->saved);
    (void)close(capture->fds[0]);
    (void)close(capture->fds[1]);
    (void)unsetenv("JOURNAL_STREAM");
    log_open("test", LOG_LEVEL_INFO);
}

static void lines_have_the_program_in_front(void **state)
{
    struct capture capture;
    char text[16384], huge[9000];

    (void)state;
    capture_begin(&capture, false);
    log_open("elmer", LOG_LEVEL_INFO);
    errno = 77;
    log_info("job=%d done", 5);
    assert_int_equal(errno, 77);
    log_error("bad");
    log_warning("odd");
    log_debug("not shown");
    assert_int_equal(setenv("ELMER_LOG", "debug", 1), 0);
    log_open("elmer", LOG_LEVEL_INFO);
    assert_int_equal(unsetenv("ELMER_LOG"), 0);
    log_debug("asked for");
    log_open("elmer", LOG_LEVEL_INFO);
    log_debug("not shown");
    log_notice("two\nlines");
    assert_string_equal(
        captured(&capture, text, sizeof(text)),
        "elmer: job=5 done\nelmer: error: bad\nelmer: warning: odd\nelmer: asked for\nelmer: two lines\n");
    memset(huge, 'x', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = '\0';
    log_info("%s", huge);
    (void)captured(&capture, text, sizeof(text));
    assert_in_range(strlen(text), 4000, 4096);
    assert_int_equal(text[strlen(text) - 1], '\n');
    capture_end(&capture);
}

static void the_journal_gets_priorities(void **state)
{
    struct capture capture;
    struct stat st;
    char text[4096], name[64];

    (void)state;
    capture_begin(&capture, true);
    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    (void)snprintf(name, sizeof(name), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    assert_int_equal(setenv("JOURNAL_STREAM", name, 1), 0);
    log_open("elmer", LOG_LEVEL_DEBUG);
    log_error("bad");
    log_debug("detail");
    assert_string_equal(captured(&capture, text, sizeof(text)), "<3>bad\n<7>detail\n");
    /* another stream than stderr */
    assert_int_equal(setenv("JOURNAL_STREAM", "1:1", 1), 0);
    log_open("elmer", LOG_LEVEL_DEBUG);
    log_info("plain");
    assert_string_equal(captured(&capture, text, sizeof(text)), "elmer: plain\n");
    capture_end(&capture);
}

/* Fills what nobody reads; must come back, and say later what was lost. */
static void never_blocks(bool use_socket)
{
    static char text[1 << 20];
    struct capture capture;
    char line[1000];
    size_t total = 0;

    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    capture_begin(&capture, use_socket);
    log_open("elmer", LOG_LEVEL_INFO);
    (void)alarm(20); /* a blocked write ends the test */
    for (int i = 0; i < 2000; i++)
        log_info("%s", line);
    while (captured(&capture, text, sizeof(text))[0] != '\0')
        total += strlen(text);
    assert_in_range(total, 1000, 1900 * 1000);
    log_info("after");
    assert_non_null(strstr(captured(&capture, text, sizeof(text)), "log lines were lost here"));
    assert_non_null(strstr(text, "elmer: after\n"));
    log_info("once");
    assert_string_equal(captured(&capture, text, sizeof(text)), "elmer: once\n");
    (void)alarm(0);
    capture_end(&capture);
}

static void a_full_pipe_does_not_block(void **state)
{
    (void)state;
    never_blocks(false);
}

static void a_full_socket_does_not_block(void **state)
{
    (void)state;
    never_blocks(true);
}

static void peers_cannot_flood_the_log(void **state)
{
    struct log_limit limit = {0};
    struct capture capture;
    char text[4096];
    int allowed = 0;

    (void)state;
    capture_begin(&capture, false);
    log_open("elmer", LOG_LEVEL_INFO);
    for (int i = 0; i < 100; i++)
        allowed += log_allowed(&limit, 3, 60000);
    assert_int_equal(allowed, 3);
    assert_string_equal(captured(&capture, text, sizeof(text)), "");
    limit.window_start_ms -= 60000;
    assert_int_equal(log_allowed(&limit, 3, 60000), 1);
    assert_string_equal(captured(&capture, text, sizeof(text)), "elmer: 97 similar lines were left out\n");
    for (int i = 0; i < 3; i++)
        (void)log_allowed(&limit, 3, 60000);
    limit.window_start_ms -= 60000;
    assert_int_equal(log_allowed(&limit, 3, 60000), 1);
    assert_string_equal(captured(&capture, text, sizeof(text)), "elmer: 1 similar line was left out\n");
    limit.window_start_ms -= 60000;
    assert_int_equal(log_allowed(&limit, 3, 60000), 1);
    assert_string_equal(captured(&capture, text, sizeof(text)), "");
    capture_end(&capture);
}

/* A host that was removed tries again every ten seconds, for a year. */
static void repeats_are_left_out(void **state)
{
    struct log_repeats repeats = {0};
    char about[20];
    int allowed = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        allowed += log_repeats_allowed(&repeats, "10.0.0.1", "it was removed");
        allowed += log_repeats_allowed(&repeats, "10.0.0.2", "it was removed") * 100;
        allowed += log_repeats_allowed(&repeats, "10.0.0.2", "it has another name") * 10000;
    }
    assert_int_equal(allowed, 50505);
    for (int i = 0; i < LOG_REPEATS; i++) { /* more than there is room for: the oldest are forgotten */
        snprintf(about, sizeof(about), "10.0.1.%d", i);
        assert_int_equal(log_repeats_allowed(&repeats, about, "it was removed"), 1);
    }
    assert_int_equal(log_repeats_allowed(&repeats, about, "it was removed"), 1);
}

enum light { RED, GREEN, YELLOW, LIGHT_COUNT };
static const struct moves_row lights[LIGHT_COUNT] = {
    [RED] = {"red", MOVE_TO(GREEN)},
    [GREEN] = {"green", MOVE_TO(YELLOW) | MOVE_TO(GREEN)},
    [YELLOW] = {"yellow", MOVE_TO(RED)},
};

/* What a forbidden move says before it aborts. */
static void forbidden(unsigned from, unsigned to, const char *line)
{
    char text[200] = "";
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL); /* not the handler of cmocka */
        MOVES_CHECK("light", lights, from, to);
        _exit(0);
    }
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_string_equal(text, line);
}

static void moves_are_in_a_table(void **state)
{
    (void)state;
    MOVES_CHECK("light", lights, RED, GREEN);
    MOVES_CHECK("light", lights, GREEN, GREEN);
    MOVES_CHECK("light", lights, YELLOW, RED);
    assert_false(MOVES_ALLOW(lights, RED, RED));
    assert_false(MOVES_ALLOW(lights, RED, YELLOW));
    assert_false(MOVES_ALLOW(lights, LIGHT_COUNT, RED));
    assert_false(MOVES_ALLOW(lights, GREEN, LIGHT_COUNT));
    forbidden(GREEN, RED, "light: no move leads from green (1) to red (0): a bug\n");
    forbidden(LIGHT_COUNT, 40, "light: no move leads from no state (3) to no state (40): a bug\n");
}

static void test_variables(void **state)
{
    static const char *const names[] = {"HOME", "PATH", NULL};
    (void)state;
    assert_string_equal(variable_value("PATH=/bin", "PATH"), "/bin");
    assert_string_equal(variable_value("PATH=", "PATH"), "");
    assert_null(variable_value("PATHS=/bin", "PATH"));
    assert_null(variable_value("PAT", "PATH"));
    assert_null(variable_value("PATH", "PATH")); /* no value: none of ours */
    assert_true(variable_is_one_of("PATH=/bin", names));
    assert_false(variable_is_one_of("LANG=C", names));
    assert_false(variable_is_one_of("LANG=C", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables),
        cmocka_unit_test(the_first_error_wins),
        cmocka_unit_test(long_errors_are_cut),
        cmocka_unit_test(clocks_run_and_print),
        cmocka_unit_test(utf8_is_told_from_bytes),
        cmocka_unit_test(control_characters_become_printable),
        cmocka_unit_test(host_names_are_checked),
        cmocka_unit_test(decimals_are_whole),
        cmocka_unit_test(distances),
        cmocka_unit_test(moves_are_in_a_table),
        cmocka_unit_test(tokens_differ_and_are_in_order),
        cmocka_unit_test(formatted_strings),
        cmocka_unit_test(lines_have_the_program_in_front),
        cmocka_unit_test(the_journal_gets_priorities),
        cmocka_unit_test(a_full_pipe_does_not_block),
        cmocka_unit_test(a_full_socket_does_not_block),
        cmocka_unit_test(peers_cannot_flood_the_log),
        cmocka_unit_test(repeats_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
