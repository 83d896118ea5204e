/* submission.h - a submission for tests of tickets, and what hosts are told of it. */
#ifndef TESTS_UNIT_LIB_TICKET_SUBMISSION_H
#define TESTS_UNIT_LIB_TICKET_SUBMISSION_H

#include "lib/ticket/ticket.h"

#define LIST(array)                                                                                                    \
    (struct ticket_list)                                                                                               \
    {                                                                                                                  \
        array, sizeof(array) / sizeof((array)[0])                                                                      \
    }

#define assert_why(got, wanted) assert_string_equal(ticket_refusal_name(got), ticket_refusal_name(wanted))

extern const char *const command[3], *const given[3], *const at_start[12];

struct cluster {
    uint8_t authority[TICKET_KEY_BYTES], authority_secret[TICKET_KEY_BYTES];
    uint8_t key[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES];
    uint8_t certificate[TICKET_SIGNATURE_BYTES];
    struct ticket_trust trust; /* of another host */
};
void cluster_init(struct cluster *c);
void certify(struct cluster *c, const char *host); /* as the CA does */

void make(const struct cluster *c, struct ticket *t, bool pvm);
/* A command of it; with helpers as one of a virtual machine. */
struct ticket_start start_of(bool helpers);

#endif
