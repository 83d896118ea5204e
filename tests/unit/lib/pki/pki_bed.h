/* pki_bed.h - a CA in a directory of its own, and a host that asks it. */
#ifndef TESTS_UNIT_LIB_PKI_PKI_BED_H
#define TESTS_UNIT_LIB_PKI_PKI_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/file.h"
#include "lib/pki/ca.h"
#include "lib/pki/pair.h"
#include "lib/pki/token.h"
#include "lib/pki/x509.h"

enum { HOUR_MS = 3600000 };

#define NOW    INT64_C(1800000000000) /* ms */
#define YEAR_S INT64_C(31536000)

struct rig {
    char dir[64];
    struct ca ca;
    char *key, *request; /* of ws2 */
};

int setup(void **state);
int teardown(void **state);
void assert_says(const struct err *err, const char *part);
struct token new_token(struct rig *rig, const char *const *hosts, size_t count);
int join(struct rig *rig, const struct token *token, const char *host, int64_t now_ms, char **certificate,
         struct err *err);

#endif
