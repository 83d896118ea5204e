/* test_page.c - libelmer-yield.so and the page of a job: who is alone does not sleep, and each process counts how it
 * waits. */
#include "config.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/yield/program.h"
#include "yield/page.h"

static char page_path[64];

static struct page *make_page(uint32_t alone)
{
    static const char zeros[sizeof(struct page)];
    int fd = open(page_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct page *page;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(page != MAP_FAILED);
    close(fd);
    page->head = (struct page_head){.version = PAGE_VERSION, .alone = alone, .processors = 2};
    setenv(PAGE_VARIABLE, page_path, 1);
    return page;
}

static void drop_page(struct page *page)
{
    munmap(page, sizeof(*page));
    unlink(page_path);
    unsetenv(PAGE_VARIABLE);
}

static void test_who_is_alone_does_not_sleep(void **state)
{
    struct page *page = make_page(1);
    (void)state;
    for (size_t i = 0; i < YIELD_WAITING; i++)
        assert_in_range(yield_number_of(yield_waiting[i], true, NULL, NULL), 0, YIELD_SLEPT / 2);
    page->head.alone = 0;
    for (size_t i = 0; i < YIELD_WAITING; i++)
        assert_true(yield_number_of(yield_waiting[i], true, NULL, NULL) >= YIELD_SLEPT);
    drop_page(page);
}

/* A processor for each process is not one for each thread: a wait makes way for others now and then; in each round if
 * there are more processes. */
static void test_a_wait_makes_way(void **state)
{
    static const struct {
        const char *variable, *value;
        bool crowded;
    } cases[] = {{NULL, NULL, false}, {"ELMER_SPIN", "1", false}, {NULL, NULL, true}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct page *page = make_page(1);
        unsigned rounds, us;
        char text[256];
        page->head.processes = cases[i].crowded ? 2 : 0; /* two processors, and one comes */
        assert_int_equal(yield_run("yields", true, cases[i].variable, cases[i].value, text, sizeof(text)), 0);
        assert_int_equal(sscanf(text, "%u %u", &rounds, &us), 2);
        if (cases[i].crowded ? rounds > 2 : rounds < (yield_clock_is_slow ? 3 : 5))
            fail_msg("it yields each %u rounds, %u us", rounds, us);
        if (us > 1000)
            fail_msg("case %zu: it yields each %u us, %u rounds", i, us, rounds);
        drop_page(page);
    }
}

/* A slot is free again when its process has ended, and what it has counted stays until the next one takes it. */
static void test_rounds_are_counted(void **state)
{
    static const struct {
        const char *variable, *value;
        bool alone, cannot_sleep, spun;
    } cases[] = {{"ELMER_SPIN", "1", false, true, false},
                 {"ELMER_POLL_SLEEP", "0", false, true, false},
                 {"OMPI_COMM_WORLD_RANK", "7", true, false, true}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t k = 0; k < YIELD_WAITING; k++) {
            struct page *page = make_page(cases[i].alone);
            const struct page_slot *slot = &page->slots[0];
            (void)yield_number_of(yield_waiting[k], true, cases[i].variable, cases[i].value);
            if (slot->rounds < 1000)
                fail_msg("%s has counted %llu", yield_waiting[k], (unsigned long long)slot->rounds);
            assert_int_equal(slot->cannot_sleep, cases[i].cannot_sleep);
            assert_int_equal(slot->rank, cases[i].alone ? 7 : PAGE_NO_RANK);
            assert_in_range(slot->spun_ns, cases[i].spun ? YIELD_ROUNDS_MS * 200000 : 0,
                            cases[i].spun ? INT64_C(1000000000000) : 0);
            assert_int_equal(slot->pid, 0);
            assert_int_equal(page->head.processes, 0);
            drop_page(page);
        }
    }
}

static void test_work_is_not_counted(void **state)
{
    struct page *page = make_page(1);
    (void)state;
    (void)yield_number_of("opal-busy", true, NULL, NULL);
    (void)yield_number_of("ucp-busy", true, NULL, NULL);
    assert_int_equal(page->slots[0].rounds, 0);
    (void)yield_number_of("poll-work", true, NULL, NULL); /* rounds, but no waits */
    assert_in_range(page->slots[0].spun_ns, 0, YIELD_ROUNDS_MS * 100000);
    drop_page(page);
}

static pid_t dead_pid(void)
{
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    return dead;
}

/* As they are told apart in the page. */
static uint32_t own_pids(void)
{
    struct stat st;
    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    return (uint32_t)st.st_ino;
}

