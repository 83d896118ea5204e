/* early PROGRAM - the master and slave 1 of barrier, for the tests: its token is at slave 0 before the orders are, as
 * when PVM has to send the packet with the orders again. PROGRAM: barrier, whose slave 0 must answer and report one
 * phase. */
#include "config.h"

#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "examples/pvm/barrier.h"
#include "examples/pvm/common.h"

enum { SECONDS = 20 };

static void send_bytes(int tid, int tag, void *data, int bytes)
{
    pvm_initsend(PvmDataRaw);
    example_check(pvm_pkbyte(data, bytes, 1), "pvm_pkbyte");
    example_check(pvm_send(tid, tag), "pvm_send");
}

static void receive_bytes(int tag, void *data, int bytes)
{
    int from, got;
    if (example_receive_tag(tag, &from, &got) != tag || got != bytes)
        example_die("no message %d of %d bytes", tag, bytes);
    example_check(pvm_upkbyte(data, bytes, 1), "pvm_upkbyte");
}

int main(int argc, char **argv)
{
    char path[4096], mode[] = EXAMPLE_TASK, anywhere[] = "";
    char *args[] = {mode, NULL};
    int tid;
    alarm(SECONDS); /* nobody waits for ever in a test */
    example_name("early");
    if (argc != 2 || !realpath(argv[1], path))
        example_die("usage: early PROGRAM");
    example_enrol();
    if (pvm_spawn(path, args, PvmTaskDefault, anywhere, 1, &tid) != 1)
        example_die("cannot spawn %s", path);
    example_check(pvm_notify(PvmTaskExit, EXAMPLE_TAG_GONE, 1, &tid), "pvm_notify");

    struct token token = {.index = 1, .phase = 0};
    struct orders orders = {
        .slaves = 2, .iterations = 1, .phases = 1, .token_bytes = sizeof(token), .barrier_tid = tid};
    int tids[2] = {tid, pvm_mytid()};
    send_bytes(tid, TAG_TOKEN, (char *)&token, sizeof(token));
    send_bytes(tid, TAG_ORDERS, (char *)&orders, sizeof(orders));
    send_bytes(tid, TAG_ORDERS, (char *)tids, sizeof(tids));

    struct report report;
    receive_bytes(TAG_ANSWER, (char *)&token, sizeof(token));
    receive_bytes(TAG_REPORT, (char *)&report, sizeof(report));
    send_bytes(tid, TAG_RELEASE, mode, 1);
    pvm_exit();
    printf("early: answer of slave %d in phase %d, %d tokens\n", (int)token.index, (int)token.phase,
           (int)report.tokens);
    return 0;
}
