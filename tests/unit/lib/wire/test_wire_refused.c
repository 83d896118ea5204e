/* test_wire_refused.c - bytes that are not messages, and those that hardly are: each is refused with its reason. */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/wire/channel.h"
#include "lib/wire/table.h"
#include "tests/unit/lib/wire/reference_decode.h"
#include "tests/unit/lib/wire/wire_fill.h"

/* ---- refusals ---- */

/* Both decoders take it, and understand alike, or neither does. Returns whether they do. */
static bool agree(const char *json, size_t size)
{
    struct wire_message ours, theirs;
    int result = wire_decode(json, size, WIRE_MINOR, &ours, NULL);

    if (reference_decode(json, size, WIRE_MINOR, &theirs, NULL) != result)
        fail_msg("%s only one decoder: %.*s", result == 0 ? "taken by" : "refused by", (int)size, json);
    if (result != 0)
        return false;
    wire_assert_same(&ours, &theirs);
    wire_message_fini(&ours);
    reference_fini(&theirs);
    return true;
}

static void refused_bytes(const char *json, size_t size, const char *why)
{
    struct wire_message message;
    struct err err = ERR_INIT;

    assert_false(agree(json, size));
    assert_int_equal(wire_decode(json, size, WIRE_MINOR, &message, &err), -EBADMSG);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
    assert_null(message.memory);
    wire_message_fini(&message); /* harmless */
}

static void refused(const char *json, const char *why)
{
    refused_bytes(json, strlen(json), why);
}

static void accepted(const char *json)
{
    struct wire_message message;
    struct err err = ERR_INIT;

    if (wire_decode(json, strlen(json), WIRE_MINOR, &message, &err) != 0)
        fail_msg("%s: %s", json, err.text);
    assert_true(agree(json, strlen(json)));
    wire_message_fini(&message);
}

static void what_is_not_json_is_refused(void **state)
{
    (void)state;
    accepted("{\"type\":\"ping\",\"id\":1}");
    accepted(" {\"id\":1, \"type\":\"ping\"}\n");
    refused_bytes("", 0, "0 bytes");
    refused("{\"type\":\"ping\",\"id\":1", "not a JSON message");
    refused("{\"type\":\"ping\",\"id\":1}x", "not a JSON message");
    refused("{\"type\":\"ping\",\"id\":1}{}", "not a JSON message");
    refused_bytes("{\"type\":\"ping\",\"id\":1}\0", 23, "not a JSON message");
    refused_bytes("{\"type\":\"ping\",\"id\":1\0}", 23, "not a JSON message");
    refused("{\"type\":\"ping\",\"type\":\"ping\",\"id\":1}", "not a JSON message"); /* duplicate key */
    refused("{\"type\":\"ping\",\"id\":1,\"id\":1}", "not a JSON message");
    refused("{\"type\":\"done\",\"id\":1,\"text\":\"a\\u0000b\"}", "not a JSON message");
    refused("{\"type\":\"done\",\"id\":1,\"text\":\"\xC3\"}", "not a JSON message");
    refused("{\"type\":\"done\",\"id\":1,\"text\":\"\xED\xA0\x80\"}", "not a JSON message");
    refused("{\"type\":\"done\",\"id\":1,\"text\":\"a\nb\"}", "not a JSON message");
    refused("{'type':'ping','id':1}", "not a JSON message");
}

