/* test_window.c - no ticket is used twice on a host, also after its record was cut or damaged. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lib/ticket/window.h"

#define assert_why(got, wanted) assert_string_equal(ticket_refusal_name(got), ticket_refusal_name(wanted))
#define WINDOW                  ((uint64_t)TICKET_SLOTS * TICKET_BLOCK_COUNT)

enum { FILE_SLOTS = TICKET_SLOTS + TICKET_SHEETS };

static uint8_t file[FILE_SLOTS][TICKET_BLOCK_BYTES];
static uint32_t file_slots = TICKET_SLOTS; /* so many were ever written */

static void clear(void)
{
    memset(file, 0, (size_t)file_slots * TICKET_BLOCK_BYTES);
    file_slots = TICKET_SLOTS;
}

static void use(struct ticket_window *window, struct ticket *t, uint64_t counter, uint32_t attempt)
{
    struct ticket_marks marks;
    t->counter = counter;
    assert_why(ticket_window_check(window, t, attempt), TICKET_GOOD);
    assert_true(ticket_window_mark(window, t, attempt, &marks));
    assert_in_range(marks.count, 1, TICKET_MARKS);
    for (uint32_t i = 0; i < marks.count; i++) {
        assert_in_range(marks.slots[i], 0, FILE_SLOTS - 1);
        memcpy(file[marks.slots[i]], marks.blocks[i], TICKET_BLOCK_BYTES);
        file_slots = marks.slots[i] >= file_slots ? marks.slots[i] + 1 : file_slots;
    }
}

static enum ticket_refusal check(struct ticket_window *window, struct ticket *t, uint64_t counter, uint32_t attempt)
{
    t->counter = counter;
    return ticket_window_check(window, t, attempt);
}

static void once(void **state)
{
    struct ticket_window *window = ticket_window_create();
    struct ticket t = {.host = "ws1"}, other = {.host = "ws1", .key = {1}};
    (void)state;
    use(window, &t, 0, 1);
    assert_why(check(window, &t, 0, 1), TICKET_USED);
    assert_why(check(window, &t, 0, 2), TICKET_USED); /* it does not go back into the queue */
    assert_why(check(window, &t, 1, 1), TICKET_GOOD);
    assert_why(check(window, &other, 0, 1), TICKET_GOOD);
    use(window, &t, 7, 3);
    assert_why(check(window, &t, 7, 1), TICKET_USED);
    ticket_window_destroy(window);
}

static void each_attempt_once_where_it_is_requeued(void **state)
{
    struct ticket_window *window = ticket_window_create();
    struct ticket t = {.host = "ws1", .requeue = true};
    (void)state;
    use(window, &t, 5, 2);
    assert_why(check(window, &t, 5, 1), TICKET_USED);
    assert_why(check(window, &t, 5, 2), TICKET_USED);
    use(window, &t, 5, 3);
    assert_why(check(window, &t, 5, 3), TICKET_USED);
    use(window, &t, 5, TICKET_ATTEMPTS_MAX);
    assert_why(check(window, &t, 5, TICKET_ATTEMPTS_MAX), TICKET_USED);
    assert_why(check(window, &t, 5, TICKET_ATTEMPTS_MAX + 1), TICKET_TOO_OFTEN);
    assert_why(check(window, &t, 6, 0), TICKET_TOO_OFTEN);
    ticket_window_destroy(window);
}

/* What the window has moved past counts as used, and what is in it does not. */
static void the_oldest_are_refused(void **state)
{
    struct ticket_window *window = ticket_window_create();
    struct ticket t = {.host = "ws1"};
    (void)state;
    use(window, &t, 3, 1);
    use(window, &t, WINDOW - 1, 1);
    assert_why(check(window, &t, 3, 1), TICKET_USED);
    assert_why(check(window, &t, 4, 1), TICKET_GOOD);
    use(window, &t, WINDOW, 1); /* into the slot of the first */
    assert_why(check(window, &t, 3, 1), TICKET_TOO_OLD);
    assert_why(check(window, &t, 4, 1), TICKET_TOO_OLD);
    assert_why(check(window, &t, TICKET_BLOCK_COUNT, 1), TICKET_GOOD);
    use(window, &t, UINT64_MAX, 1);
    assert_why(check(window, &t, UINT64_MAX, 1), TICKET_USED);
    assert_why(check(window, &t, WINDOW, 1), TICKET_TOO_OLD);
    assert_why(check(window, &t, UINT64_MAX - WINDOW / 2, 1), TICKET_GOOD);
    ticket_window_destroy(window);
}

static struct ticket_window *restored(const struct ticket *t)
{
    struct ticket_window *window = ticket_window_create();
    uint64_t top = 0;
    for (uint32_t slot = 0; slot < TICKET_SLOTS; slot++) {
        uint64_t number = ticket_block_number(file[slot], slot);
        if (number != UINT64_MAX && number > top)
            top = number;
    }
    for (uint32_t slot = 0; slot < file_slots; slot++)
        assert_true(ticket_window_restore(window, t->key, slot, file[slot], top));
    return window;
}

