/* test_waits.c - the page of a job's processes, as its supervisor makes and reads it: it belongs to the user, who may
 * write there whatever he likes. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/sup/sup.h"
#include "tests/unit/scratch.h"

enum { BEGIN_MS = 1000000 };

/* Time passes when a test says so. */
static struct mono now;

struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    return now;
}

static char told[300];

void sup_tell(struct sup *sup, const struct wire_message *message)
{
    (void)sup;
    assert_int_equal(message->type, WIRE_waits);
    snprintf(told, sizeof(told), "%d.%d %lld %s", (int)message->u.waits.job, (int)message->u.waits.attempt,
             (long long)message->u.waits.spun_us, message->u.waits.polls);
}

static struct sup sup;
static struct waits *waits;
static struct user user;
static char dir[64], path[80];

static int begin(void **state)
{
    (void)state;
    now = (struct mono){BEGIN_MS * INT64_C(1000000)};
    sup = (struct sup){.job = 7, .attempt = 2, .connected = true};
    waits = &sup.waits;
    user = (struct user){.uid = geteuid()};
    snprintf(dir, sizeof(dir), "/tmp/elmer-waits-XXXXXX");
    assert_non_null(scratch_dir(dir));
    snprintf(path, sizeof(path), "%s/" WAITS_FILE, dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    waits_fini(waits);
    return 0;
}

static void make(void)
{
    assert_int_equal(waits_begin(waits, &user, geteuid(), dir), 0);
}

static struct page read_page(void)
{
    struct page page;
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, &page, sizeof(page)), sizeof(page));
    close(fd);
    return page;
}

static void write_page(const struct page *page)
{
    int fd = open(path, O_WRONLY);
    assert_int_equal(write(fd, page, sizeof(*page)), sizeof(*page));
    close(fd);
}

static void look_after(int64_t ms, bool alone)
{
    now.ns += ms * 1000000;
    told[0] = 0;
    waits_hear(&sup, &(struct wire_look){.alone = alone, .processors = 2});
}

