/* fuzz_messages.c - the decoder, with bytes as they may come from the network, for every minor that can be negotiated.
 * What is decoded keeps its limits, and encodes again to what decodes equal; what is refused gets a sentence and leaves
 * nothing behind. A second decoder, made with another library, says the same. A message of jobs also goes through the
 * JSON for people's scripts. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/json_out.h"
#include "lib/wire/queued_lines.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/lib/wire/reference_decode.h"

static void check_refusal(const struct wire_message *message, int result, const struct err *err)
{
    FUZZ_CHECK(result < 0 && err->text[0] != '\0', "refused with %d and \"%s\"", result, err->text);
    FUZZ_CHECK(!message->memory, "a refused message has memory");
    for (const char *c = err->text; *c != '\0'; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7F, "control character in \"%s\"", err->text);
}

static void check_json_out(const struct wire_message *message)
{
    const struct wire_job_view *views[256];
    char *text;

    for (size_t i = 0; i < message->u.jobs.jobs.count; i++)
        views[i] = &message->u.jobs.jobs.items[i];
    text = json_out_jobs(views, message->u.jobs.jobs.count);
    FUZZ_CHECK(text != NULL, "no JSON of %zu jobs", message->u.jobs.jobs.count);
    /* cppcheck-suppress nullPointerRedundantCheck */
    FUZZ_CHECK(str_valid_utf8(text, strlen(text)), "not UTF-8: %s", text);
    for (const char *c = text; *c != '\0'; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ', "a control character is not escaped: %s", text);
    free(text);
}

/* What fits can be read. */
static void check_lines(const struct wire_lines *message)
{
    size_t bytes = 0;

    for (size_t i = 0; queued_lines_fit(message) && i < queued_lines_count(message); i++) {
        const struct queued_line line = queued_lines_at(message, i);

        bytes += strlen(line.name) + strlen(line.user) + strlen(line.reason);
    }
    FUZZ_CHECK(bytes <= 3 * (size_t)WIRE_MAX_FRAME * QUEUED_LINES_MAX, "%zu bytes of text", bytes);
}

static void round_trip(const struct wire_message *message, unsigned minor)
{
    struct wire_message again;
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    int result = wire_encode(message, minor, &json, &size, &err);

    /* Escapes are longer than what they stand for, so a message near the limit may not fit any more. */
    if (result != 0) {
        FUZZ_CHECK(strstr(err.text, "a message has at most") != NULL, "cannot be encoded: %s", err.text);
        return;
    }
    result = wire_decode(json, size, minor, &again, &err);
    FUZZ_CHECK(result == 0, "%s: %s", json, err.text);
    FUZZ_CHECK(wire_same(message, &again), "decodes to another message: %s", json);
    wire_message_fini(&again);
    free(json);
}

static void compare(const char *json, size_t size, unsigned minor, const struct wire_message *message, int result)
{
    struct wire_message other;
    int other_result = reference_decode(json, size, minor, &other, NULL);

    FUZZ_CHECK(result == other_result, "%d here, %d from the reference", result, other_result);
    if (result != 0)
        return;
    FUZZ_CHECK(wire_same(message, &other), "decodes to something else");
    reference_fini(&other);
}

/* Whoever passes a message on sees what its reader will see. */
static void check_head(const char *json, size_t size, unsigned minor, const struct wire_message *message)
{
    struct wire_head head;
    struct err err = ERR_INIT;
    int result = wire_decode_head(json, size, minor, &head, &err);

    FUZZ_CHECK(result == 0, "a good message has no head: %s", err.text);
    FUZZ_CHECK(head.type == message->type && head.id == message->id, "another head");
    FUZZ_CHECK(message->type != WIRE_jobs || head.more == message->u.jobs.more, "another end");
}

static void decode(const char *json, size_t size, unsigned minor)
{
    struct wire_message message;
    struct err err = ERR_INIT;
    int result = wire_decode(json, size, minor, &message, &err);
    unsigned senders = 0;

    compare(json, size, minor, &message, result);
    if (result != 0) {
        check_refusal(&message, result, &err);
        return;
    }
    check_head(json, size, minor, &message);
    for (unsigned sender = 1; sender <= WIRE_FROM_ANY; sender <<= 1)
        senders |= wire_may_send(message.type, sender) ? sender : 0;
    FUZZ_CHECK(senders != 0, "%s: nobody may send it", wire_type_name(message.type));
    round_trip(&message, minor);
    if (message.type == WIRE_jobs)
        check_json_out(&message);
    if (message.type == WIRE_lines)
        check_lines(&message.u.lines);
    wire_message_fini(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *json = malloc(size > 0 ? size : 1); /* not one byte behind it */

    if (!json)
        abort();
    if (size > 0)
        memcpy(json, data, size);
    for (unsigned minor = 0; minor <= WIRE_MINOR; minor++)
        decode(json, size, minor);
    free(json);
    return 0;
}