static void json_is_read_as_others_read_it(void **state)
{
    static const char *const texts[] = {"\\b\\f\\n\\r\\t\\/\\\\\\\"", "\\u00e9\\u20AC\\ud83d\\ude00\\u001f\\u007F",
                                        "\xF0\x9F\x98\x80\xEF\xBF\xBF"};
    static const char *const wrong_texts[] = {
        "\\x",     "\\u12", "\\u12g4",  "\\ud800",          "\\ud800x", "\\ud800\\u0041", "\\ude00", "\\ud83d\\ud83d",
        "\\u0000", "\t",    "\x7F\x80", "\xF5\x80\x80\x80", "\\",       "\xF0\x9F\x98"};
    static const char *const numbers[] = {"0",
                                          "-0",
                                          "-0.0",
                                          "0.5",
                                          "1e3",
                                          "1E+3",
                                          "12.5e-3",
                                          "1e-400",
                                          "-7",
                                          "9223372036854775807",
                                          "123456789012345.678901234567890123456789012345678901234567890"};
    static const char *const wrong_numbers[] = {"01",  "-",     "+1",    ".5",  "1.",  "1.e3",  "1e",
                                                "1e+", "0x1",   "--1",   "1-1", "-01", "1e400", "9223372036854775808",
                                                "tru", "truex", "nulll", "1 2", "",    "[",     "}"};
    char json[256];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        (void)snprintf(json, sizeof(json), "{\"type\":\"done\",\"id\":1,\"text\":\"%s\"}", texts[i]);
        accepted(json);
    }
    for (size_t i = 0; i < sizeof(wrong_texts) / sizeof(*wrong_texts); i++) {
        (void)snprintf(json, sizeof(json), "{\"type\":\"done\",\"id\":1,\"text\":\"%s\"}", wrong_texts[i]);
        refused(json, "not a JSON message");
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        (void)snprintf(json, sizeof(json),
                       "{\"type\":\"report\",\"id\":0,\"interval_ms\":1,\"busy\":[ "
                       "%s\t],\"jobs\":[],\"heard\":0,\"since_heard_ms\":0,\"used\":[],\"memory_bytes\":-1,\"memory_"
                       "free_bytes\":-1}",
                       numbers[i]);
        accepted(json);
    }
    for (size_t i = 0; i < sizeof(wrong_numbers) / sizeof(*wrong_numbers); i++) {
        (void)snprintf(json, sizeof(json),
                       "{\"type\":\"report\",\"id\":0,\"interval_ms\":1,\"busy\":[1,%s],\"jobs\":[],\"heard\":0,"
                       "\"since_heard_ms\":0,\"used\":[],\"memory_bytes\":-1,\"memory_free_bytes\":-1}",
                       wrong_numbers[i]);
        refused(json, "not a JSON message");
    }
    /* any order, white space, keys written with escapes */
    accepted(" { \"text\" : \"\" ,\n\"id\":1\t, \"type\"\r:\"done\" } ");
    accepted("{\"t\\u0079pe\":\"done\",\"id\":1,\"te\\u0078t\":\"\"}");
    refused("{\"t\\u0079pe\":\"done\",\"type\":\"done\",\"id\":1,\"text\":\"\"}", "not a JSON message");
    refused("{\"type\":\"done\",\"id\":1,\"text\":\"\",}", "not a JSON message");
    refused("{\"type\":\"done\",\"id\":1 \"text\":\"\"}", "not a JSON message");
    refused("{\"type\":\"done\",\"id\":1,\"text\":\"\",\"text\":\"\"}", "not a JSON message");
    refused("{\"type\":\"query\",\"id\":1,\"running\":true,\"queued\":true,\"jobs\":[1,]}", "not a JSON message");
    refused("{\"type\":\"query\",\"id\":1,\"running\":true,\"queued\":true,\"jobs\":[1 1]}", "not a JSON message");
    refused("{\"type\":\"query\",\"id\":1,\"running\":true,\"queued\":true,\"jobs\":[1}", "not a JSON message");
}

static void the_envelope_is_checked(void **state)
{
    (void)state;
    refused("[]", "must be an object with a type");
    refused("{}", "must be an object with a type");
    refused("\"ping\"", "not a JSON message");
    refused("{\"type\":1,\"id\":1}", "must be an object with a type");
    refused("{\"type\":\"pinG\",\"id\":1}", "unknown message type \"pinG\"");
    refused("{\"type\":\"\\u001b[2J\",\"id\":1}", "unknown message type \"\\x1B[2J\"");
    refused("{\"type\":\"usage\",\"id\":1}", "unknown message type"); /* a struct is not a message */
    refused("{\"type\":\"ping\"}", "id");
    refused("{\"type\":\"ping\",\"id\":-1}", "id");
    refused("{\"type\":\"ping\",\"id\":1.0}", "id");
    refused("{\"type\":\"ping\",\"id\":\"1\"}", "id");
    refused("{\"type\":\"ping\",\"id\":9223372036854775808}", "not a JSON message");
}

