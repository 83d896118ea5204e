/* decision.h - what a person has decided: who, from where, what. Plain data; each is a row of the store.
 *
 * by is the name of a user; behind it, in parentheses, who has become root by sudo, as root says. Where no user is
 * known there is something in parentheses alone, which is nobody's name: "(token ...)", "(reload)". */
#ifndef ELMER_STORE_DECISION_H
#define ELMER_STORE_DECISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elmer/store/host_row.h"

enum { DECISION_WORD = 16, DECISION_USER = 256, DECISION_TEXT = 201 };
#define DECISION_NOBODY UINT32_MAX /* the uid, where no user is known */

struct decision {
    int64_t id, at_ms; /* of the row, 0: not written yet; Unix time */
    char what[DECISION_WORD];
    uint64_t job;                       /* 0: about none */
    char user[DECISION_USER];           /* of the job */
    char host[HOST_NAME_MAX_BYTES + 1]; /* "": about none */
    char by[DECISION_USER], from[HOST_NAME_MAX_BYTES + 1];
    uint32_t uid;             /* of by */
    bool admin;               /* he could do so as an administrator only */
    char text[DECISION_TEXT]; /* the reason, or what was set */
};

#endif