/* The slots of processes that were killed are taken, those of others are not. */
static void test_slots_of_the_dead(void **state)
{
    struct page *page = make_page(0);
    pid_t dead = dead_pid();
    (void)state;
    page->head.processes = PAGE_SLOTS;
    for (size_t i = 0; i < PAGE_SLOTS; i++) {
        page->slots[i].pid = i == 17 ? dead : getpid();
        page->slots[i].pids = own_pids();
    }
    (void)yield_number_of("poll", true, NULL, NULL);
    assert_true(page->slots[17].rounds > 0);
    for (size_t i = 0; i < PAGE_SLOTS; i++)
        assert_true(i == 17 || (page->slots[i].pid == getpid() && page->slots[i].rounds == 0));
    page->slots[17].pid = getpid();
    page->slots[17].rounds = 0;
    assert_true(yield_number_of("poll", true, NULL, NULL) >= YIELD_SLEPT); /* nothing is free: it does without */
    assert_int_equal(page->slots[17].rounds, 0);
    drop_page(page);
}

/* Nor do they count as processes that wait, though there are free slots. */
static void test_the_dead_do_not_count(void **state)
{
    struct page *page = make_page(1);
    unsigned rounds, us;
    char text[256];
    (void)state;
    page->head.processes = 3;
    page->slots[0].pid = page->slots[7].pid = dead_pid();
    page->slots[3].pid = getpid();
    page->slots[0].pids = page->slots[3].pids = page->slots[7].pids = own_pids();
    assert_int_equal(yield_run("yields", true, NULL, NULL, text, sizeof(text)), 0);
    assert_int_equal(sscanf(text, "%u %u", &rounds, &us), 2);
    if (rounds < (yield_clock_is_slow ? 3 : 5)) /* two processors for two */
        fail_msg("it yields each %u rounds, %u us", rounds, us);
    assert_int_equal(page->head.processes, 1);
    assert_true(page->slots[0].pid == 0 && page->slots[7].pid == 0 && page->slots[3].pid == getpid());
    drop_page(page);
}

/* A process in a container of its own cannot tell whether those outside are dead: none of their pids is there. */
static void test_pids_of_elsewhere(void **state)
{
    struct page *page = make_page(0);
    pid_t dead = dead_pid(), child;
    int status = 0;
    (void)state;
    page->slots[0] = (struct page_slot){.pid = getpid(), .pids = own_pids()};
    page->slots[1] = (struct page_slot){.pid = dead, .pids = own_pids() + 1};
    page->slots[2] = (struct page_slot){.pid = dead};
    page->head.processes = 3;
    (void)yield_number_of("poll", true, NULL, NULL);
    assert_int_equal(page->head.processes, 3);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        char text[64];
        if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
            _exit(77);
        _exit(yield_run("poll", true, NULL, NULL, text, sizeof(text)) == 0 && page->slots[3].rounds > 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(page->head.processes, 3);
    assert_int_equal(page->slots[0].pid, getpid());
    drop_page(page);
    if (WEXITSTATUS(status) == 77) {
        print_message("no PID namespace can be made here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* What is no page is none, and ends nobody. */
static void test_what_is_no_page(void **state)
{
    (void)state;
    drop_page(make_page(1));
    for (int i = 0; i < 5; i++) {
        struct page *page = i > 0 ? make_page(1) : NULL;
        if (i == 1)
            assert_int_equal(truncate(page_path, 4096), 0);
        else if (i == 2)
            page->head.version = PAGE_VERSION + 1;
        else if (i == 3)
            assert_true(truncate(page_path, 0) == 0 && truncate(page_path, sizeof(*page)) == 0); /* no memory behind */
        else if (i == 4)
            assert_true(unlink(page_path) == 0 && mkfifo(page_path, 0600) == 0);
        assert_true(yield_number_of("poll", true, PAGE_VARIABLE, page_path) >= YIELD_SLEPT);
        if (page)
            drop_page(page);
    }
}

int main(int argc, char **argv)
{
#define SLOW(name) cmocka_unit_test_setup_teardown(name, yield_slow_clock, yield_own_clock)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_alone_does_not_sleep),
        cmocka_unit_test(test_a_wait_makes_way),
        cmocka_unit_test(test_rounds_are_counted),
        cmocka_unit_test(test_work_is_not_counted),
        cmocka_unit_test(test_slots_of_the_dead),
        cmocka_unit_test(test_the_dead_do_not_count),
        cmocka_unit_test(test_pids_of_elsewhere),
        cmocka_unit_test(test_what_is_no_page),
        SLOW(test_who_is_alone_does_not_sleep),
        SLOW(test_a_wait_makes_way),
        SLOW(test_rounds_are_counted),
        SLOW(test_work_is_not_counted),
    };
    if (argc == 3 && strcmp(argv[1], "--program") == 0)
        return yield_program(argv[2]);
    if (yield_find() < 0)
        return 1;
    snprintf(page_path, sizeof(page_path), "/tmp/elmer-page-%d", (int)getpid());
    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
