/* test_mem.c - memory that runs out ends the program with a line, wherever it is asked for; and what arenas and arrays
 * promise while there is some. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elmer/core/core.h"
#include "lib/memory/map.h"
#include "lib/memory/mem.h"

/* ---- the allocator has memory for so many calls; -1: for any number ---- */

static long left = -1;

static bool fails(void)
{
    return left >= 0 && left-- == 0 ? (left = 0, true) : false;
}

void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *old, size_t n, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t max);
FILE *__real_open_memstream(char **text, size_t *size);
int __real_fclose(FILE *file);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t max);
FILE *__wrap_open_memstream(char **text, size_t *size);
int __wrap_fclose(FILE *file);

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
    return fails() ? NULL : __real_reallocarray(old, n, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t max)
{
    return fails() ? NULL : __real_strndup(text, max);
}

FILE *__wrap_open_memstream(char **text, size_t *size)
{
    return fails() ? NULL : __real_open_memstream(text, size);
}

int __wrap_fclose(FILE *file)
{
    bool failed = fails();
    return __real_fclose(file) != 0 || failed ? EOF : 0;
}

/* ---- what asks for memory ---- */

static void zalloc(void)
{
    free(mem_zalloc(8));
}

static void array(void)
{
    free(mem_array(8, 8));
}

static void grow(void)
{
    size_t capacity = 0;
    free(mem_grow(NULL, &capacity, 8, 8));
}

static void exactly(void)
{
    free(mem_exactly(NULL, 0, 8, 8));
}

static void copy(void)
{
    free(mem_copy("12345678", 4, 2));
}

static void text(void)
{
    free(mem_strdup("x"));
    free(mem_strndup("xyz", 2));
}

static void stream(void)
{
    char *written = NULL;
    size_t size;
    FILE *out = mem_stream(&written, &size);
    fprintf(out, "%d", 5);
    mem_stream_end(out);
    free(written);
}

/* Of somebody who has asked for memory once, and says so. */
static void result(void)
{
    mem_result(fails() ? -ENOMEM : 0);
}

static void arena(void)
{
    struct arena arena = {0};
    arena_alloc(&arena, 5);
    arena_array(&arena, 5000, 8);
    arena_strdup(&arena, "x");
    arena_format(&arena, "%d", 5);
    arena_fini(&arena);
}

static void map(void)
{
    struct map map = {0};
    map_put(&map, 5, &map);
    map_fini(&map);
}

/* The core keeps to it: a submission for a cluster of two hosts, up to its OPENs. */
static void core(void)
{
    static const int cpus[] = {0, 1};
    struct core_options options;
    struct actions actions;
    core_options_default(&options);
    options.allocator = ALLOCATOR_V1;
    struct core *core = core_create(&options);
    actions_init(&actions);
    for (int i = 0; i < 2; i++) {
        core_add_host(core, i ? "ws2" : "ws1");
        struct event up = {.type = EVENT_HOST_UP, .host = i, .u.up = {.cpus = cpus, .ncpus = 2}};
        assert_int_equal(core_step(core, &up, &actions), 0);
    }
    struct event submit = {.type = EVENT_SUBMIT, .request = 1, .u.submit = {.uid = 5, .nprocs = 4, .requeue = true}};
    assert_int_equal(core_step(core, &submit, &actions), 0);
    assert_int_equal(core_job(core, 1)->state, JOB_STARTING);
    actions_fini(&actions);
    core_destroy(core);
}

/* ---- memory runs out ---- */

/* Whether what() ended in a child that had memory for n calls; if not, it was aborted, with the line. */
static bool ends_with(void (*what)(void), long n)
{
    char said[300] = "";
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(pipes[1], STDERR_FILENO);
        left = n;
        what();
        _exit(0);
    }
    close(pipes[1]);
    for (ssize_t used = 0, got; (got = read(pipes[0], said + used, sizeof(said) - 1 - (size_t)used)) > 0;)
        used += got;
    close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(
        strstr(said, "error: out of memory: elmer stops; when it is started again it goes on from its store"));
    return false;
}

static void end_of_another(void)
{
    _exit(7);
}

static void test_other_end(void **state)
{
    pid_t pid = fork();
    int status;
    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        mem_set_end(end_of_another);
        left = 0;
        zalloc();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_runs_out(void **state)
{
    static const struct {
        void (*what)(void);
        long least; /* calls that it makes at least */
    } cases[] = {{zalloc, 1}, {array, 1},  {grow, 1},  {exactly, 1}, {copy, 1}, {text, 2},
                 {stream, 2}, {result, 1}, {arena, 2}, {map, 1},     {core, 20}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        long n = 0;
        while (!ends_with(cases[i].what, n))
            n++;
        if (n < cases[i].least || n > 100)
            fail_msg("case %zu: %ld calls", i, n);
    }
}

/* ---- while there is some ---- */

static void test_arrays(void **state)
{
    size_t capacity = 0;
    (void)state;
    int *items = mem_grow(NULL, &capacity, 1, sizeof(*items));
    assert_true(capacity >= 1);
    items[0] = 7;
    items = mem_grow(items, &capacity, 1000, sizeof(*items));
    assert_true(capacity >= 1000);
    assert_int_equal(items[0], 7);
    assert_ptr_equal(mem_grow(items, &capacity, 5, sizeof(*items)), items); /* large enough */
    free(items);
    items = mem_exactly(NULL, 0, 2, sizeof(*items));
    items[1] = 8;
    items = mem_exactly(items, 2, 100, sizeof(*items));
    assert_int_equal(items[1], 8);
    for (int i = 2; i < 100; i++)
        assert_int_equal(items[i], 0);
    int *same = mem_copy(items, 2, sizeof(*items)), *none = mem_copy(NULL, 0, sizeof(*items));
    assert_int_equal(same[1], 8);
    assert_non_null(none);
    free(none);
    free(same);
    free(items);
    assert_int_equal(mem_result(0), 0);
    assert_int_equal(mem_result(-EIO), -EIO);
    char *cut = mem_strndup("abc", 2);
    assert_string_equal(cut, "ab");
    free(cut);
}

static void test_arena_again(void **state)
{
    struct arena arena = {0};
    (void)state;
    arena_clear(&arena); /* an empty one */
    for (int round = 0; round < 3; round++) {
        for (size_t size = 1; size < 3000; size *= 3) {
            unsigned char *piece = arena_alloc(&arena, size);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(piece[i], 0);
            memset(piece, 0xff, size);
        }
        arena_clear(&arena);
    }
    void *first = arena_alloc(&arena, 10);
    arena_clear(&arena);
    left = 0; /* the chunk that was kept is enough */
    assert_ptr_equal(arena_alloc(&arena, 10), first);
    left = -1;
    arena_fini(&arena);
    assert_null(arena.chunks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_out),
        cmocka_unit_test(test_other_end),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_arena_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
