/* test_wire.c - messages to JSON and back, and what is not encoded. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/wire/channel.h"
#include "lib/wire/queued_lines.h"
#include "lib/wire/table.h"
#include "tests/unit/lib/wire/reference_decode.h"
#include "tests/unit/lib/wire/wire_fill.h"

static void every_message_round_trips(void **state)
{
    (void)state;
    for (enum wire_type type = 0; type < WIRE_TYPE_COUNT; type++) {
        for (unsigned seed = 0; seed < 50; seed++) {
            struct wire_message in, out;
            struct err err = ERR_INIT;
            char *json, *again;
            size_t size, size_again;

            wire_fill(&in, type, seed * 7919u + type);
            assert_int_equal(wire_encode(&in, WIRE_MINOR, &json, &size, &err), 0);
            assert_int_equal(strlen(json), size);
            assert_int_equal(wire_decode(json, size, WIRE_MINOR, &out, &err), 0);
            assert_string_equal(err.text, "");
            wire_assert_same(&in, &out);
            assert_int_equal(wire_encode(&out, WIRE_MINOR, &again, &size_again, &err), 0);
            assert_string_equal(json, again);
            wire_message_fini(&out);
            wire_fill_free(&in);
            free(json);
            free(again);
        }
    }
}

/* ---- queued lines ---- */

static void queued_lines_are_columns(void **state)
{
    static struct queued_lines lines;
    char names[QUEUED_LINES_MAX][16];
    struct wire_message in = {.type = WIRE_lines}, out;
    char *json;
    size_t size;

    (void)state;
    for (size_t i = 0; i < QUEUED_LINES_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "job %zu", i);
        queued_lines_add(&lines, &(struct queued_line){.job = i + 1,
                                                       .nprocs = 2,
                                                       .ahead = i,
                                                       .submitted_ms = 1000 * i,
                                                       .name = names[i],
                                                       .user = i % 2 ? "alice" : "bob",
                                                       .reason = i == 7 ? "held" : "",
                                                       .held = i == 7,
                                                       .hidden = i == 9});
    }
    queued_lines_put(&lines, &in.u.lines);
    assert_int_equal(in.u.lines.texts.count, QUEUED_LINES_MAX + 4); /* names, two users, "", "held" */
    assert_int_equal(wire_encode(&in, WIRE_MINOR, &json, &size, NULL), 0);
    assert_int_equal(wire_decode(json, size, WIRE_MINOR, &out, NULL), 0);
    assert_true(queued_lines_fit(&out.u.lines));
    assert_int_equal(queued_lines_count(&out.u.lines), QUEUED_LINES_MAX);
    for (size_t i = 0; i < QUEUED_LINES_MAX; i++) {
        struct queued_line line = queued_lines_at(&out.u.lines, i);

        assert_int_equal(line.job, i + 1);
        assert_int_equal(line.nprocs, 2);
        assert_int_equal(line.ahead, i);
        assert_int_equal(line.submitted_ms, 1000 * i);
        assert_string_equal(line.name, names[i]);
        assert_string_equal(line.user, i % 2 ? "alice" : "bob");
        assert_string_equal(line.reason, i == 7 ? "held" : "");
        assert_int_equal(line.held, i == 7);
        assert_int_equal(line.hidden, i == 9);
    }
    wire_message_fini(&out);
    free(json);
}

/* Each column shorter than the others, each index and mark out of range. */
static void queued_lines_must_fit(void **state)
{
    (void)state;
    for (int bad = 0; bad < 12; bad++) {
        struct queued_lines lines = {.count = 0};
        struct wire_lines m = {.more = false};

        queued_lines_add(&lines, &(struct queued_line){.job = 1, .nprocs = 1, .name = "n", .user = "u", .reason = ""});
        queued_lines_put(&lines, &m);
        struct wire_uints *const columns[] = {&m.queued_nprocs, &m.queued_ahead, &m.queued_submitted_ms,
                                              &m.queued_names,  &m.queued_users, &m.queued_reasons,
                                              &m.queued_marks,  &m.queued_jobs};
        assert_true(queued_lines_fit(&m));
        if (bad < 8)
            columns[bad]->count = 0;
        else
            columns[bad - 5]->items[0] = bad == 11 ? 4 : m.texts.count;
        if (queued_lines_fit(&m))
            fail_msg("case %d fits", bad);
    }
    struct wire_lines none = {.more = false};
    assert_true(queued_lines_fit(&none));
}