static void keys_are_exact(void **state)
{
    (void)state;
    accepted("{\"type\":\"done\",\"id\":1,\"text\":\"\"}");
    refused("{\"type\":\"done\",\"id\":1}", "done: text: is missing");
    refused("{\"type\":\"done\",\"id\":1,\"text\":\"\",\"more\":0}", "unknown key \"more\"");
    refused("{\"type\":\"ping\",\"id\":1,\"unused_\":0}", "unknown key \"unused_\"");
    refused("{\"type\":\"relay_closed\",\"id\":1,\"client\":null}", "client");
    /* in objects of lists, too; there type and id are nothing special */
    accepted("{\"type\":\"host_hello\",\"id\":0,\"host\":\"a\",\"boot\":\"b\",\"cpus\":[0],\"generation\":1,"
             "\"holdings\":[{\"job\":1,\"attempt\":1}],"
             "\"mode\":\"rt\",\"mode_reason\":\"\",\"address\":\"\",\"name_loopback\":false,\"pvm\":true,\"lacks\":[],"
             "\"memory_bytes\":1,\"limits_memory\":true,\"version\":\"\"}");
    refused("{\"type\":\"order\",\"id\":0,\"generation\":1,\"entries\":[{\"job\":1,\"attempt\":1,\"level\":0,"
            "\"lowest\":true,\"cpus\":[],\"id\":1}]}",
            "unknown key \"id\"");
    refused("{\"type\":\"order\",\"id\":0,\"generation\":1,\"entries\":[{\"job\":1,\"attempt\":1,\"level\":0,"
            "\"lowest\":true}]}",
            "cpus: is missing");
    refused("{\"type\":\"order\",\"id\":0,\"generation\":1,\"entries\":[7]}", "must be an object");
    refused("{\"type\":\"order\",\"id\":0,\"generation\":1,\"entries\":{}}", "must be a list");
}

static void types_and_limits_are_checked(void **state)
{
    (void)state;
    accepted("{\"type\":\"drain\",\"id\":1,\"host\":\"a\",\"drained\":true,\"reason\":\"\"}");
    refused("{\"type\":\"drain\",\"id\":1,\"host\":\"a\",\"drained\":1}", "drained: must be true or false");
    refused("{\"type\":\"drain\",\"id\":1,\"host\":7,\"drained\":true}", "host");
    accepted("{\"type\":\"wait\",\"id\":1,\"job\":9223372036854775807,\"timeout_ms\":60000}");
    refused("{\"type\":\"wait\",\"id\":1,\"job\":1,\"timeout_ms\":60001}", "timeout_ms");
    refused("{\"type\":\"wait\",\"id\":1,\"job\":-1,\"timeout_ms\":1}", "job");
    refused("{\"type\":\"wait\",\"id\":1,\"job\":1e3,\"timeout_ms\":1}", "job");
    refused("{\"type\":\"wait\",\"id\":1,\"job\":true,\"timeout_ms\":1}", "job");
    refused("{\"type\":\"wait\",\"id\":1,\"job\":18446744073709551615,\"timeout_ms\":1}", "not a JSON message");
    /* INT: both ends */
    accepted("{\"type\":\"exited\",\"id\":0,\"job\":1,\"attempt\":1,\"process\":0,\"role\":\"command\",\"exit_status\":"
             "-255,\"signal\":64}");
    refused("{\"type\":\"exited\",\"id\":0,\"job\":1,\"attempt\":1,\"process\":0,\"role\":\"command\",\"exit_status\":-"
            "256,\"signal\":64}",
            "exit_status");
    refused("{\"type\":\"exited\",\"id\":0,\"job\":1,\"attempt\":1,\"process\":0,\"role\":\"command\",\"exit_status\":"
            "0,\"signal\":65}",
            "signal");
    refused("{\"type\":\"exited\",\"id\":0,\"job\":1,\"attempt\":1,\"process\":0,\"role\":\"too "
            "long!\",\"exit_status\":0,\"signal\":0}",
            "role");
    /* DOUBLE: integers are numbers too; infinity cannot be written */
    accepted("{\"type\":\"empty\",\"id\":0,\"job\":1,\"attempt\":1,\"cpu_seconds\":-1,\"memory_peak_bytes\":-"
             "9223372036854775807}");
    accepted("{\"type\":\"empty\",\"id\":0,\"job\":1,\"attempt\":1,\"cpu_seconds\":1.5e14,\"memory_peak_bytes\":0}");
    refused("{\"type\":\"empty\",\"id\":0,\"job\":1,\"attempt\":1,\"cpu_seconds\":1.5e15,\"memory_peak_bytes\":0}",
            "cpu_seconds");
    refused("{\"type\":\"empty\",\"id\":0,\"job\":1,\"attempt\":1,\"cpu_seconds\":1e999,\"memory_peak_bytes\":0}",
            "not a JSON message");
    refused("{\"type\":\"empty\",\"id\":0,\"job\":1,\"attempt\":1,\"cpu_seconds\":\"1\",\"memory_peak_bytes\":0}",
            "cpu_seconds");
    refused("{\"type\":\"empty\",\"id\":0,\"job\":1,\"attempt\":1,\"cpu_seconds\":NaN,\"memory_peak_bytes\":0}",
            "not a JSON message");
    refused("{\"type\":\"empty\",\"id\":0,\"job\":1,\"attempt\":1,\"cpu_seconds\":0,\"memory_peak_bytes\":-"
            "9223372036854775808}",
            "memory_peak_bytes");
    /* items of lists */
    refused("{\"type\":\"query\",\"id\":1,\"running\":true,\"queued\":true,\"jobs\":[1,\"2\"]}", "jobs[1]");
    refused("{\"type\":\"query\",\"id\":1,\"running\":true,\"queued\":true,\"jobs\":[-1]}", "jobs[0]");
    refused("{\"type\":\"hello\",\"id\":0,\"program\":\"a\",\"major\":1,\"minor\":0,\"capabilities\":[null]}",
            "capabilities[0]");
    refused("{\"type\":\"report\",\"id\":0,\"interval_ms\":1,\"busy\":[true],\"jobs\":[],\"heard\":0,\"since_heard_"
            "ms\":0,\"used\":[],\"memory_bytes\":-1,\"memory_free_bytes\":-1}",
            "busy[0]");
}

