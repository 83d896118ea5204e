/* ticket.c - what a ticket costs: signing it, and checking it on a host that executes one process of it, with a given
 * size of environment. Prints medians in microseconds; status 1 if both together take more than BAR_US.
 *
 *   ticket [BYTES]     of environment, 30000 if not said */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/ticket/ticket.h"

enum { ROUNDS = 2001, VARIABLES = 60, BAR_US = 300 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double *times)
{
    qsort(times, ROUNDS, sizeof(*times), by_size);
    return times[ROUNDS / 2];
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(2);
}

static struct ticket_list environment_of(size_t bytes)
{
    static const char *items[VARIABLES];
    for (size_t i = 0; i < VARIABLES; i++) {
        size_t size = bytes / VARIABLES;
        char *item = malloc(size + 32);
        if (!item)
            fail("out of memory");
        int length = snprintf(item, 32, "VARIABLE_%zu=", i);
        memset(item + length, 'x', size);
        item[(size_t)length < size ? size : (size_t)length] = 0;
        items[i] = item;
    }
    return (struct ticket_list){items, VARIABLES};
}

int main(int argc, char **argv)
{
    static const char *const command[] = {"/home/alice/bin/simulation", "--steps", "1000000"};
    static double signing[ROUNDS], checking[ROUNDS];
    static struct ticket asked, got;
    static char text[TICKET_TEXT_MAX + 1];
    uint8_t ca[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES], key[TICKET_KEY_BYTES], bytes[TICKET_BYTES_MAX];
    struct ticket_trust trust = {.has_authority = true, .own_host = "ws2"};
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 30000;
    struct ticket_start start = {.role = TICKET_COMMAND,
                                 .argv = {command, 3},
                                 .environment = environment_of(size),
                                 .dir = "/home/alice",
                                 .output = "elmer-0.out",
                                 .errors = "elmer-0.out",
                                 .umask = 022,
                                 .tmpdir = "/run/elmer-rsd/jobs/0.1"};
    if (!ticket_key_create(ca, trust.authority) || !ticket_key_create(secret, key))
        fail("no keys");
    asked = (struct ticket){.host = "ws1", .uid = 1000, .user = "alice", .name = "simulation", .nprocs = 8};
    if (!ticket_sign_bytes(ca, bytes, ticket_certified_bytes("ws1", key, bytes), asked.certificate))
        fail("no certificate");
    for (int i = 0; i < ROUNDS; i++) {
        double begun = now_us();
        asked.counter++;
        if (!ticket_digest(&asked, start.argv, start.environment, start.dir, start.umask) ||
            !ticket_sign(&asked, secret))
            fail("cannot sign");
        ticket_encode(&asked, text);
        signing[i] = now_us() - begun;
        begun = now_us();
        if (ticket_decode(text, &got) != TICKET_GOOD || ticket_check_chain(&got, &trust) != TICKET_GOOD ||
            ticket_check_open(&got, 1000, "alice", false, 8, 0) != TICKET_GOOD ||
            ticket_check_start(&got, &start) != TICKET_GOOD)
            fail("a ticket that is good is refused");
        checking[i] = now_us() - begun;
    }
    double sign_us = median(signing), check_us = median(checking);
    printf("environment of %zu bytes: sign %.0f us, check %.0f us, together %.0f us (at most %d)\n", size, sign_us,
           check_us, sign_us + check_us, BAR_US);
    return sign_us + check_us <= BAR_US ? 0 : 1;
}