/* ---- encoding ---- */

static void not_encoded(const struct wire_message *message, int code, const char *why)
{
    struct err err = ERR_INIT;
    char *json;
    size_t size;

    assert_int_equal(wire_encode(message, WIRE_MINOR, &json, &size, &err), code);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void invalid_messages_are_not_encoded(void **state)
{
    const char *environment[] = {"A=b", "L=\xE9t\xE9"};
    char *text = malloc(WIRE_MAX_FRAME);
    struct wire_message m = {.type = WIRE_submit, .id = 1};

    (void)state;
    assert_non_null(text);
    m.u.submit.environment.items = environment;
    m.u.submit.environment.count = 2;
    not_encoded(&m, -EILSEQ, "submit: environment");
    m.u.submit.environment.count = 4097;
    not_encoded(&m, -EMSGSIZE, "submit: environment: too many");
    m.u.submit.environment.count = 0;
    m.u.submit.nprocs = 1000001;
    not_encoded(&m, -ERANGE, "submit: nprocs");
    m = (struct wire_message){.type = WIRE_kill, .u.kill = {.job = UINT64_MAX}};
    not_encoded(&m, -ERANGE, "kill: job");
    m = (struct wire_message){.type = WIRE_kill, .id = UINT64_MAX};
    not_encoded(&m, -ERANGE, "id");
    m = (struct wire_message){.type = WIRE_TYPE_COUNT};
    not_encoded(&m, -ERANGE, "type");
    m = (struct wire_message){.type = WIRE_empty, .u.empty = {.cpu_seconds = INFINITY}};
    not_encoded(&m, -ERANGE, "empty: cpu_seconds");
    m.u.empty.cpu_seconds = NAN;
    not_encoded(&m, -ERANGE, "empty: cpu_seconds");
    m = (struct wire_message){.type = WIRE_exited, .u.exited = {.signal = -65}};
    not_encoded(&m, -ERANGE, "exited: signal");
    memset(text, 'x', 1025);
    text[1025] = '\0';
    m = (struct wire_message){.type = WIRE_done, .u.done = {.text = text}};
    not_encoded(&m, -EMSGSIZE, "done: text");
    /* within the limit of the field, but every byte becomes six */
    memset(text, 1, 786432);
    text[786432] = '\0';
    m = (struct wire_message){.type = WIRE_relayed, .u.relayed = {.frame = text}};
    not_encoded(&m, -EMSGSIZE, "relayed: ");
    free(text);
}

static void null_is_an_empty_text(void **state)
{
    struct wire_message in = {.type = WIRE_done, .id = 5}, out;
    uint8_t *frame;
    size_t size;

    (void)state;
    assert_int_equal(wire_encode_frame(&in, WIRE_MINOR, &frame, &size, NULL), 0);
    assert_int_equal(frame[0] << 24 | frame[1] << 16 | frame[2] << 8 | frame[3], size - WIRE_FRAME_HEADER);
    assert_string_equal((char *)frame + WIRE_FRAME_HEADER, "{\"type\":\"done\",\"id\":5,\"text\":\"\"}");
    assert_int_equal(wire_decode((char *)frame + WIRE_FRAME_HEADER, size - WIRE_FRAME_HEADER, WIRE_MINOR, &out, NULL),
                     0);
    assert_string_equal(out.u.done.text, "");
    wire_message_fini(&out);
    free(frame);
}

static void doubles_are_exact(void **state)
{
    const double values[] = {0,
                             -0.0,
                             1,
                             -3,
                             0.1,
                             1.0 / 3,
                             -1e-300,
                             123456789.123456789,
                             999999999999999.9,
                             1e15,
                             -1e15,
                             99999999999999,
                             12345678901234.5};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        struct wire_message in = {.type = WIRE_empty, .u.empty = {.cpu_seconds = values[i]}}, out;
        char *json;
        size_t size;

        assert_int_equal(wire_encode(&in, WIRE_MINOR, &json, &size, NULL), 0);
        assert_int_equal(wire_decode(json, size, WIRE_MINOR, &out, NULL), 0);
        assert_true(out.u.empty.cpu_seconds == values[i]);
        wire_message_fini(&out);
        free(json);
    }
}