static void test_it_is_made_once(void **state)
{
    struct stat st;
    (void)state;
    assert_false(waits_look(waits, true, 2, BEGIN_MS)); /* no process waits yet */
    make();
    assert_string_equal(waits->path, path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(st.st_size, sizeof(struct page));
    assert_true(st.st_blocks * 512 >= (off_t)sizeof(struct page));
    assert_int_equal(read_page().head.version, PAGE_VERSION);
    make();
}

/* Whatever stands there is not followed, and not written to. */
static void test_something_is_there(void **state)
{
    (void)state;
    assert_int_equal(symlink("/etc/elsewhere", path), 0);
    assert_true(waits_begin(waits, &user, geteuid(), dir) < 0);
    assert_int_equal(waits->path[0], 0);
    assert_false(waits_look(waits, true, 2, BEGIN_MS));
    look_after(1000, true);
    assert_string_equal(told, "");
}

static void test_they_are_told(void **state)
{
    (void)state;
    make();
    look_after(1000, true);
    assert_string_equal(told, "7.2 0 ");
    assert_int_equal(read_page().head.alone, 1);
    assert_int_equal(read_page().head.processors, 2);
    look_after(1, false); /* at once, whenever it was looked at last */
    assert_int_equal(read_page().head.alone, 0);
}

static void test_who_polls(void **state)
{
    struct page page = {.head = {.version = PAGE_VERSION}};
    (void)state;
    make();
    for (uint32_t i = 0; i < 8; i++)
        page.slots[i] = (struct page_slot){.pid = 100 + (int32_t)i, .rank = 7 - i, .cannot_sleep = i != 3};
    write_page(&page);
    look_after(1000, false);
    for (uint32_t i = 0; i < 8; i++)
        page.slots[i].rounds = WAITS_ROUNDS;
    page.slots[5].rounds--;            /* rank 2: too few */
    page.slots[7].pid = 200;           /* rank 0: another process */
    page.slots[6].rank = PAGE_NO_RANK; /* 1: whoever it is */
    write_page(&page);
    look_after(1000, false);
    assert_string_equal(told, "7.2 0 3,5-7"); /* 4 can sleep */
    for (uint32_t i = 0; i < 8; i++)
        page.slots[i].rounds += 3 * WAITS_ROUNDS;
    write_page(&page);
    look_after(100, false);
    assert_string_equal(told, "7.2 0 3,5-7"); /* too short to count */
    look_after(3000, false);
    assert_string_equal(told, "7.2 0 "); /* in 3.1 s */
    for (uint32_t i = 0; i < 8; i++)
        page.slots[i].rounds = 0; /* and backwards */
    write_page(&page);
    look_after(1000, false);
    assert_string_equal(told, "7.2 0 ");
}

static void test_what_is_spun(void **state)
{
    struct page page = {.head = {.version = PAGE_VERSION}};
    (void)state;
    make();
    page.slots[3] = (struct page_slot){.pid = 1, .spun_ns = 5};
    page.slots[4] = (struct page_slot){.pid = 2, .spun_ns = 10000};
    write_page(&page);
    look_after(1000, true);
    assert_string_equal(told, "7.2 0 "); /* it began before */
    page.slots[3].spun_ns += 7000;
    page.slots[4].spun_ns += 9000;
    write_page(&page);
    look_after(1000, true);
    assert_string_equal(told, "7.2 16 ");
    page.slots[3].spun_ns = page.slots[4].spun_ns = UINT64_MAX; /* two processors cannot */
    write_page(&page);
    look_after(1000, true);
    assert_string_equal(told, "7.2 2000016 ");
    page.slots[3].spun_ns = 1;
    write_page(&page);
    look_after(1000, true);
    assert_string_equal(told, "7.2 2000016 ");
    page.slots[3].spun_ns = 2000000;
    write_page(&page);
    look_after(100000, true); /* nobody has looked for long */
    assert_string_equal(told, "7.2 2000016 ");
}

static void test_it_is_the_users(void **state)
{
    static unsigned char junk[sizeof(struct page)];
    struct stat st;
    (void)state;
    make();
    look_after(1000, true);
    for (int i = 0; i < 50; i++) {
        srand((unsigned)i);
        for (size_t k = 0; k < sizeof(junk); k++)
            junk[k] = (unsigned char)(i % 2 ? 0xff : rand());
        write_page((struct page *)(void *)junk);
        look_after(1000, i % 2);
        assert_true(strlen(told) >= 6 && waits->spun_us <= 50 * UINT64_C(2000000));
    }
    assert_int_equal(truncate(path, 100), 0);
    look_after(1000, true);
    assert_int_equal(strlen(waits->polls), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 100); /* it is not made again */
    assert_int_equal(unlink(path), 0);
    look_after(1000, true);
}

/* As many as there can be: whole ranges, as far as there is room. */
static void test_many(void **state)
{
    struct page page = {.head = {.version = PAGE_VERSION}};
    (void)state;
    make();
    for (uint32_t i = 0; i < PAGE_SLOTS; i++)
        page.slots[i] = (struct page_slot){.pid = 1, .rank = 1000000 + 2 * i, .cannot_sleep = 1};
    write_page(&page);
    look_after(1000, false);
    for (uint32_t i = 0; i < PAGE_SLOTS; i++)
        page.slots[i].rounds = UINT64_MAX;
    write_page(&page);
    look_after(1000, false);
    assert_int_equal(strlen(waits->polls), WAITS_TEXT / 8 * 8 - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_is_made_once, begin, end),
        cmocka_unit_test_setup_teardown(test_something_is_there, begin, end),
        cmocka_unit_test_setup_teardown(test_they_are_told, begin, end),
        cmocka_unit_test_setup_teardown(test_who_polls, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_spun, begin, end),
        cmocka_unit_test_setup_teardown(test_it_is_the_users, begin, end),
        cmocka_unit_test_setup_teardown(test_many, begin, end),
    };
    return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
