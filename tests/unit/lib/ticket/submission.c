#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/lib/ticket/submission.h"

const char *const command[3] = {"sim", "-n", "100"};
const char *const given[3] = {"PATH=/usr/bin", "LANG=C", "ELMER_RANK=7"};
/* The first AT_START of any job; PVMSOCK is the last, as daemons have none. */
enum { AT_START = 7 };
const char *const at_start[12] = {"PATH=/usr/bin",
                                  "LANG=C",
                                  "ELMER_JOB_ID=12",
                                  "ELMER_JOB_NAME=s",
                                  "ELMER_RANK=1",
                                  "ELMER_HOSTS=ws1:ws2",
                                  "ELMER_SUBMIT_DIR=/home/a",
                                  "PVM_TMP=/run/elmer-rsd/jobs/12.1",
                                  "PVM_WD=/home/a",
                                  "PVM_RSH=/bin/false",
                                  "PVMDLOGMAX=1000000",
                                  "PVMSOCK=/run/elmer-rsd/jobs/12.1/pvmtmp.1"};

void certify(struct cluster *c, const char *host)
{
    uint8_t bytes[TICKET_BYTES_MAX];
    size_t size = ticket_certified_bytes(host, c->key, bytes);
    assert_true(ticket_sign_bytes(c->authority_secret, bytes, size, c->certificate));
}

void cluster_init(struct cluster *c)
{
    *c = (struct cluster){.trust = {.has_authority = true, .own_host = "ws2"}};
    assert_true(ticket_key_create(c->authority_secret, c->authority));
    assert_true(ticket_key_create(c->secret, c->key));
    memcpy(c->trust.authority, c->authority, sizeof(c->authority));
    certify(c, "ws1");
}

void make(const struct cluster *c, struct ticket *t, bool pvm)
{
    *t = (struct ticket){.host = "ws1",
                         .counter = 41,
                         .uid = 1000,
                         .user = "alice",
                         .name = "s",
                         .token = "0123",
                         .nprocs = 4,
                         .each = true,
                         .helpers = pvm,
                         .output = "%x-%j.%r.out",
                         .errors = ""};
    memcpy(t->certificate, c->certificate, sizeof(t->certificate));
    assert_true(ticket_digest(t, LIST(command), LIST(given), "/home/a", 022));
    assert_true(ticket_sign(t, c->secret));
}

struct ticket_start start_of(bool helpers)
{
    return (struct ticket_start){.job = 12,
                                 .role = TICKET_COMMAND,
                                 .process = 1,
                                 .argv = LIST(command),
                                 .environment = {at_start, helpers ? sizeof(at_start) / sizeof(*at_start) : AT_START},
                                 .dir = "/home/a",
                                 .output = "s-12.1.out",
                                 .errors = "s-12.1.out",
                                 .umask = 022,
                                 .tmpdir = "/run/elmer-rsd/jobs/12.1"};
}
