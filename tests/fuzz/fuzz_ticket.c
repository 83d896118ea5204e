/* fuzz_ticket.c - a ticket from whoever has elmer: the input is its bytes, or its text. What is read is written back as
 * it was, and nothing of it is believed without a signature; whatever it says, what is opened and started is judged
 * without harm. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/ticket/keys.h"
#include "lib/ticket/ticket.h"
#include "lib/ticket/warrant.h"
#include "lib/ticket/window.h"
#include "tests/fuzz/fuzz.h"

static struct ticket ticket;

static void judge(struct input *input)
{
    static const uint8_t secret[TICKET_KEY_BYTES] = {1};
    static struct ticket_trust nobody = {.has_authority = true, .own_host = "ws1"};
    const char *items[3];
    char *words[3];
    struct ticket_start start = {.argv = {items, 3}, .environment = {items, 3}, .tmpdir = "/run/elmer-rsd/jobs/1.1"};
    struct ticket_window *window = ticket_window_create();
    struct ticket_marks marks;
    uint32_t attempt = (uint32_t)input_below(input, 4);

    /* Zeros would be a key for which anybody can sign. */
    FUZZ_CHECK(ticket_key_of(secret, nobody.authority) && ticket_key_of(secret, nobody.own), "no key");
    for (size_t i = 0; i < 3; i++)
        items[i] = words[i] = input_line(input);
    start.dir = words[0];
    start.output = words[1];
    start.errors = words[2];
    start.job = input_below(input, 3);
    start.process = input_below(input, 8);
    start.role = (enum ticket_role)input_below(input, 3);
    start.capture = input_below(input, 2);
    (void)ticket_check_open(&ticket, ticket.uid, ticket.user, ticket.helpers, ticket.nprocs, ticket.memory_bytes);
    FUZZ_CHECK(ticket_check_start(&ticket, &start) != TICKET_GOOD, "a start that nobody has signed");
    FUZZ_CHECK(ticket_check_chain(&ticket, &nobody) != TICKET_GOOD, "a ticket that nobody has signed");
    if (window && ticket_window_check(window, &ticket, attempt) == TICKET_GOOD) {
        FUZZ_CHECK(ticket_window_mark(window, &ticket, attempt, &marks), "no memory");
        FUZZ_CHECK(ticket_window_check(window, &ticket, attempt) == TICKET_USED, "used, and good again");
        FUZZ_CHECK(ticket_block_number(marks.blocks[0], marks.slots[0]) ==
                       ticket_counter_of(&ticket) / TICKET_BLOCK_COUNT,
                   "a block of another number");
    }
    ticket_window_destroy(window);
    for (size_t i = 0; i < 3; i++)
        free(words[i]);
}

/* The same of what an administrator has signed. */
static void read_warrant(const char *text)
{
    static const uint8_t secret[TICKET_KEY_BYTES] = {1};
    struct ticket_trust nobody = {.has_authority = true, .own_host = "ws1"};
    char again[WARRANT_TEXT_MAX + 1];
    struct warrant warrant;

    if (!warrant_decode(text, &warrant))
        return;
    warrant_encode(&warrant, again);
    FUZZ_CHECK(strcmp(text, again) == 0, "two texts of one warrant");
    FUZZ_CHECK(ticket_key_of(secret, nobody.authority) && ticket_key_of(secret, nobody.own), "no key");
    FUZZ_CHECK(warrant_check_chain(&warrant, &nobody) != TICKET_GOOD, "a warrant that nobody has signed");
}

/* What stands behind the ticket of an array: /TASK, and for one with a line /PROOF. */
static void encode_task(const struct ticket *t, char *out, size_t size)
{
    char proof[2 * sizeof(t->proof) + 1];

    hex_write(t->proof[0], (size_t)t->nproof * TREE_DIGEST_BYTES, proof);
    if (t->task > 0)
        snprintf(out, size, "/%u%s%s", t->task, t->nproof > 0 ? "/" : "", t->nproof > 0 ? proof : "");
}

static void read_text(const char *text, struct input *input)
{
    char again[TICKET_TEXT_MAX + 2 * sizeof(ticket.proof) + 20];
    char host[TICKET_HOST_MAX + 1];
    const bool has_host = ticket_host(text, host);
    enum ticket_refusal why = ticket_decode(text, &ticket);

    read_warrant(text);
    FUZZ_CHECK(!has_host || str_valid_hostname(host), "no host");
    FUZZ_CHECK(why == TICKET_GOOD || why == (*text ? TICKET_GARBLED : TICKET_MISSING), "%s", ticket_refusal_name(why));
    if (why != TICKET_GOOD)
        return;
    ticket_encode(&ticket, again);
    encode_task(&ticket, again + strlen(again), sizeof(again) - strlen(again));
    FUZZ_CHECK(strcmp(text, again) == 0, "two texts of one ticket");
    FUZZ_CHECK(has_host && strcmp(host, ticket.host) == 0, "elmer reads another host");
    FUZZ_CHECK(str_valid_hostname(ticket.host) && str_valid_utf8(ticket.user, strlen(ticket.user)), "texts");
    judge(input);
}

static void restore_block(const uint8_t *data, size_t size)
{
    static const uint8_t key[TICKET_KEY_BYTES];
    uint8_t block[TICKET_BLOCK_BYTES] = {0};
    struct ticket_window *window = ticket_window_create();

    memcpy(block, data, size < sizeof(block) ? size : sizeof(block));
    if (window)
        FUZZ_CHECK(ticket_window_restore(window, key, (uint32_t)(size % (TICKET_SLOTS + TICKET_SHEETS)), block, size),
                   "no memory");
    ticket_window_destroy(window);
}

/* What the root half asks is bytes of whoever has elmer, counted by the root half: what is found lies within. */
static void read_ask(const uint8_t *data, size_t size)
{
    static const char *list[TICKET_ASK_LIST_MAX];
    struct ticket_ask ask = {.argc = size > 0 ? data[0] % 8 : 0, .envc = size > 1 ? data[1] % 8 : 0};
    char *bytes = malloc(size + 1);
    if (!bytes)
        return;
    memcpy(bytes, data, size);
    ask.size = (uint32_t)size;
    if (ticket_asked(&ask, bytes, list)) {
        const char *end = ask.ticket;
        for (size_t i = 0; i < 6U + ask.argc + ask.envc; i++)
            end += strlen(end) + 1;
        FUZZ_CHECK(ask.ticket == bytes && end == bytes + size, "texts elsewhere");
        FUZZ_CHECK(ask.argc == 0 || (ask.argv[0] > ask.tmpdir && ask.argv[0] < end), "words elsewhere");
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char hex[2 * TICKET_BYTES_MAX + 1];
    struct input input = {data, size};
    size_t bytes = size < TICKET_BYTES_MAX ? size : TICKET_BYTES_MAX;
    char *text;

    hex_write(data, bytes, hex);
    read_text(hex, &input);
    input = (struct input){data, size};
    text = input_line(&input);
    read_text(text, &input);
    free(text);
    restore_block(data, size);
    read_ask(data, size);
    return 0;
}