/* "prefix" + item repeated + "suffix". */
static char *repeat(const char *prefix, const char *item, size_t count, const char *suffix)
{
    size_t size = strlen(prefix) + (strlen(item) + 1) * count + strlen(suffix) + 1, used = strlen(prefix);
    char *text = malloc(size);

    assert_non_null(text);
    memcpy(text, prefix, used);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : ",", item);
    (void)snprintf(text + used, size - used, "%s", suffix);
    return text;
}

static void counts_are_limited(void **state)
{
    const char *prefix = "{\"type\":\"hello\",\"id\":0,\"program\":\"a\",\"major\":1,\"minor\":0,\"capabilities\":[";
    char *text;

    (void)state;
    text = repeat(prefix, "\"x\"", 32, "]}");
    accepted(text);
    free(text);
    text = repeat(prefix, "\"x\"", 33, "]}");
    refused(text, "33 items, at most 32");
    free(text);
    text = repeat("{\"type\":\"order\",\"id\":0,\"generation\":1,\"entries\":[",
                  "{\"job\":1,\"attempt\":1,\"level\":0,\"lowest\":true,\"cpus\":[]}", 16385, "]}");
    refused(text, "16385 items");
    free(text);
}

static void head(const char *json, int code, enum wire_type type, uint64_t id, bool more)
{
    struct wire_head found;
    struct err err = ERR_INIT;

    assert_int_equal(wire_decode_head(json, strlen(json), WIRE_MINOR, &found, &err), code);
    if (code != 0) {
        assert_string_not_equal(err.text, "");
        return;
    }
    assert_int_equal(found.type, type);
    assert_int_equal(found.id, id);
    assert_int_equal(found.more, more);
}

static void a_head_is_type_id_and_more(void **state)
{
    struct wire_head found;

    (void)state;
    head("{\"type\":\"jobs\",\"id\":7,\"jobs\":[{\"more\":false}],\"more\":true}", 0, WIRE_jobs, 7, true);
    head("{\"type\":\"jobs\",\"id\":7,\"jobs\":[{\"more\":true}],\"more\":false}", 0, WIRE_jobs, 7, false);
    head(" {\"more\":1,\"i\\u0064\":9, \"type\" : \"done\"}", 0, WIRE_done, 9, false);
    head("{\"type\":\"done\",\"id\":0}", 0, WIRE_done, 0, false);
    head("{\"type\":\"done\"}", -EBADMSG, 0, 0, false);
    head("{\"type\":\"done\",\"id\":-1}", -EBADMSG, 0, 0, false);
    head("{\"type\":\"nothing\",\"id\":1}", -EBADMSG, 0, 0, false);
    head("{\"id\":1}", -EBADMSG, 0, 0, false);
    head("[1]", -EBADMSG, 0, 0, false);
    head("{\"type\":\"done\",\"id\":1", -EBADMSG, 0, 0, false);
    head("{\"type\":\"done\",\"id\":1}}", -EBADMSG, 0, 0, false);
    assert_int_equal(wire_decode_head("{\"type\":\"history\",\"id\":1}", 25, 0, &found, NULL), -EBADMSG);
}

