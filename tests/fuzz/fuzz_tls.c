/* fuzz_tls.c - the bytes of TLS. Either a stranger's, for elmer, a host or one that joins; or those of two of ours,
 * which somebody on the way changes, cuts, repeats or adds to. A stranger never gets through, nothing that was not sent
 * is ever received, and what nobody has touched arrives. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/cluster.h"
#include "tests/fuzz/fuzz.h"

enum { ROUNDS = 12, TEXT = 64, SENT = 4096 };

struct end {
    struct tls *tls;
    bool over;
    char sent[SENT], received[SENT];
    size_t nsent, nreceived;
};

static void open_end(struct end *end, struct tls_context *context, const char *host)
{
    struct err err = ERR_INIT;

    *end = (struct end){.tls = NULL};
    FUZZ_CHECK(tls_create(context, host, &end->tls, &err) == 0, "%s", err.text);
}

static void read_all(struct end *end)
{
    struct err err = ERR_INIT;
    ssize_t n = 1;

    while (!end->over && n != 0) {
        n = tls_read(end->tls, end->received + end->nreceived, sizeof(end->received) - end->nreceived, &err);
        FUZZ_CHECK(n >= 0 || err.text[0] != '\0', "no reason for %zd", n);
        end->over = n < 0;
        end->nreceived += n > 0 ? (size_t)n : 0;
    }
}

static void take(struct end *end, const uint8_t *bytes, size_t size)
{
    struct err err = ERR_INIT;
    int result;

    if (end->over)
        return;
    tls_feed(end->tls, bytes, size);
    result = tls_handshake(end->tls, &err);
    if (result < 0)
        FUZZ_CHECK(err.text[0] != '\0' && !tls_ready(end->tls), "no reason for %d", result);
    end->over = result < 0;
    if (result > 0)
        read_all(end);
    tls_feed(end->tls, NULL, 0);
}

/* ---- strangers ---- */

static void a_stranger(struct input *input, struct end *end)
{
    uint8_t *out;
    size_t size;

    take(end, NULL, 0);
    while (input->left > 0 && !end->over) {
        size_t piece = 1 + (size_t)input_byte(input) * 4;
        uint8_t *bytes;

        piece = piece < input->left ? piece : input->left;
        bytes = malloc(piece + 1); /* of its own, so that a byte too many is seen */
        if (!bytes)
            abort();
        memcpy(bytes, piece > 0 ? input->at : (const uint8_t *)"", piece);
        take(end, bytes, piece);
        free(bytes);
        input->at += piece;
        input->left -= piece;
    }
    FUZZ_CHECK(!tls_ready(end->tls) && !tls_peer(end->tls), "a stranger gets through");
    out = tls_output(end->tls, &size);
    free(out);
}

/* ---- somebody on the way ---- */

/* What becomes of the bytes; bytes has room for twice as many and TEXT. Returns how many there are. */
static size_t tamper(struct input *input, uint8_t *bytes, size_t size, bool *touched)
{
    uint8_t how = input_byte(input);
    size_t at = size > 0 ? ((size_t)input_byte(input) << 4 | input_below(input, 16)) % size : 0;

    if (how < 0x60 || size == 0)
        return size;
    *touched = true;
    if (how < 0xA0) {
        bytes[at] ^= (uint8_t)(1 + input_below(input, 255));
    } else if (how < 0xC0) {
        size = at;
    } else if (how < 0xE0) {
        memcpy(bytes + size, bytes, size);
        size *= 2;
    } else {
        size_t more = input_below(input, TEXT);

        memmove(bytes + at + more, bytes + at, size - at);
        for (size_t i = 0; i < more; i++)
            bytes[at + i] = input_byte(input);
        size += more;
    }
    return size;
}

static void pass(struct input *input, struct end *from, struct end *to, bool *touched)
{
    size_t size;
    uint8_t *out = tls_output(from->tls, &size), *bytes;

    if (!out)
        return;
    bytes = malloc(2 * size + TEXT);
    if (!bytes)
        abort();
    memcpy(bytes, out, size);
    size = tamper(input, bytes, size, touched);
    take(to, bytes, size);
    free(bytes);
    free(out);
    FUZZ_CHECK(to->nreceived <= from->nsent && memcmp(to->received, from->sent, to->nreceived) == 0,
               "%zu bytes came that were not sent", to->nreceived);
}

static void say(struct input *input, struct end *end)
{
    size_t size = input_below(input, TEXT);
    char text[TEXT];

    for (size_t i = 0; i < size; i++)
        text[i] = (char)input_byte(input);
    if (end->over || !tls_ready(end->tls) || tls_write(end->tls, text, size, NULL) != 0)
        return;
    memcpy(end->sent + end->nsent, text, size);
    end->nsent += size;
}

static void check_whole(const struct end *server, const struct end *client, bool joins)
{
    const struct tls_peer *peer = tls_peer(server->tls);

    FUZZ_CHECK(tls_ready(server->tls) && tls_ready(client->tls), "the handshake was not done");
    FUZZ_CHECK(!tls_refusal(server->tls), "refused: %s", tls_refusal(server->tls));
    FUZZ_CHECK(joins ? !peer : peer && strcmp(peer->name, "ws2") == 0, "another peer");
    FUZZ_CHECK(server->nreceived == client->nsent && client->nreceived == server->nsent, "not all has come");
}

static void two_of_ours(struct input *input, struct end *server, struct end *client, bool joins)
{
    bool touched = false;

    take(client, NULL, 0);
    for (int i = 0; i < ROUNDS; i++) {
        pass(input, client, server, &touched);
        pass(input, server, client, &touched);
        say(input, client);
        say(input, server);
    }
    if (input_byte(input) & 1)
        tls_end(client->tls);
    pass(input, client, server, &touched);
    pass(input, server, client, &touched);
    if (!touched)
        check_whole(server, client, joins);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct cluster *cluster = cluster_get();
    struct input input = {data, size};
    uint8_t how = input_byte(&input);
    struct end server, client;

    open_end(&server, cluster->server, NULL);
    open_end(&client, how & 1 ? cluster->joiner : cluster->client, "ws1");
    if (how & 4)
        a_stranger(&input, how & 2 ? &client : &server);
    else
        two_of_ours(&input, &server, &client, how & 1);
    tls_destroy(server.tls);
    tls_destroy(client.tls);
    return 0;
}
