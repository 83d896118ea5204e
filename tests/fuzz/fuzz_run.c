/* fuzz_run.c - from whoever connects to a courier or a terminal, or answers in its place: a pass, as bytes or as text;
 * what comes before anybody is known; and what is to be started, or looked at, of who has shown a good one. */
#include "config.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/run/link.h"
#include "lib/run/look.h"
#include "lib/run/pack.h"
#include "lib/ticket/pass.h"
#include "tests/fuzz/fuzz.h"

static void read_pass(const char *text)
{
    static const uint8_t secret[TICKET_KEY_BYTES] = {1};
    static struct ticket_trust nobody = {.has_authority = true, .own_host = "ws1"};
    char again[PASS_TEXT_MAX + 1];
    struct pass pass;

    if (!pass_decode(text, &pass))
        return;
    pass_encode(&pass, again);
    FUZZ_CHECK(strcmp(text, again) == 0, "two texts of one pass");
    FUZZ_CHECK(str_valid_hostname(pass.host) && *pass.user && pass.job > 0, "no host, user or job");
    FUZZ_CHECK(pass_is_of_job(&pass, &pass) != pass.looks, "of a process, and to look");
    /* Zeros would be a key for which anybody can sign. */
    FUZZ_CHECK(ticket_key_of(secret, nobody.authority) && ticket_key_of(secret, nobody.own), "no key");
    FUZZ_CHECK(pass_check_chain(&pass, &nobody) != TICKET_GOOD, "a pass that nobody has signed");
}

static bool lies_within(const char *text, const uint8_t *data, size_t size)
{
    const uint8_t *at = (const uint8_t *)text;

    return at >= data && at < data + size && memchr(at, 0, (size_t)(data + size - at));
}

static void read_start(const uint8_t *data, size_t size)
{
    struct run_start start;
    void *memory;
    uint8_t *again;
    size_t length;

    if (!run_start_unpack(data, size, &start, &memory)) {
        free(memory);
        return;
    }
    FUZZ_CHECK(start.nranks > 0 && start.nranks <= RUN_RANKS_MAX && start.umask <= 0777, "ranks, or a umask");
    FUZZ_CHECK(lies_within(start.dir, data, size), "a directory elsewhere");
    for (size_t i = 0; i < start.argv.count; i++)
        FUZZ_CHECK(lies_within(start.argv.items[i], data, size), "a word elsewhere");
    for (size_t i = 0; i < start.environment.count; i++)
        FUZZ_CHECK(lies_within(start.environment.items[i], data, size), "a variable elsewhere");
    FUZZ_CHECK(!start.argv.items[start.argv.count] && !start.environment.items[start.environment.count], "no end");
    again = run_start_pack(&start, &length);
    FUZZ_CHECK(!again || (length == size && memcmp(again, data, size) == 0), "two packs of one start");
    free(again);
    free(memory);
}

static void read_look(const uint8_t *data, size_t size)
{
    uint8_t again[RUN_LOOK_BYTES];
    struct run_look look;

    if (!run_look_unpack(data, size, &look))
        return;
    run_look_pack(&look, again);
    FUZZ_CHECK(size == sizeof(again) && memcmp(data, again, size) == 0, "two packs of one look");
}

/* Of a stranger no more is read than a pass takes, and nothing is heard from him. */
static void read_stranger(const uint8_t *data, size_t size)
{
    static struct seal_key key;
    static bool made;
    struct run_link link;
    struct run_frame frame;
    int fds[2];

    made = made || seal_key_make(&key);
    if (!made || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        return;
    run_link_init(&link, fds[0], false, &key, "00");
    (void)!write(fds[1], data, size);
    for (int i = 0; i < 4; i++)
        run_link_step(&link, POLLIN);
    FUZZ_CHECK(link.state == RUN_SHOWING || link.state == RUN_CHECKING || link.state == RUN_DEAD, "state %d",
               (int)link.state);
    FUZZ_CHECK(link.in_size <= RUN_HELLO_MAX + 4, "%zu bytes of a stranger", link.in_size);
    FUZZ_CHECK(run_link_next(&link, &frame) == 0, "a frame of a stranger");
    run_link_fini(&link);
    close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char hex[2 * PASS_BYTES_MAX + 3];
    struct input input = {data, size};
    char *text;

    hex_write(data, size < PASS_BYTES_MAX + 1 ? size : PASS_BYTES_MAX + 1, hex);
    read_pass(hex);
    text = input_line(&input);
    read_pass(text);
    free(text);
    read_start(data, size);
    read_look(data, size);
    read_stranger(data, size);
    return 0;
}