static void a_record_is_remembered(void **state)
{
    struct ticket_window *window = ticket_window_create();
    struct ticket t = {.host = "ws1", .requeue = true};
    (void)state;
    clear();
    for (uint64_t counter = 0; counter < 2 * WINDOW; counter += 331)
        use(window, &t, counter, (uint32_t)(counter % 254 + 1));
    ticket_window_destroy(window);
    window = restored(&t);
    for (uint64_t counter = 0; counter < 2 * WINDOW; counter += 331)
        assert_int_not_equal(check(window, &t, counter, (uint32_t)(counter % 254 + 1)), TICKET_GOOD);
    assert_why(check(window, &t, 2 * WINDOW - 1, 1), TICKET_GOOD);
    ticket_window_destroy(window);
}

/* Cut within a block, or with a block torn: none that was used is free again. What is behind the cut is a file that
 * was never so long, which a power cut can leave of the last second. */
static void a_damaged_block_counts_as_used(void **state)
{
    struct ticket t = {.host = "ws1"};
    (void)state;
    for (size_t byte = 0; byte < TICKET_BLOCK_BYTES; byte++) {
        struct ticket_window *window = ticket_window_create();
        clear();
        use(window, &t, WINDOW + 10, 1);
        use(window, &t, WINDOW + 5 * TICKET_BLOCK_COUNT, 1);
        ticket_window_destroy(window);
        file[0][byte] ^= 0x20;
        window = restored(&t);
        assert_why(check(window, &t, WINDOW + 10, 1), TICKET_USED);
        assert_why(check(window, &t, WINDOW + 11, 1), TICKET_USED);
        assert_why(check(window, &t, WINDOW + 5 * TICKET_BLOCK_COUNT, 1), TICKET_USED);
        assert_why(check(window, &t, WINDOW + 5 * TICKET_BLOCK_COUNT + 1, 1), TICKET_GOOD);
        ticket_window_destroy(window);
    }
}

/* ---- arrays ---- */

enum { LONG = 100000 };

static struct ticket_window *restart(struct ticket_window *window, const struct ticket *t)
{
    ticket_window_destroy(window);
    return restored(t);
}

static enum ticket_refusal check_task(struct ticket_window *window, struct ticket *t, uint32_t task, uint32_t attempt)
{
    t->task = task;
    return ticket_window_check(window, t, attempt);
}

static void use_task(struct ticket_window *window, struct ticket *t, uint32_t task, uint32_t attempt)
{
    t->task = task;
    use(window, t, t->counter, attempt);
}

static void the_numbers_of_an_array(void **state)
{
    (void)state;
    assert_int_equal(ticket_numbers_of(0), 1);
    assert_int_equal(ticket_numbers_of(1), 1);
    assert_int_equal(ticket_numbers_of(TICKET_SHEET_TASKS), TICKET_SHEET_TASKS);
    assert_int_equal(ticket_numbers_of(TICKET_SHEET_TASKS + 1), 2);
    assert_int_equal(ticket_numbers_of(LONG), 207);
    for (uint32_t ntasks = 1; ntasks < 2000; ntasks++) {
        struct ticket last = {.counter = 7, .ntasks = ntasks, .task = ntasks};
        assert_int_equal(ticket_counter_of(&last), 7 + ticket_numbers_of(ntasks) - 1);
    }
}

/* A few that run at a time, for days, while others of the same host pass: far more than the window has. */
static void a_long_array_stays_good_while_others_pass(void **state)
{
    struct ticket_window *window = ticket_window_create();
    struct ticket slow = {.host = "ws1", .uid = 1000, .counter = 3, .ntasks = LONG},
                  others = {.host = "ws1", .uid = 1001, .ntasks = LONG};
    (void)state;
    clear();
    use_task(window, &slow, 1, 1);
    others.counter = 3 + ticket_numbers_of(LONG);
    for (int array = 0; array < 25; array++, others.counter += ticket_numbers_of(LONG)) {
        for (uint32_t task = 1; task <= LONG; task += 97)
            use_task(window, &others, task, 1);
        use_task(window, &slow, 2 + (uint32_t)array, 1);
        assert_why(check_task(window, &slow, 1000 + (uint32_t)array, 1), TICKET_GOOD); /* of one that is not begun */
        use_task(window, &slow, 50000 + 1000 * (uint32_t)array, 1);
    }
    others = (struct ticket){.host = "ws1", .uid = 1001}; /* and what is no array */
    use(window, &others, 2 * WINDOW, 1);
    for (int restarted = 0; restarted < 2; restarted++, window = restart(window, &slow)) {
        for (uint32_t task = 1; task <= 26; task++) {
            assert_why(check_task(window, &slow, task, 1), TICKET_USED);
            assert_why(check_task(window, &slow, task, 2), TICKET_USED);
        }
        assert_why(check_task(window, &slow, 27 + (uint32_t)restarted, 1), TICKET_GOOD);
        use_task(window, &slow, 27 + (uint32_t)restarted, 1);
        assert_why(check_task(window, &slow, 27 + (uint32_t)restarted, 1), TICKET_USED);
        assert_why(check_task(window, &slow, 1000, 1), TICKET_TOO_OLD); /* as any ticket that waited so long */
    }
    ticket_window_destroy(window);
}