static void senders_are_known(void **state)
{
    (void)state;
    assert_true(wire_may_send(WIRE_submit, WIRE_FROM_CLIENT));
    assert_false(wire_may_send(WIRE_submit, WIRE_FROM_ELMER));
    assert_false(wire_may_send(WIRE_submit, WIRE_FROM_HOST));
    assert_true(wire_may_send(WIRE_start, WIRE_FROM_ROOT));
    assert_false(wire_may_send(WIRE_order, WIRE_FROM_ROOT));
    assert_false(wire_may_send(WIRE_TYPE_COUNT, WIRE_FROM_ANY));
    for (unsigned bit = 1; bit < WIRE_FROM_ANY; bit <<= 1)
        assert_true(wire_may_send(WIRE_hello, bit));
    assert_string_equal(wire_type_name(WIRE_agent_spawned), "agent_spawned");
    assert_string_equal(wire_type_name(WIRE_TYPE_COUNT), "unknown");
}

/* As the comment of decide in messages.def names them. */
static void what_may_be_signed_is_known(void **state)
{
    static const enum wire_type decisions[] = {WIRE_cancel,     WIRE_kill,  WIRE_hold,        WIRE_release, WIRE_top,
                                               WIRE_signal_job, WIRE_drain, WIRE_remove_host, WIRE_set,     WIRE_note};
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(decisions) / sizeof(*decisions); i++)
        assert_true(wire_may_be_signed(decisions[i]));
    for (enum wire_type type = 0; type < WIRE_TYPE_COUNT; type++) {
        assert_true(!wire_may_be_signed(type) || wire_may_send(type, WIRE_FROM_CLIENT));
        count += wire_may_be_signed(type);
    }
    assert_int_equal(count, sizeof(decisions) / sizeof(*decisions));
}

/* The largest of each message fits into a frame's depth; a member of a struct never outruns it. */
static void tables_describe_the_structs(void **state)
{
    (void)state;
    for (enum wire_type type = 0; type < WIRE_TYPE_COUNT; type++) {
        const struct wire_object *object = wire_table_message(type);
        bool only_answers = type == WIRE_file_part || type == WIRE_waits; /* so they may be later: channel.h */

        assert_int_equal(wire_table_find(object->name), type);
        assert_true(object->senders != 0 && object->senders <= (WIRE_FROM_ANY | WIRE_FROM_JOINER | WIRE_FROM_SIGNER));
        assert_true(object->since <= WIRE_MINOR);
        if ((object->senders & (WIRE_FROM_SUPERVISOR | WIRE_FROM_AGENT)) != 0)
            assert_true(object->since <= WIRE_MINOR_LASTING || only_answers); /* else it could never be sent */
        for (const struct wire_field *field = object->fields(); field->name; field++) {
            assert_true(field - object->fields() < 62); /* the decoder has a bit for each */
            assert_true(field->offset < object->size);
            assert_true(field->since <= WIRE_MINOR);
            if ((object->senders & (WIRE_FROM_SUPERVISOR | WIRE_FROM_AGENT)) != 0 && !only_answers)
                assert_true(field->since <= WIRE_MINOR_LASTING); /* one of this build may talk to an earlier rsd */
            assert_string_not_equal(field->name, "type");
            assert_string_not_equal(field->name, "id");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_round_trips),   cmocka_unit_test(invalid_messages_are_not_encoded),
        cmocka_unit_test(null_is_an_empty_text),       cmocka_unit_test(queued_lines_are_columns),
        cmocka_unit_test(queued_lines_must_fit),       cmocka_unit_test(doubles_are_exact),
        cmocka_unit_test(senders_are_known),           cmocka_unit_test(what_may_be_signed_is_known),
        cmocka_unit_test(tables_describe_the_structs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