static void size_and_depth_are_limited_before_parsing(void **state)
{
    char *big = malloc(WIRE_MAX_FRAME + 1);

    (void)state;
    assert_non_null(big);
    memset(big, ' ', WIRE_MAX_FRAME + 1);
    refused_bytes(big, WIRE_MAX_FRAME + 1, "bytes, must be 1 to");
    memcpy(big, "{\"type\":\"ping\",\"id\":1}", 22);
    refused_bytes(big, WIRE_MAX_FRAME + 1, "bytes, must be 1 to");
    /* depth is found without a parser: this is not even JSON */
    memset(big, '[', WIRE_MAX_FRAME);
    refused_bytes(big, WIRE_MAX_FRAME, "nested deeper than 8");
    free(big);
    refused("[[[[[[[[1]]]]]]]]", "must be an object");
    refused("[[[[[[[[[1]]]]]]]]]", "nested deeper than 8");
    refused("{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}}", "nested deeper than 8");
    /* brackets in strings do not count, also behind escapes */
    accepted("{\"type\":\"done\",\"id\":1,\"text\":\"[[[[[[[[[[\\\"[[[[[[[[\\\\\"}");
    refused("{\"type\":\"done\",\"id\":1,\"text\":\"\\\\\",\"x\":[[[[[[[[[[", "nested deeper than 8");
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    for (enum wire_type type = 0; type < WIRE_TYPE_COUNT; type++) {
        struct wire_message in, out;
        char *json;
        size_t size;

        wire_fill(&in, type, 99u + type);
        assert_int_equal(wire_encode(&in, WIRE_MINOR, &json, &size, NULL), 0);
        for (size_t cut = 0; cut < size; cut++) {
            char *copy = malloc(cut + 1); /* so that a sanitizer sees a read beyond the cut */

            assert_non_null(copy);
            memcpy(copy, json, cut);
            assert_int_equal(wire_decode(copy, cut, WIRE_MINOR, &out, NULL), -EBADMSG);
            free(copy);
        }
        wire_fill_free(&in);
        free(json);
    }
}

/* Bytes changed at random never crash the decoder, it takes the same as the other one, and that is encoded again. */
static void random_changes_do_no_harm(void **state)
{
    unsigned taken = 0;

    (void)state;
    srand(1);
    for (unsigned turn = 0; turn < 20000; turn++) {
        struct wire_message in, out;
        char *json, *again;
        size_t size;

        wire_fill(&in, turn % WIRE_TYPE_COUNT, turn);
        assert_int_equal(wire_encode(&in, WIRE_MINOR, &json, &size, NULL), 0);
        for (int i = rand() % 3; i >= 0; i--)
            json[(size_t)rand() % size] = "0129-\"[]{},:ae\\\x7f\xff"[rand() % 17];
        (void)agree(json, size);
        if (wire_decode(json, size, WIRE_MINOR, &out, NULL) == 0) {
            taken++;
            assert_int_equal(wire_encode(&out, WIRE_MINOR, &again, &size, NULL), 0);
            free(again);
            wire_message_fini(&out);
        }
        wire_fill_free(&in);
        free(json);
    }
    assert_in_range(taken, 1, 19999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_json_is_refused),  cmocka_unit_test(json_is_read_as_others_read_it),
        cmocka_unit_test(the_envelope_is_checked),      cmocka_unit_test(keys_are_exact),
        cmocka_unit_test(types_and_limits_are_checked), cmocka_unit_test(counts_are_limited),
        cmocka_unit_test(a_head_is_type_id_and_more),   cmocka_unit_test(size_and_depth_are_limited_before_parsing),
        cmocka_unit_test(every_cut_is_refused),         cmocka_unit_test(random_changes_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