/* Who runs many cannot have what others have used forgotten, and what is forgotten is not good again. */
static void a_sheet_that_gives_way_is_closed(void **state)
{
    struct ticket_window *window = ticket_window_create();
    struct ticket slow = {.host = "ws1", .uid = 1000, .counter = 3, .ntasks = LONG, .requeue = true},
                  many = {.host = "ws1", .uid = 1001, .ntasks = TICKET_SHEET_TASKS + 1, .requeue = true};
    (void)state;
    clear();
    use_task(window, &slow, 1, 1);
    many.counter = 10000;
    for (uint32_t sheet = 0; sheet <= TICKET_SHEETS_OF_A_USER; sheet++, many.counter += 2)
        use_task(window, &many, 1, 1);
    for (int restarted = 0; restarted < 2; restarted++, window = restart(window, &slow)) {
        many.counter = 10000;
        assert_why(check_task(window, &many, 1, 1), TICKET_TOO_OLD);
        assert_why(check_task(window, &many, 1, 2), TICKET_TOO_OLD);
        assert_why(check_task(window, &many, 2, 1), TICKET_TOO_OLD);
        many.counter = 10002;
        assert_why(check_task(window, &many, 1, 1), TICKET_USED);
        assert_why(check_task(window, &many, 1, 2), TICKET_GOOD);
        assert_why(check_task(window, &slow, 1, 1), TICKET_USED);
        assert_why(check_task(window, &slow, 2, 1), TICKET_GOOD);
    }
    many = (struct ticket){.host = "ws1", .requeue = true};
    assert_why(check(window, &many, 10000, 9), TICKET_USED); /* nor as something else */
    for (uint32_t uid = 2000; uid < 2010; uid++) {           /* all users together, more than there is room */
        many = (struct ticket){.host = "ws1", .uid = uid, .ntasks = TICKET_SHEET_TASKS + 1};
        many.counter = 100000 + 10000 * (uint64_t)(uid - 2000);
        for (uint32_t sheet = 0; sheet < TICKET_SHEETS_OF_A_USER; sheet++, many.counter += 2)
            use_task(window, &many, 1, 1);
    }
    for (int restarted = 0; restarted < 2; restarted++, window = restart(window, &slow)) {
        assert_why(check_task(window, &slow, 1, 1), TICKET_TOO_OLD);
        assert_why(check_task(window, &slow, 2, 1), TICKET_TOO_OLD);
        assert_why(check_task(window, &slow, LONG, 1), TICKET_GOOD);
    }
    ticket_window_destroy(window);
}

/* Torn, lost, or the one without the other: none that was used is free again. */
static void a_damaged_sheet_counts_as_used(void **state)
{
    struct ticket t = {.host = "ws1", .counter = 5, .ntasks = LONG, .requeue = true};
    (void)state;
    for (size_t byte = 0; byte <= TICKET_BLOCK_BYTES; byte++) {
        struct ticket_window *window = ticket_window_create();
        clear();
        use_task(window, &t, 3, 2);
        use_task(window, &t, TICKET_SHEET_TASKS + 3, 2);
        if (byte < TICKET_BLOCK_BYTES)
            file[TICKET_SLOTS][byte] ^= 0x20;
        else
            memset(file[TICKET_SLOTS], 0, TICKET_BLOCK_BYTES);
        window = restart(window, &t);
        assert_why(check_task(window, &t, 3, 9), TICKET_TOO_OLD);
        assert_why(check_task(window, &t, TICKET_SHEET_TASKS + 3, 2), TICKET_USED);
        use_task(window, &t, TICKET_SHEET_TASKS + 3, 3); /* where it was, and what is new in the hole */
        use_task(window, &t, 2 * TICKET_SHEET_TASKS + 3, 2);
        window = restart(window, &t);
        assert_why(check_task(window, &t, TICKET_SHEET_TASKS + 3, 3), TICKET_USED);
        assert_why(check_task(window, &t, 2 * TICKET_SHEET_TASKS + 3, 2), TICKET_USED);
        memset(file[0], 0, TICKET_BLOCK_BYTES);
        window = restart(window, &t);
        assert_why(check_task(window, &t, TICKET_SHEET_TASKS + 3, 3), TICKET_USED);
        t.task = 0;
        assert_int_not_equal(check(window, &t, 6, 9), TICKET_GOOD);
        t.counter = 5;
        ticket_window_destroy(window);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once),
        cmocka_unit_test(each_attempt_once_where_it_is_requeued),
        cmocka_unit_test(the_oldest_are_refused),
        cmocka_unit_test(a_record_is_remembered),
        cmocka_unit_test(a_damaged_block_counts_as_used),
        cmocka_unit_test(the_numbers_of_an_array),
        cmocka_unit_test(a_long_array_stays_good_while_others_pass),
        cmocka_unit_test(a_sheet_that_gives_way_is_closed),
        cmocka_unit_test(a_damaged_sheet_counts_as_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
