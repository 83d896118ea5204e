/* test_words.c - what stops a host, in words. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "elmer/hosts/internal.h"
#include "tests/unit/elmer/hosts/bed.h"

static const char *reason(int host)
{
    struct wire_host_view view;
    hosts_view(bed.hosts, host, &view);
    return view.reason;
}

static void begins(const char *text, const char *words)
{
    if (strncmp(text, words, strlen(words)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", text, words);
}

static void test_links(void **state)
{
    (void)state;
    begins(reason(WS1), "never linked; elmer was started at ");
    int link = bed_ws1_up();
    assert_string_equal(reason(WS1), "");
    links_cut((size_t)link);
    links_turn();
    fake_event(EVENT_HOST_SILENT);
    begins(reason(WS1), "not heard since ");
    assert_non_null(strstr(reason(WS1), ": its link is cut"));
    hosts_note_refused(bed.hosts, "ws1", "certificate revoked");
    fake_time_pass(8000);
    assert_string_equal(reason(WS1), "refused 8 s ago: certificate revoked");
    fake_event(EVENT_HOST_DOWN);
    hosts_note_refused(bed.hosts, "ws9", "nobody knows it"); /* and nothing happens */
    bed_ws1_up();
    assert_string_equal(reason(WS1), ""); /* it was let in since */
}

static void test_local(void **state)
{
    struct wire_host_view view;
    (void)state;
    hosts_view(bed.hosts, QUEUE, &view);
    assert_true(view.local); /* its rsd may be away, or not be installed: it needs no certificate */
    begins(view.reason, "never linked; ");
    hosts_view(bed.hosts, WS1, &view);
    assert_false(view.local);
    bed_up(&(struct greeting){.host = "queue", .local = true});
    hosts_view(bed.hosts, QUEUE, &view);
    assert_string_equal(view.reason, "local");
    assert_true(view.local);
    assert_int_equal(view.heard_ms, FAKE_WALL_MS);
    assert_int_equal(view.refused_ms, -1);
}

static void test_drained(void **state)
{
    struct wire_host_view view;
    (void)state;
    bed_ws1_up();
    fake_engine.hosts[WS1].drained = true;
    assert_string_equal(reason(WS1), "drained: it takes no new jobs"); /* by an elmer that did not keep who */
    fake_engine.drains[WS1] = (struct host_drain){.by = "carol", .text = "disk", .at_ms = FAKE_WALL_MS - 7200000};
    assert_string_equal(reason(WS1), "drained by carol 2 h ago: disk");
    hosts_view(bed.hosts, WS1, &view);
    assert_string_equal(view.drained_by, "carol");
    assert_string_equal(view.drained_for, "disk");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_links), TEST(test_local), TEST(test_drained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
