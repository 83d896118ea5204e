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

static uint8_t file[TICKET_SLOTS][TICKET_BLOCK_BYTES];

static void use(struct ticket_window *window, struct ticket *t, uint64_t counter, uint32_t attempt)
{
    uint32_t slot;
    uint8_t block[TICKET_BLOCK_BYTES];
    t->counter = counter;
    assert_why(ticket_window_check(window, t, attempt), TICKET_GOOD);
    assert_true(ticket_window_mark(window, t, attempt, &slot, block));
    memcpy(file[slot], block, sizeof(block));
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
    for (uint32_t slot = 0; slot < TICKET_SLOTS; slot++)
        assert_true(ticket_window_restore(window, t->key, slot, file[slot], top));
    return window;
}

static void a_record_is_remembered(void **state)
{
    struct ticket_window *window = ticket_window_create();
    struct ticket t = {.host = "ws1", .requeue = true};
    (void)state;
    memset(file, 0, sizeof(file));
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
        memset(file, 0, sizeof(file));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once),
        cmocka_unit_test(each_attempt_once_where_it_is_requeued),
        cmocka_unit_test(the_oldest_are_refused),
        cmocka_unit_test(a_record_is_remembered),
        cmocka_unit_test(a_damaged_block_counts_as_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
