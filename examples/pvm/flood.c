/* flood - keep the PVM daemons as busy as two tasks can, for a bounded time.
 *
 * The master spawns one task and sends it numbered messages through the daemons (no direct route), at most WINDOW
 * ahead of the acknowledgements, so that the daemons' queues are always full and never grow without bound. When the
 * time is over it sends a last message and waits for the count. Verified: every message arrived once and in order.
 */
#include "common.h"

#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum tag { TAG_DATA = 1, TAG_LAST, TAG_ACK, TAG_COUNT };
enum { WINDOW = 64, ACK_EVERY = 16 };

static void send_number(int tid, int tag, int64_t number)
{
    pvm_initsend(PvmDataRaw);
    pvm_pkbyte((char *)&number, sizeof(number), 1);
    example_check(pvm_send(tid, tag), "pvm_send");
}

static int64_t unpack_number(void)
{
    int64_t number = -1;
    example_check(pvm_upkbyte((char *)&number, sizeof(number), 1), "pvm_upkbyte");
    return number;
}

/* Count the messages until the last; acknowledge now and then. A message out of order makes the count -1. */
static int sink(void)
{
    int64_t expected = 0;
    int wrong = 0;
    int parent = example_check(pvm_parent(), "pvm_parent");
    example_check(pvm_notify(PvmTaskExit, EXAMPLE_TAG_GONE, 1, &parent), "pvm_notify");
    for (;;) {
        int from, bytes;
        int tag = example_receive(&from, &bytes);
        if (tag == EXAMPLE_TAG_GONE)
            example_die("the sender ended too early");
        if (tag == TAG_LAST)
            break;
        wrong |= unpack_number() != expected;
        if (++expected % ACK_EVERY == 0)
            send_number(parent, TAG_ACK, expected);
    }
    send_number(parent, TAG_COUNT, wrong ? -1 : expected);
    pvm_exit();
    return 0;
}

/* Receive one acknowledgement or the final count. */
static int64_t await(int tag)
{
    for (;;) {
        int from, bytes;
        int got = example_receive(&from, &bytes);
        if (got == EXAMPLE_TAG_GONE)
            example_die("the receiver ended too early");
        if (got == tag)
            return unpack_number();
    }
}

static int source(double seconds, int bytes)
{
    int tid;
    int64_t sent = 0, acknowledged = 0;
    char *padding = calloc(1, (size_t)bytes);
    if (!padding)
        example_die("no memory for a message of %d bytes", bytes);
    example_spawn(1, &tid);
    double begin = example_now();
    while (example_now() - begin < seconds) {
        while (sent - acknowledged >= WINDOW)
            acknowledged = await(TAG_ACK);
        pvm_initsend(PvmDataRaw);
        pvm_pkbyte((char *)&sent, sizeof(sent), 1);
        pvm_pkbyte(padding, bytes, 1);
        example_check(pvm_send(tid, TAG_DATA), "pvm_send");
        sent++;
    }
    send_number(tid, TAG_LAST, sent);
    int64_t count = await(TAG_COUNT);
    double elapsed = example_now() - begin;
    free(padding);
    example_release();
    pvm_exit();
    printf("flood: %s messages=%lld bytes=%d per_second=%.0f elapsed=%.3f\n",
           count == sent ? "verified" : "NOT verified", (long long)sent, bytes, (double)sent / elapsed, elapsed);
    return count == sent && fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    double seconds = 5;
    int bytes = 2000;
    if (argc == 2 && strcmp(argv[1], EXAMPLE_TASK) == 0) {
        example_name("flood receiver");
        example_enrol();
        return sink();
    }
    example_name("flood");
    for (int c; (c = getopt(argc, argv, "s:b:")) != -1;) {
        switch (c) {
        case 's':
            seconds = example_real('s', optarg, 0.01, 600);
            break;
        case 'b':
            bytes = (int)example_integer('b', optarg, 0, 1 << 20);
            break;
        default:
            fputs("usage: flood [-s seconds] [-b bytes_per_message]\n", stderr);
            return 2;
        }
    }
    if (optind != argc) {
        fputs("flood: no arguments but options are wanted\n", stderr);
        return 2;
    }
    example_enrol();
    return source(seconds, bytes);
}
