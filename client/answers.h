/* answers.h - asking elmer for what comes in several messages, to be shown at once. */
#ifndef CLIENT_ANSWERS_H
#define CLIENT_ANSWERS_H

#include "libelmer/client.h"

struct answers {
    enum wire_type type; /* of all of them */
    struct wire_message *pages;
    size_t count;
};

/* An enum elmer_result. What has come is valid until answers_free(). */
int answers_ask(struct elmer *elmer, struct wire_message *request, enum wire_type type, struct answers *answers,
                struct elmer_error *error);
void answers_free(struct answers *answers);

#endif
